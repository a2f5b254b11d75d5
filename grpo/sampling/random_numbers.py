"""Random numbers that depend on what they are for, and on nothing that happened before.

A number is a hash of its address (seed, row, position), so a sample does not change with the
batch it is drawn in, and a resumed run draws what the unbroken one would have drawn.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_GAMMA = np.uint64(0x9E3779B97F4A7C15)


def derive_seed(seed: int, *address: int) -> int:
    """A seed in [0, 2**63) for a part of a run, such as ``derive_seed(seed, step)``."""
    state = _mix_one(seed % 2**64)
    for part in address:
        state = _mix_one(state ^ _mix_one((part + int(_GAMMA)) % 2**64))
    return state >> 1


def uniforms(seed: int, rows: NDArray[np.int64], positions: int) -> NDArray[np.float64]:
    """Numbers in [0, 1) for each row and position.

    Args:
        seed: of the whole call.
        rows: [B] row numbers.
        positions: how many numbers each row needs.

    Returns:
        [B, positions], multiples of 2**-32: none is so close to 1 that rounding makes it 1.
    """
    streams = _mix(rows.astype(np.uint64) ^ _mix(np.array([seed % 2**64], dtype=np.uint64)))
    steps = np.arange(1, positions + 1, dtype=np.uint64) * _GAMMA
    bits = _mix(streams[:, None] + steps[None, :]) >> np.uint64(32)
    return bits.astype(np.float64) / 2.0**32


def _mix_one(x: int) -> int:
    """:func:`_mix` of a single number, for which numpy takes ten times as long."""
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB % 2**64
    return x ^ (x >> 31)


def _mix(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Finalizer of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: NDArray[np.uint64] = x ^ (x >> np.uint64(31))
    return mixed
