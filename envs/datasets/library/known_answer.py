r"""The reference of a mathematical row: one, several alternatives, or with a tolerance."""

from __future__ import annotations

import math
from typing import Any

from ....verifiers.text.boxes import boxes
from ..reading import Row, Types

FIELDS: dict[str, Types] = {
    "answer": (str, int, float, list),
    "answers": list,
    "final_answer": (str, list),
    "is_multiple_answer": bool,
    "tolerance": (str, int, float),
    "relative_tolerance": (str, int, float),
    "error": (str, int, float),
}
"""The optional fields that :func:`known_answer` reads, with types."""

_TOLERANCES = ("tolerance", "relative_tolerance")


def known_answer(row: Row, solution: str) -> Any:
    r"""Return a row's reference for :class:`~assay.verifiers.Math`.

    It is ``answer``, or the list ``answers`` any of which is correct, or ``final_answer``, whose
    ``error`` is a tolerance, as OlympiadBench has them (He et al. 2024, arXiv:2402.14008): with
    ``is_multiple_answer`` all of its members are asked for. A row without these has its answer in
    the last ``\boxed{}`` of the solution. ``tolerance`` is absolute, ``relative_tolerance`` a
    share of the reference.

    Raises:
        ValueError: there is no answer, or a tolerance is not a number of at least 0.
    """
    field = next((f for f in ("answer", "answers", "final_answer") if row.get(f) is not None), "")
    value = row[field] if field else _boxed_last(solution)
    several = isinstance(value, list)
    if several and not value:
        raise ValueError(f"{field!r} must hold at least one answer, got []")
    if several and field == "final_answer" and row.get("is_multiple_answer"):
        value, several = ", ".join(map(_bare, value)), False
    known = [_bare(one) for one in value] if several else _bare(value)
    if several and len(known) == 1:
        known = known[0]
    given = {name: _number(row, name) for name in _TOLERANCES}
    if field == "final_answer" and given["tolerance"] is None:
        given["tolerance"] = _number(row, "error")
    tolerances = {name: number for name, number in given.items() if number is not None}
    return {"answer": known, **tolerances} if tolerances else known


def first_answer(reference: Any) -> str:
    """Return one answer that a reference of :func:`known_answer` pays for."""
    answer = reference["answer"] if isinstance(reference, dict) else reference
    return str(answer[0] if isinstance(answer, list) else answer)


def _bare(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError(f"an answer must be text or a number, got {value!r:.80}")
    return str(value).strip()


def _number(row: Row, field: str) -> float | None:
    value = row.get(field)
    if value is None or value == "":
        return None
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not 0 <= number < math.inf:
        raise ValueError(f"{field!r} must be a number of at least 0, got {value!r:.80}")
    return number


def _boxed_last(solution: str) -> str:
    closed, unclosed = boxes(solution)
    if not closed or unclosed:
        raise ValueError(
            "the row must have an 'answer', or a 'solution' with the answer in \\boxed{}, "
            f"got the solution {solution[-80:]!r}"
        )
    return closed[-1][2]
