"""Counter-based random streams: an address decides every draw."""

from __future__ import annotations

import hashlib
import json
import operator
from typing import Any

import numpy as np
from numpy.random.bit_generator import ISeedSequence
from numpy.typing import NDArray

Floats = NDArray[np.float64]
# JSON has no NumPy integers.
_encode = json.JSONEncoder(default=operator.index).encode


def rng_at(*address: str | int) -> np.random.Generator:
    """Return a generator that depends only on its address.

    Addresses that differ in any place give unrelated generators, so ``seed`` and ``seed + 1``
    share nothing, and the thousandth task costs no more than the first.

    Args:
        address: such as an environment's id, a seed, and a counter.
    """
    key: Any = _Key(_digest(address))
    return np.random.Generator(np.random.Philox(key))


class _Key(ISeedSequence):
    """A key for Philox, which reads entropy from the system if it is given ``key=``."""

    def __init__(self, digest: int) -> None:
        self.words = digest & (2**64 - 1), digest >> 64

    def generate_state(self, n_words: int, dtype: Any = np.uint32) -> Any:
        """Return the key's two words of 64 bits."""
        return self.words


def share(*address: str | int) -> float:
    """Return a number in [0, 1) that depends only on its address."""
    return (_digest(address) >> 75) / 2**53


def _digest(address: tuple[str | int, ...]) -> int:
    """Return 128 bits; JSON keeps ("a", 1) apart from ("a1",) and 1 apart from "1"."""
    hashed = hashlib.blake2b(_encode(address).encode(), digest_size=16)
    return int.from_bytes(hashed.digest(), "big")


def below(rng: np.random.Generator, n: int) -> int:
    """Draw an integer from 0 to ``n - 1``; a float's 53 bits suffice for the small ``n`` here."""
    return int(rng.random() * n)


def between(rng: np.random.Generator, low: int, high: int) -> int:
    """Draw an integer from ``low`` to ``high``, inclusive."""
    return low + below(rng, high - low + 1)


def several(rng: np.random.Generator, n: int, size: int) -> list[int]:
    """Draw ``size`` integers from 0 to ``n - 1``."""
    return [int(part * n) for part in rng.random(size).tolist()]
