"""Tower of Hanoi: do the moves lead from one arrangement to another?"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, ClassVar

from ..validation import safe_repr
from .puzzle import BadReference, PuzzleVerifier, check_list, fields
from .reading import ARROWS, Unreadable
from .search import shortest_path

Move = tuple[int, int]
Disks = tuple[int, ...]
"""The peg of each disk, the smallest first."""

PEGS = "ABCDEF"
MAX_DISKS = 10
MAX_STATES = 20_000


class Hanoi(PuzzleVerifier):
    r"""Accept any legal moves that bring the disks from the start to the goal.

    Each move takes the top disk of one peg to another, never onto a smaller one. Pegs are called
    ``A``, ``B``, ``C`` and so on, disks ``1`` (the smallest) and up. A move is ``A->C``,
    ``A to C``, ``Move disk 1 from A to C``, ``(1, A, C)`` or the like; a disk that is named must
    be the one that moves. More than ``4 * 2**disks`` moves lose.

    Reference: ``{"start": [[3, 2, 1], [], []], "goal": [[], [], [3, 2, 1]]}``, for each peg its
    disks from the bottom; with ``"optimal": true`` only the least number of moves passes.

    Args:
        optimal: only the least number of moves passes, whatever the reference says. Arrangements
            that more than 20,000 states lie between are refused then.
    """

    max_answer: ClassVar[int] = 120_000

    def __init__(self, *, optimal: bool = False) -> None:
        self.optimal = optimal

    def check(self, reference: Any) -> None:
        """Check that two different arrangements have the same disks and pegs."""
        start, goal = fields(reference, "start", "goal", flags=("optimal",))
        _check_arrangement("start", start)
        _check_arrangement("goal", goal)
        disks = sum(map(len, start))
        if len(start) != len(goal) or disks != sum(map(len, goal)):
            raise BadReference("start and goal must have the same pegs and disks")
        if start == goal:
            raise BadReference("start and goal must differ, or nothing is to be done")
        if self.demands("optimal", reference) and (states := len(start) ** disks) > MAX_STATES:
            raise BadReference(
                f"the least number of moves is known up to {MAX_STATES} states, got {states}"
            )

    def oracle_reply(self, reference: Any) -> str | None:
        start, goal = _placed(reference["start"]), _placed(reference["goal"])
        pegs = len(reference["start"])
        if pegs == 3 or pegs ** len(start) <= MAX_STATES:
            return written(fewest_moves(start, goal, pegs))
        return written([*_gathered(start, 0), *_scattered(0, goal)])

    def fault(self, text: str, reference: Any) -> str | None:
        pegs = [list(peg) for peg in reference["start"]]
        moves = list(_moves(text, PEGS[: len(pegs)]))
        if len(moves) > (most := 4 << sum(map(len, pegs))):
            return f"{len(moves)} moves are more than {most}"
        for number, (named, a, b) in enumerate(moves, 1):
            if not pegs[a]:
                return f"move {number} takes a disk from {PEGS[a]}, which is empty"
            disk = pegs[a].pop()
            if named and named != disk:
                return f"move {number} names disk {named}, but disk {disk} is on top"
            if a == b:
                return f"move {number} goes nowhere"
            if pegs[b] and pegs[b][-1] < disk:
                return f"move {number} puts disk {disk} on disk {pegs[b][-1]}"
            pegs[b].append(disk)
        if pegs != reference["goal"]:
            return f"ends with {pegs}, not with {reference['goal']}"
        if self.demands("optimal", reference):
            start, goal = _placed(reference["start"]), _placed(reference["goal"])
            least = len(fewest_moves(start, goal, len(pegs)))
            if len(moves) > least:
                return f"takes {len(moves)} moves, {least} suffice"
        return None


def _check_arrangement(name: str, pegs: Any) -> None:
    check_list(name, pegs, 3, len(PEGS), "pegs")
    if not all(isinstance(peg, list) and len(peg) <= MAX_DISKS for peg in pegs):
        raise BadReference(
            f"each peg of {name} must be a list of at most {MAX_DISKS} disks, got {safe_repr(pegs)}"
        )
    disks = [disk for peg in pegs for disk in peg]
    if any(type(disk) is not int for disk in disks) or not 1 <= len(disks) <= MAX_DISKS:
        raise BadReference(
            f"{name} must have 1 to {MAX_DISKS} disks, whole numbers all, got {safe_repr(pegs)}"
        )
    if sorted(disks) != list(range(1, len(disks) + 1)):
        raise BadReference(
            f"the disks of {name} must be 1 to {len(disks)}, each once, got {safe_repr(pegs)}"
        )
    if any(peg != sorted(peg, reverse=True) for peg in pegs):
        raise BadReference(f"no disk of {name} may lie on a smaller one: list pegs from the bottom")


def _placed(pegs: list[list[int]]) -> Disks:
    at = {disk: number for number, peg in enumerate(pegs) for disk in peg}
    return tuple(at[disk] for disk in sorted(at))


def written(moves: Iterable[Move]) -> str:
    """Return moves as a reply may give them."""
    return ", ".join(f"{PEGS[a]}->{PEGS[b]}" for a, b in moves)


@lru_cache(maxsize=256)
def fewest_moves(start: Disks, goal: Disks, pegs: int) -> tuple[Move, ...]:
    """Return a shortest sequence of moves between two arrangements.

    With three pegs only two have to be compared. The largest disk that has to move does so once,
    while the smaller ones wait on the third peg; or twice, by way of the third peg, while the
    smaller ones go to where it ends and then to where it was: Hinz, The Tower of Hanoi (1989).
    """
    if pegs > 3:  # from the goal, and back
        path = shortest_path(goal, start.__eq__, lambda state: _next(state, pegs))
        return tuple((b, a) for (a, b), _ in reversed(path or []))
    *smaller, here = start
    *to, there = goal
    if here == there:
        return fewest_moves(tuple(smaller), tuple(to), pegs) if smaller else ()
    third = 3 - here - there
    once = (*_gathered((*smaller,), third), (here, there), *_scattered(third, (*to,)))
    twice = (
        *_gathered((*smaller,), there),
        (here, third),
        *_gathered((there,) * len(smaller), here),
        (third, there),
        *_scattered(here, (*to,)),
    )
    return min(once, twice, key=len)


def _next(state: Disks, pegs: int) -> Iterator[tuple[Move, Disks]]:
    tops: dict[int, int] = {}
    for disk, peg in enumerate(state):
        tops.setdefault(peg, disk)
    for a, disk in tops.items():
        for b in range(pegs):
            if b not in tops or tops[b] > disk:
                yield (a, b), (*state[:disk], b, *state[disk + 1 :])


@lru_cache(maxsize=4096)
def _gathered(state: Disks, peg: int) -> tuple[Move, ...]:
    """Return the moves that bring all disks to one peg; three pegs are enough."""
    if not state:
        return ()
    *smaller, at = state
    if at == peg:
        return _gathered((*smaller,), peg)
    third = min({0, 1, 2} - {at, peg})
    tower = _gathered((third,) * len(smaller), peg)
    return (*_gathered((*smaller,), third), (at, peg), *tower)


def _scattered(peg: int, goal: Disks) -> tuple[Move, ...]:
    """Return the moves that bring all disks from one peg to their targets."""
    return tuple((b, a) for a, b in reversed(_gathered(goal, peg)))


_TOKEN = re.compile(
    r"\b(?:disk|disc|ring)[\s#:\"']{0,4}(\d{1,3})\b"  # a disk that is named
    r"|\b\d{1,4}[.):](?=\s|[A-Za-z])"  # the number of a step
    rf"|\b(\d{{1,3}})\b|([A-Za-z]+)|[-\s,;:.()\[\]{{}}>\"'#=|{ARROWS}]+|(.)",
    re.IGNORECASE | re.ASCII,
)
_NOISE_WORDS = "move the disk disc ring from to into onto peg rod pole tower top then"
_NOISE = frozenset(_NOISE_WORDS.split())
_TOWARDS = frozenset({"to", "into", "onto"})


def _moves(text: str, pegs: str) -> Iterator[tuple[int, int, int]]:
    """Yield for each move the disk it names, 0 for none, and its two pegs."""
    disk, taken, backwards = 0, "", False
    for token in _TOKEN.finditer(text):
        named, bare, word, odd = token.groups()
        if number := named or bare:
            if disk or taken:
                raise Unreadable(f"unexpected number {number}")
            disk = int(number)
            if not disk:
                raise Unreadable("there is no disk 0")
        elif word and word.casefold() not in _NOISE:
            if len(word) > 2 or not set(word.upper()) <= set(pegs):
                raise Unreadable(f"{safe_repr(word, 40)} is no peg; the pegs are {', '.join(pegs)}")
            taken = word.upper() + taken if backwards else taken + word.upper()
        elif word:
            backwards |= word.casefold() in _TOWARDS and not taken  # onto C from A
        elif odd:
            raise Unreadable(f"unexpected {odd!r}")
        if len(taken) > 2:
            raise Unreadable("a move has two pegs")
        if len(taken) == 2:
            yield disk, pegs.index(taken[0]), pegs.index(taken[1])
            disk, taken, backwards = 0, "", False
    if disk or taken:
        raise Unreadable("the last move is not complete")
