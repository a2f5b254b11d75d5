"""Randomness by counter: every draw has an address, and its address decides it."""

from __future__ import annotations

import hashlib
import json

import numpy as np


def rng_at(*address: str | int) -> np.random.Generator:
    """A generator that depends on its address and on nothing else.

    Addresses that differ in any place give unrelated generators, so ``seed`` and ``seed + 1``
    share nothing, and the thousandth task costs no more than the first.

    Args:
        address: such as an environment's id, a seed, and a counter.
    """
    return np.random.Generator(np.random.Philox(key=_digest(*address)))


def share(*address: str | int) -> float:
    """A number in [0, 1) that depends on its address alone."""
    return (_digest(*address) >> 75) / 2**53


def _digest(*address: str | int) -> int:
    # JSON keeps ("a", 1) apart from ("a1",) and 1 apart from "1".
    text = json.dumps(address).encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=16).digest(), "big")
