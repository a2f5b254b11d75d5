"""Randomness by counter: every draw has an address, and its address decides it."""

from __future__ import annotations

import hashlib
import json
from json.encoder import encode_basestring_ascii
from typing import Any

import numpy as np
from numpy.random.bit_generator import ISeedSequence


def rng_at(*address: str | int) -> np.random.Generator:
    """A generator that depends on its address and on nothing else.

    Addresses that differ in any place give unrelated generators, so ``seed`` and ``seed + 1``
    share nothing, and the thousandth task costs no more than the first.

    Args:
        address: such as an environment's id, a seed, and a counter.
    """
    key = _Key(_digest(*address))
    return np.random.Generator(np.random.Philox(key))  # type: ignore[arg-type]  # the stubs know one kind of ISeedSequence


def share(*address: str | int) -> float:
    """A number in [0, 1) that depends on its address alone."""
    return (int.from_bytes(_digest(*address), "big") >> 75) / 2**53


_WORD = np.dtype("<u8")


class _Key(ISeedSequence):
    """Hands a digest to Philox as its key.

    ``Philox(key=...)`` does the same in three times the time: it first asks the system for
    entropy that it does not use.
    """

    def __init__(self, digest: bytes) -> None:
        self.words = np.frombuffer(digest[::-1], dtype=_WORD)

    def generate_state(self, n_words: int, dtype: Any = np.uint32) -> np.ndarray[Any, Any]:
        """The key's two words of 64 bits, the lower one first."""
        return self.words


def _digest(*address: str | int) -> bytes:
    # JSON keeps ("a", 1) apart from ("a1",) and 1 apart from "1". It is put together here, as
    # json.dumps does, in a third of its time.
    parts = [
        encode_basestring_ascii(part) if type(part) is str
        else str(part) if type(part) is int
        else json.dumps(part)
        for part in address
    ]  # fmt: skip
    return hashlib.blake2b(f"[{', '.join(parts)}]".encode(), digest_size=16).digest()
