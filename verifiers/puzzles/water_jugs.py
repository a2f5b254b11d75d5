"""Water jugs: do the steps measure out the amount?"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import permutations
from math import gcd
from typing import Any

from ..shown import shown
from ..text.read_answer import Unreadable
from .any_answer import AnyAnswer

Water = tuple[int, ...]
Step = tuple[str, int, int]
"""``fill``, ``empty`` or ``pour``; the jug; and where it is poured."""

JUGS = "ABCDE"
MAX_STATES = 20_000
MAX_STEPS = 1_000


class WaterJugs(AnyAnswer):
    r"""Accept any steps after which one of the jugs holds the amount that is asked for.

    A step is ``fill A`` (to the brim), ``empty A``, or ``pour A into B`` (until ``A`` is empty or
    ``B`` full), also written ``pour from A to B``, ``pour A->B`` or ``A->B``. Jugs are called
    ``A``, ``B`` and so on, and are empty at first. A step that changes nothing is allowed; more
    than 1,000 steps lose.

    Reference: ``{"capacities": [3, 5], "target": 4}``; with ``"optimal": true`` only the least
    number of steps wins. An amount that cannot be measured is refused.

    Args:
        optimal: only the least number of steps wins, whatever the reference says.

    Example:
        >>> jugs = {"capacities": [3, 5], "target": 2}
        >>> WaterJugs().verify("fill B, pour B into A", jugs).score
        1.0
    """

    def __init__(self, *, optimal: bool = False) -> None:
        self.optimal = optimal

    def check_reference(self, reference: Any) -> str | None:
        """Jugs, and an amount that can be measured with them."""
        if not isinstance(reference, dict) or not reference.keys() >= {"capacities", "target"}:
            return f"expected capacities and target, got {shown(reference)}"
        if type(reference.get("optimal", False)) is not bool:
            return f"optimal must be true or false, got {shown(reference['optimal'])}"
        capacities, target = reference["capacities"], reference["target"]
        if not isinstance(capacities, list) or not 2 <= len(capacities) <= len(JUGS):
            return f"capacities must be a list of 2 to {len(JUGS)} numbers, got {shown(capacities)}"
        states = 1
        for number in [*capacities, target]:
            if type(number) is not int or not 1 <= number <= MAX_STATES:
                return f"capacities and target must be whole, from 1, got {shown(number, 60)}"
        for number in capacities:
            states *= number + 1
        if states > MAX_STATES:
            return f"the jugs must have at most {MAX_STATES} states together, got {states}"
        if _measurable(capacities, target):
            return None
        return f"{target} cannot be measured with {capacities}"

    def winning_reply(self, reference: Any) -> str | None:
        """The least number of steps."""
        steps = fewest_steps(tuple(reference["capacities"]), reference["target"]) or ()
        return written(steps)

    def fault(self, text: str, reference: Any) -> str | None:
        """Do the steps."""
        capacities, target = tuple(reference["capacities"]), reference["target"]
        steps = _steps(text, len(capacities))
        if len(steps) > MAX_STEPS:
            return f"{len(steps)} steps are more than {MAX_STEPS}"
        water: Water = (0,) * len(capacities)
        for step in steps:
            water = _after(water, step, capacities)
        if target not in water:
            return f"ends with {', '.join(map(str, water))}, not with {target} in a jug"
        if self.optimal or reference.get("optimal", False):
            least = len(fewest_steps(capacities, target) or ())
            if len(steps) > least:
                return f"takes {len(steps)} steps where {least} are enough"
        return None


def written(steps: Iterable[Step]) -> str:
    """Steps as a reply may give them."""
    return ", ".join([_WRITTEN[step] for step in steps])


_WRITTEN: dict[Step, str] = {
    **{(kind, a, a): f"{kind} {jug}" for a, jug in enumerate(JUGS) for kind in ("fill", "empty")},
    **{
        ("pour", a, b): f"pour {JUGS[a]} into {JUGS[b]}"
        for a, b in permutations(range(len(JUGS)), 2)
    },
}
_BARE = {
    jugs: {told: step for step, told in _WRITTEN.items() if max(step[1:]) < jugs}
    for jugs in range(2, len(JUGS) + 1)
}
"""By number of jugs: the steps as tasks ask for them."""


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
    """Whether some steps lead to an amount.

    No step leads away from the multiples of the greatest common divisor. Each of them that the
    largest jug holds can be reached: the others are filled and poured into it, and it is emptied
    whenever it is full, until what it holds is right modulo its size (Bezout).
    """
    return target <= max(capacities) and target % gcd(*capacities) == 0


@lru_cache(maxsize=256)
def fewest_steps(capacities: Water, target: int) -> tuple[Step, ...] | None:
    """The least number of steps by breadth-first search, ``None`` where there are none."""
    if not _measurable(capacities, target):
        return None
    start = (0,) * len(capacities)
    came: dict[Water, tuple[Water, Step]] = {start: (start, ("fill", 0, 0))}
    layer = [start]
    while True:
        following: list[Water] = []
        for water in layer:
            for step, now in _next(water, capacities):
                if now not in came:
                    came[now] = water, step
                    if target in now:
                        return _back(came, now)
                    following.append(now)
        layer = following


def _next(water: Water, capacities: Water) -> list[tuple[Step, Water]]:
    """The steps that may change something, and what they lead to."""
    found: list[tuple[Step, Water]] = []
    for a, step_in, step_out, pours in _STEPS[len(water)]:
        held = water[a]
        if held < capacities[a]:
            found.append((step_in, (*water[:a], capacities[a], *water[a + 1 :])))
        if held:
            found.append((step_out, (*water[:a], 0, *water[a + 1 :])))
            for b, step in pours:
                room = capacities[b] - water[b]
                if room:
                    flow = min(held, room)
                    now = list(water)
                    now[a], now[b] = held - flow, water[b] + flow
                    found.append((step, tuple(now)))
    return found


_STEPS = {
    jugs: [
        (a, ("fill", a, a), ("empty", a, a), [(b, ("pour", a, b)) for b in range(jugs) if b != a])
        for a in range(jugs)
    ]
    for jugs in range(2, len(JUGS) + 1)
}
"""By number of jugs, for each jug: its number, and the steps that fill, empty and pour it out."""


def _back(came: dict[Water, tuple[Water, Step]], water: Water) -> tuple[Step, ...]:
    steps = []
    while any(water):
        water, step = came[water]
        steps.append(step)
    return tuple(reversed(steps))


_TOKEN = re.compile(r"([A-Za-z]+)|[-\s,;:.()\[\]\"'=>→⟶⇒]+|(.)", re.DOTALL)
_VERBS = {
    "fill": "fill", "empty": "empty", "dump": "empty", "drain": "empty",
    "pour": "pour", "transfer": "pour",
}  # fmt: skip
_NOISE = frozenset({"jug", "the", "from", "to", "into", "in", "out", "up", "then", "water"})


def _steps(text: str, jugs: int) -> list[Step]:
    """The steps as they are written."""
    bare = _BARE[jugs]
    try:
        return [bare[step] for step in text.split(", ")]
    except KeyError:
        return list(_read(text, JUGS[:jugs]))


def _read(text: str, jugs: str) -> Iterator[Step]:
    """The steps as they are written; a verb may be missing where water is poured."""
    verb, taken = "", ""
    for token in _TOKEN.finditer(text):
        word, odd = token.groups()
        if odd:
            raise Unreadable(f"unexpected {odd!r}")
        if not word or word.casefold() in _NOISE:
            continue
        if word.casefold() in _VERBS:
            if verb or taken:
                raise Unreadable(f"the step before {shown(word, 40)} is not complete")
            verb = _VERBS[word.casefold()]
        elif len(word) > 1 or word.upper() not in jugs:
            raise Unreadable(f"{shown(word, 40)} is no jug; the jugs are {', '.join(jugs)}")
        else:
            taken += word.upper()
        if taken and verb in ("fill", "empty"):
            yield verb, jugs.index(taken), jugs.index(taken)
            verb, taken = "", ""
        elif len(taken) == 2:
            if taken[0] == taken[1]:
                raise Unreadable("water is poured from a jug into another")
            yield "pour", jugs.index(taken[0]), jugs.index(taken[1])
            verb, taken = "", ""
    if verb or taken:
        raise Unreadable("the last step is not complete")
