"""Water jugs: do the steps measure out the amount?"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from math import gcd, prod
from typing import Any

from ..validation import safe_repr
from .puzzle import BadReference, PuzzleVerifier, check_list, check_whole, fields
from .reading import ARROWS, Unreadable
from .search import shortest_path

Water = tuple[int, ...]
Step = tuple[str, int, int]
"""``fill``, ``empty`` or ``pour``; the jug; and the jug that it is poured into, else the same."""

JUGS = "ABCDE"
MAX_STATES = 20_000
MAX_STEPS = 1_000


class WaterJugs(PuzzleVerifier):
    r"""Accept any steps after which one of the jugs holds the required amount.

    A step is ``fill A`` (to the brim), ``empty A``, or ``pour A into B`` (until ``A`` is empty or
    ``B`` full), also written ``pour from A to B``, ``pour A->B`` or ``A->B``. Jugs are called
    ``A``, ``B`` and so on, and are empty at first. A step that changes nothing is allowed; more
    than 1,000 steps lose.

    Reference: ``{"capacities": [3, 5], "target": 4}``; with ``"optimal": true`` only the least
    number of steps passes. An amount that cannot be measured is refused.

    Args:
        optimal: only the least number of steps passes, whatever the reference says.
    """

    def __init__(self, *, optimal: bool = False) -> None:
        self.optimal = optimal

    def check(self, reference: Any) -> None:
        """Check that the amount can be measured."""
        capacities, target = fields(reference, "capacities", "target", flags=("optimal",))
        check_list("capacities", capacities, 2, len(JUGS), "numbers")
        for number in [*capacities, target]:
            check_whole("capacities and target", number, 1, MAX_STATES)
        if (states := prod(number + 1 for number in capacities)) > MAX_STATES:
            raise BadReference(f"the jugs must have at most {MAX_STATES} states, got {states}")
        if not _measurable(capacities, target):
            raise BadReference(f"{target} cannot be measured with {capacities}")

    def oracle_reply(self, reference: Any) -> str | None:
        return written(fewest_steps(tuple(reference["capacities"]), reference["target"]))

    def fault(self, text: str, reference: Any) -> str | None:
        capacities, target = tuple(reference["capacities"]), reference["target"]
        steps = list(_steps(text, JUGS[: len(capacities)]))
        if len(steps) > MAX_STEPS:
            return f"{len(steps)} steps are more than {MAX_STEPS}"
        water: Water = (0,) * len(capacities)
        for step in steps:
            water = _after(water, step, capacities)
        if target not in water:
            return f"ends with {', '.join(map(str, water))}, not with {target} in a jug"
        if self.demands("optimal", reference):
            least = len(fewest_steps(capacities, target))
            if len(steps) > least:
                return f"takes {len(steps)} steps, {least} suffice"
        return None


def written(steps: Iterable[Step]) -> str:
    """Return steps as a reply may give them."""
    return ", ".join(
        f"pour {JUGS[a]} into {JUGS[b]}" if kind == "pour" else f"{kind} {JUGS[a]}"
        for kind, a, b in steps
    )


def _after(water: Water, step: Step, capacities: Water) -> Water:
    kind, a, b = step
    now = list(water)
    if kind == "pour":
        flow = min(water[a], capacities[b] - water[b])
        now[a], now[b] = water[a] - flow, water[b] + flow
    else:
        now[a] = capacities[a] if kind == "fill" else 0
    return tuple(now)


def _measurable(capacities: Sequence[int], target: int) -> bool:
    """Return True if some steps lead to an amount.

    No step leads away from the multiples of the greatest common divisor. Each of them that the
    largest jug holds can be reached: the others are filled and poured into it, and it is emptied
    whenever it is full, until what it holds is right modulo its size (Bezout).
    """
    return target <= max(capacities) and target % gcd(*capacities) == 0


@lru_cache(maxsize=256)
def fewest_steps(capacities: Water, target: int) -> tuple[Step, ...]:
    """Return the least number of steps, none if none measure the amount."""
    if not _measurable(capacities, target):
        return ()
    jugs = range(len(capacities))
    steps = [
        step
        for a in jugs
        for step in [("fill", a, a), ("empty", a, a), *(("pour", a, b) for b in jugs if b != a)]
    ]
    path = shortest_path(
        (0,) * len(capacities),
        lambda water: target in water,
        lambda water: ((step, _after(water, step, capacities)) for step in steps),
    )
    return tuple(step for step, _ in path or ())


_HELD = r"\s{0,3}(?:[A-Za-z]\s{0,3}[=:]\s{0,3})?\d{1,5}(?:\s?(?:[Ll]|lit(?:er|re)s?))?\s{0,3}"
_REMARK = re.compile(  # "to the brim", "until A is full"; (3, 2) or (A=3, B=2) for what they hold
    r"\bto the (?:brim|top)\b|\buntil\b[^,;:.(\n]{0,60}"
    rf"|\({_HELD}(?:[,;]{_HELD}){{1,4}}\)"
)
_TOKEN = re.compile(rf"([A-Za-z]+)|[-\s,;:.()\[\]\"'=>{ARROWS}]+|(.)", re.DOTALL)
_VERBS = {
    "fill": "fill", "empty": "empty", "dump": "empty", "drain": "empty",
    "pour": "pour", "transfer": "pour",
}  # fmt: skip
_NOISE = frozenset({"jug", "the", "from", "to", "into", "in", "out", "up", "then", "water"})


def _steps(text: str, jugs: str) -> Iterator[Step]:
    """Yield the steps; a verb may be missing if water is poured."""
    verb, taken, backwards = "", "", False
    for token in _TOKEN.finditer(_REMARK.sub(" ", text)):
        word, odd = token.groups()
        if odd:
            raise Unreadable(f"unexpected {odd!r}")
        if not word or word.casefold() in _NOISE:
            towards = (word or "").casefold() in ("into", "to")
            backwards |= towards and not taken  # pour into B from A
            continue
        if word.casefold() in _VERBS:
            if verb or taken:
                raise Unreadable(f"the step before {safe_repr(word, 40)} is not complete")
            verb = _VERBS[word.casefold()]
        elif len(word) > 1 or word.upper() not in jugs:
            raise Unreadable(f"{safe_repr(word, 40)} is no jug; the jugs are {', '.join(jugs)}")
        else:
            taken = word.upper() + taken if backwards else taken + word.upper()
        if taken and verb in ("fill", "empty"):
            yield verb, jugs.index(taken), jugs.index(taken)
            verb, taken, backwards = "", "", False
        elif len(taken) == 2:
            if taken[0] == taken[1]:
                raise Unreadable("water is poured from a jug into another")
            yield "pour", jugs.index(taken[0]), jugs.index(taken[1])
            verb, taken, backwards = "", "", False
    if verb or taken:
        raise Unreadable("the last step is not complete")
