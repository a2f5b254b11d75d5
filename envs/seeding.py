"""Randomness by counter: every draw has an address, and its address decides it."""

from __future__ import annotations

import hashlib
import json
import math
import struct
from json.encoder import encode_basestring_ascii
from typing import Any, Self

import numpy as np
from numpy.random.bit_generator import ISeedSequence


def rng_at(*address: str | int) -> np.random.Generator:
    """Return a generator that depends only on its address.

    Addresses that differ in any place give unrelated generators, so ``seed`` and ``seed + 1``
    share nothing, and the thousandth task costs no more than the first.

    Args:
        address: such as an environment's id, a seed, and a counter.
    """
    return _generator(_digest(_spelled(address)))


def share(*address: str | int) -> float:
    """Return a number in [0, 1) that depends only on its address."""
    return (int.from_bytes(_digest(_spelled(address)), "big") >> _UNUSED) / 2**53


class Addresses:
    """Addresses that begin alike; their beginning is spelled out and hashed once.

    Args:
        beginning: what they have in common, such as an environment's id and a seed.
    """

    def __init__(self, *beginning: str | int) -> None:
        self._beginning = beginning
        self._hashed = _hashed(f"{_spelled(beginning)[:-1]}, ")

    def rng(self, at: int, attempt: int) -> np.random.Generator:
        """Return what :func:`rng_at` returns for this prefix, ``at`` and ``attempt``."""
        hashed = self._hashed.copy()
        hashed.update(f"{at}, {attempt}]".encode())
        return _generator(hashed.digest())

    def is_below(self, share: bytes, text: str) -> bool:
        """Return whether :func:`share` of this prefix and ``text`` is below a share.

        Args:
            share: as :func:`edge` gives it.
            text: the rest of the address.
        """
        hashed = self._hashed.copy()
        hashed.update(f"{encode_basestring_ascii(text)}]".encode())
        return hashed.digest() < share

    def __reduce__(self) -> tuple[type[Self], tuple[str | int, ...]]:
        """Pickle the prefix alone: a started hash can be neither pickled nor copied."""
        return type(self), self._beginning


def edge(share: float) -> bytes:
    """Return the bound below which a given share of all digests lies."""
    return (math.ceil(share * 2**53) << _UNUSED).to_bytes(16, "big")


def _generator(digest: bytes) -> np.random.Generator:
    key: Any = _Key(digest)
    return np.random.Generator(np.random.Philox(key, counter=_FIRST))


_UNUSED = 128 - 53
"""Bits of a digest that a float has no room for."""
_WORDS = struct.Struct(">QQ")
_FIRST: Any = np.zeros(4, dtype=np.uint64)
"""The counter from which Philox starts by itself; given as an array it is not read digit by digit,
which takes as long as all the rest."""


class _Key(ISeedSequence):
    """Pass a digest to Philox as its key.

    ``Philox(key=...)`` does the same in three times the time: it first asks the system for
    entropy that it does not use.
    """

    __slots__ = ("words",)

    def __init__(self, digest: bytes) -> None:
        self.words = _WORDS.unpack(digest)

    def generate_state(self, n_words: int, dtype: Any = np.uint32) -> Any:
        """Return the key's two words of 64 bits, the lower one first."""
        return self.words[::-1]


def _spelled(address: tuple[str | int, ...]) -> str:
    # JSON keeps ("a", 1) apart from ("a1",) and 1 apart from "1". It is put together here, as
    # json.dumps does, in a third of its time.
    parts = [
        encode_basestring_ascii(part) if type(part) is str
        else str(part) if type(part) is int
        else json.dumps(part)
        for part in address
    ]  # fmt: skip
    return f"[{', '.join(parts)}]"


def _digest(address: str) -> bytes:
    return _hashed(address).digest()


def _hashed(text: str) -> hashlib.blake2b:
    return hashlib.blake2b(text.encode(), digest_size=16)
