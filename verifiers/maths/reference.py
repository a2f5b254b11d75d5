"""Read references: one answer, several of which any is correct, or one with a tolerance."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any

from ..text.boxes import boxed_or_bare
from .conventions import check_tolerance

_KEYS = ("answer", "tolerance", "relative_tolerance")
_LARGEST = 3.4e38  # of single precision, rounded down
MAX_REFERENCES = 100
"""References of one row: each is compared with each reply."""


@dataclass(frozen=True, slots=True)
class References:
    """Several references of one row, or a row's own tolerance; ``None`` is the verifier's."""

    texts: tuple[str, ...]
    tolerance: float | None = None
    relative_tolerance: float | None = None


def read_reference(reference: Any) -> str | References:
    """Read a reference as bare text, or as several; see :class:`~assay.verifiers.maths.maths.Math`.

    Raises:
        TypeError: it is of a type that is no reference.
        ValueError: a number is not finite, a list is empty or too long, a key is unknown, or a
            tolerance is not a number of at least 0.
    """
    if isinstance(reference, list | tuple):
        return References(_texts(reference))
    if isinstance(reference, str) and (bare := _only_text(reference)):
        return References(_texts([bare, reference]))
    if not isinstance(reference, Mapping):
        ways = _ways(reference)
        return ways[0] if len(ways) == 1 else References(ways)
    unknown = [key for key in reference if key not in _KEYS]
    if unknown or "answer" not in reference:
        raise ValueError(
            f"a reference that is a dict needs 'answer' and may have 'tolerance' and "
            f"'relative_tolerance', got {short(repr(list(reference)))}"
        )
    answer = reference["answer"]
    texts = _texts(answer) if isinstance(answer, list | tuple) else _ways(answer)
    tolerances = [reference.get(key) for key in _KEYS[1:]]
    for name, value in zip(_KEYS[1:], tolerances, strict=True):
        if value is not None:
            check_tolerance(name, value)
    return References(texts, *tolerances)


def _texts(references: list[Any] | tuple[Any, ...]) -> tuple[str, ...]:
    if not 1 <= len(references) <= MAX_REFERENCES:
        raise ValueError(
            f"a list of references must have 1 to {MAX_REFERENCES}, got {len(references)}"
        )
    return tuple(way for reference in references for way in _ways(reference))


def _only_text(reference: str) -> str:
    """Return the text in JSON of a list of one, as Skywork-OR1 has its answers; else nothing."""
    if not (reference.startswith('["') and reference.endswith('"]')):
        return ""
    try:
        found = json.loads(reference)
    except ValueError:
        return ""
    return str(found[0]) if len(found) == 1 else ""


def _text(reference: Any) -> str:
    if isinstance(reference, str):
        return boxed_or_bare(reference)
    if isinstance(reference, bool) or not isinstance(reference, Real):
        raise TypeError(
            "a reference must be text or a number, a list of these, or a dict with 'answer', got "
            f"{short(repr(reference))}"
        )
    if reference != reference or abs(reference) == math.inf:
        raise ValueError(f"a reference must be finite, got {reference!r}")
    return str(reference)  # of NumPy's 0.5 "0.5"; its repr is "np.float64(0.5)"


def _ways(reference: Any) -> tuple[str, ...]:
    """Return the text of a reference, after that of the float32 that it is if it has many digits.

    A column of float32 gives 0.10000000149011612 for 0.1, which no reply equals. By chance one in
    2**29 doubles is such a number.
    """
    text = _text(reference)
    if not isinstance(reference, float) or len(text) < 16 or abs(reference) > _LARGEST:
        return (text,)
    if _single(reference) != reference:
        return (text,)
    ways = (str(float(f"{reference:.{digits}g}")) for digits in range(1, 10))
    return next(way for way in ways if _single(float(way)) == reference), text


def _single(number: float) -> float:
    return float(struct.unpack("f", struct.pack("f", number))[0])


def short(text: str) -> str:
    """Return at most 80 characters of a text."""
    return text if len(text) <= 80 else text[:77] + "..."
