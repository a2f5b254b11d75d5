"""Satisfiability: do the truth values make every clause true?"""

from __future__ import annotations

import functools
import re
from typing import Any

from ..validation import safe_repr
from .puzzle import BadReference, PuzzleVerifier, check_list, check_whole, fields
from .reading import Unreadable, unbracketed

MAX_CLAUSES, MAX_VARIABLES = 2000, 200
_MOST_WORK = 1_000_000
"""Members of clauses that the search looks at."""
_PAIR = re.compile(
    r"\s*[\"']?x_?\{?([1-9]\d{0,2})\}?[\"']?\s*(?::=|[:=→←]|->|\bis\b)\s*(\w{1,5})\s*",
    re.IGNORECASE,
)
_VALUES = {"true": True, "t": True, "1": True, "false": False, "f": False, "0": False}
_LOWERED = str.maketrans("₀₁₂₃₄₅₆₇₈₉", "0123456789")
_SEPARATOR = re.compile(r"[,;\n]|\band\b")


class Satisfiability(PuzzleVerifier):
    r"""Accept any truth values that make every clause true.

    A value for each variable of the clauses, once: ``x1 = true, x2 = false``, by lines or commas,
    with ``:`` or ``=``, as ``T`` and ``F`` or ``1`` and ``0``, or as a JSON object.

    Reference: ``{"clauses": [[1, -2], [2, 3]]}``, each number a variable, negative if it is
    denied, as in DIMACS files; a clause is true if one of its members is. Clauses that no
    values make true are refused, as far as a short search can tell, and so are those that any
    values do.
    """

    def check(self, reference: Any) -> None:
        """Check that some values make the clauses true, and not all."""
        (clauses,) = fields(reference, "clauses")
        check_list("clauses", clauses, 1, MAX_CLAUSES, "clauses")
        for clause in clauses:
            check_list("a clause", clause, 1, MAX_VARIABLES, "numbers")
            for member in clause:
                check_whole("a member of a clause", member, -MAX_VARIABLES, MAX_VARIABLES)
                if not member:
                    raise BadReference("a member of a clause must not be 0: variables begin at 1")
        if all(any(-member in clause for member in clause) for clause in clauses):
            raise BadReference("every clause is true whatever the values, so any reply would win")
        if not _solvable(tuple(map(tuple, clauses))):
            raise BadReference("no values make every clause true")

    def fault(self, text: str, reference: Any) -> str | None:
        clauses = reference["clauses"]
        values = _values(text)
        wanted = {abs(member) for clause in clauses for member in clause}
        if values.keys() != wanted:
            odd = min(values.keys() ^ wanted)
            return f"x{odd} has no value" if odd in wanted else f"there is no x{odd}"
        for clause in clauses:
            if not any(values[abs(member)] == (member > 0) for member in clause):
                return f"the clause {' or '.join(map(literal, clause))} is false"
        return None


def literal(member: int) -> str:
    """Return a member of a clause in words: ``x1``, ``not x2``."""
    return f"x{member}" if member > 0 else f"not x{-member}"


@functools.lru_cache(maxsize=4096)
def _solvable(clauses: tuple[tuple[int, ...], ...]) -> bool:
    """Return True if some values do, or if it takes too long (Davis, Logemann, Loveland 1962)."""
    waiting, work = [clauses], 0
    while waiting:
        left = waiting.pop()
        work += sum(map(len, left))
        if not left or work > _MOST_WORK:
            return True
        shortest = min(left, key=len)
        # A lone member must be true, and an empty clause ends this branch.
        for member in (m for first in shortest[:1] for m in (first, -first)[: len(shortest)]):
            rest = (clause for clause in left if member not in clause)
            waiting.append(tuple(tuple(m for m in clause if m != -member) for clause in rest))
    return False


def _values(text: str) -> dict[int, bool]:
    """Return the values by number of the variable.

    Raises:
        Unreadable: something else stands among them, or a variable has two.
    """
    found: dict[int, bool] = {}
    for part in filter(str.strip, _SEPARATOR.split(unbracketed(text.translate(_LOWERED)))):
        pair = _PAIR.fullmatch(part)
        value = pair and _VALUES.get(pair[2].casefold())
        if pair is None or value is None:
            raise Unreadable(f"{safe_repr(part.strip(), 40)} gives no variable a value")
        if int(pair[1]) in found:
            raise Unreadable(f"x{pair[1]} has two values")
        found[int(pair[1])] = value
    if not found:
        raise Unreadable("there are no values")
    return found
