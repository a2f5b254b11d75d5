"""Tower of Hanoi: do the moves lead from one arrangement to another?"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from itertools import chain
from typing import Any, ClassVar

from ..shown import shown
from ..text.read_answer import Unreadable
from .any_answer import AnyAnswer

Move = tuple[int, int]
Disks = tuple[int, ...]
"""The peg of each disk, the smallest first."""

PEGS = "ABCDEF"
MAX_DISKS = 10
MAX_STATES = 20_000
_FEW = 8
"""Moves that are not too many for a single disk."""


class Hanoi(AnyAnswer):
    r"""Accept any legal moves that bring the disks from the start to the goal.

    Each move takes the top disk of one peg to another, never onto a smaller one. Pegs are called
    ``A``, ``B``, ``C`` and so on, disks ``1`` (the smallest) and up. A move is ``A->C``,
    ``A to C``, ``Move disk 1 from A to C``, ``(1, A, C)`` or the like; a disk that is named must
    be the one that moves. More than ``4 * 2**disks`` moves lose.

    Reference: ``{"start": [[3, 2, 1], [], []], "goal": [[], [], [3, 2, 1]]}``, for each peg its
    disks from the bottom; with ``"optimal": true`` only the least number of moves wins.

    Args:
        optimal: only the least number of moves wins, whatever the reference says. Arrangements
            that more than 20,000 states lie between are refused then.

    Example:
        >>> tower = {"start": [[2, 1], [], []], "goal": [[], [], [2, 1]]}
        >>> Hanoi().verify("A->B, A->C, B->C", tower).score
        1.0
    """

    longest: ClassVar[int] = 120_000

    def __init__(self, *, optimal: bool = False) -> None:
        self.optimal = optimal

    def check_reference(self, reference: Any) -> str | None:
        """Two different arrangements of the same disks on the same pegs."""
        if not isinstance(reference, dict) or "start" not in reference or "goal" not in reference:
            return f"expected start and goal, got {shown(reference)}"
        if type(reference.get("optimal", False)) is not bool:
            return f"optimal must be true or false, got {shown(reference['optimal'])}"
        start, goal = reference["start"], reference["goal"]
        if not _fit(start, goal):
            fault = _arrangement_fault("start", start) or _arrangement_fault("goal", goal)
            if fault is not None:
                return fault
            if len(start) != len(goal) or sum(map(len, start)) != sum(map(len, goal)):
                return "start and goal must have the same pegs and disks"
            if start == goal:
                return "start and goal must differ, or nothing is to be done"
        if self._optimal(reference):
            states = len(start) ** sum(map(len, start))
            if states > MAX_STATES:
                return f"the least number of moves is known up to {MAX_STATES} states, got {states}"
        return None

    def winning_reply(self, reference: Any) -> str | None:
        """The least number of moves, where the pegs are three or the states few; else any."""
        start, goal = _placed(reference["start"]), _placed(reference["goal"])
        pegs = len(reference["start"])
        known = pegs == 3 or pegs ** len(start) <= MAX_STATES
        moves = fewest_moves(start, goal, pegs) if known else _any(start, goal)
        return written(moves)

    def fault(self, text: str, reference: Any) -> str | None:
        """Play the moves."""
        pegs = [list(peg) for peg in reference["start"]]
        moves = _moves(text, len(pegs))
        if len(moves) > _FEW and len(moves) > (most := 4 << sum(map(len, pegs))):
            return f"{len(moves)} moves are more than {most}"
        for number, (named, a, b) in enumerate(moves, 1):
            taken, put = pegs[a], pegs[b]
            if not taken:
                return f"move {number} takes a disk from {PEGS[a]}, which is empty"
            disk = taken.pop()
            if named and named != disk:
                return f"move {number} names disk {named} where disk {disk} lies on top"
            if a == b:
                return f"move {number} goes nowhere"
            if put and put[-1] < disk:
                return f"move {number} puts disk {disk} on disk {put[-1]}"
            put.append(disk)
        if pegs != reference["goal"]:
            return f"ends with {pegs}, not with {reference['goal']}"
        if self._optimal(reference):
            start, goal = _placed(reference["start"]), _placed(reference["goal"])
            least = len(fewest_moves(start, goal, len(pegs)))
            if len(moves) > least:
                return f"takes {len(moves)} moves where {least} are enough"
        return None

    def _optimal(self, reference: Any) -> bool:
        return self.optimal or bool(reference.get("optimal", False))


def _fit(start: Any, goal: Any) -> bool:
    """Whether all is well with both arrangements: nearly always, and told in half the time."""
    if not type(start) is type(goal) is list or not 3 <= len(start) == len(goal) <= len(PEGS):
        return False
    pegs = start + goal
    if set(map(type, pegs)) != _LIST or max(map(len, pegs)) > MAX_DISKS:
        return False
    before, after = list(chain.from_iterable(start)), list(chain.from_iterable(goal))
    if set(map(type, before + after)) != _INT:
        return False
    if not sorted(before) == sorted(after) == _DISKS[: len(before)]:
        return False
    for peg in pegs:
        if len(peg) > 1 and peg != sorted(peg, reverse=True):
            return False
    return bool(start != goal)


_LIST, _INT = {list}, {int}


def _arrangement_fault(name: str, pegs: Any) -> str | None:
    if not isinstance(pegs, list) or not 3 <= len(pegs) <= len(PEGS):
        return f"{name} must be a list of 3 to {len(PEGS)} pegs, got {shown(pegs)}"
    if not all(isinstance(peg, list) and len(peg) <= MAX_DISKS for peg in pegs):
        return f"each peg of {name} must be a list of at most {MAX_DISKS} disks, got {shown(pegs)}"
    disks = [disk for peg in pegs for disk in peg]
    if any(type(disk) is not int for disk in disks) or not 1 <= len(disks) <= MAX_DISKS:
        return f"{name} must have 1 to {MAX_DISKS} disks, whole numbers all, got {shown(pegs)}"
    if sorted(disks) != list(range(1, len(disks) + 1)):
        return f"the disks of {name} must be 1 to {len(disks)}, each once, got {shown(pegs)}"
    if any(peg != sorted(peg, reverse=True) for peg in pegs):
        return f"no disk of {name} may lie on a smaller one: each peg is told from the bottom"
    return None


_DISKS = list(range(1, MAX_DISKS + 1))


def _placed(pegs: list[list[int]]) -> Disks:
    at = {disk: number for number, peg in enumerate(pegs) for disk in peg}
    return tuple(at[disk] for disk in sorted(at))


def written(moves: Sequence[Move]) -> str:
    """Moves as a reply may give them."""
    return ", ".join([_WRITTEN[move] for move in moves])


_WRITTEN = {(a, b): f"{PEGS[a]}->{PEGS[b]}" for a in range(len(PEGS)) for b in range(len(PEGS))}


def fewest_moves(start: Disks, goal: Disks, pegs: int) -> Sequence[Move]:
    """A shortest sequence of moves between two arrangements.

    With three pegs it is known which to compare. The largest disk that has to move does so once,
    the smaller ones waiting on the third peg; or twice, by way of the third peg, the smaller ones
    going to where it ends and then to where it was: Hinz, The Tower of Hanoi (1989).
    """
    if pegs > 3:
        return _searched(start, goal, pegs)
    disk = len(start) - 1
    while disk >= 0 and start[disk] == goal[disk]:
        disk -= 1
    if disk < 0:
        return ()
    here, there = start[disk], goal[disk]
    aside = 3 - here - there
    smaller, wanted = start[:disk], goal[:disk]
    before, after = _gathered(smaller, aside), _scattered(aside, wanted)
    once = len(before) + 1 + len(after)
    tower = 1 << disk  # what a detour takes at least, less one
    if once > tower + 1:
        first, last = _gathered(smaller, there), _scattered(here, wanted)
        if len(first) + tower + 1 + len(last) < once:
            moved = (here, aside), *_tower(disk, there, here), (aside, there)
            return (*first, *moved, *last)
    return (*before, (here, there), *after)


@lru_cache(maxsize=256)
def _searched(start: Disks, goal: Disks, pegs: int) -> tuple[Move, ...]:
    """A shortest sequence of moves, found by breadth-first search over all arrangements."""
    came: dict[Disks, tuple[Disks, Move]] = {goal: (goal, (0, 0))}
    layer = [goal]
    while start not in came:
        following = []
        for state in layer:
            for after, (a, b) in _next(state, pegs):
                if after not in came:
                    came[after] = state, (b, a)  # searched from the goal, walked from the start
                    following.append(after)
        layer = following
    moves, state = [], start
    while state != goal:
        state, move = came[state]
        moves.append(move)
    return tuple(moves)


def _next(state: Disks, pegs: int) -> Iterator[tuple[Disks, Move]]:
    tops: dict[int, int] = {}
    for disk, peg in enumerate(state):
        tops.setdefault(peg, disk)
    for a, disk in tops.items():
        for b in range(pegs):
            if b not in tops or tops[b] > disk:
                yield (*state[:disk], b, *state[disk + 1 :]), (a, b)


def _any(start: Disks, goal: Disks) -> Sequence[Move]:
    """Moves by way of all disks on the first peg; three pegs are enough."""
    return (*_gathered(start, 0), *_scattered(0, goal))


@lru_cache(maxsize=1024)
def _scattered(peg: int, goal: Disks) -> tuple[Move, ...]:
    """The moves that bring all disks from one peg to where they should be."""
    return tuple([(b, a) for a, b in reversed(_gathered(goal, peg))])


@lru_cache(maxsize=1024)
def _gathered(state: Disks, peg: int) -> tuple[Move, ...]:
    """The moves that bring all disks to one peg."""
    steps = []
    for disk in range(len(state) - 1, -1, -1):
        at = state[disk]
        if at != peg:
            third = _THIRD[at, peg]
            steps.append((disk, at, peg, third))
            peg = third  # there the smaller ones wait
    moves: list[Move] = []
    for disk, at, to, third in reversed(steps):
        moves += ((at, to), *_tower(disk, third, to))
    return tuple(moves)


@cache
def _tower(disks: int, a: int, b: int) -> tuple[Move, ...]:
    """The moves that bring the so many smallest disks together from a peg to another."""
    if not disks:
        return ()
    third = _THIRD[a, b]
    return (*_tower(disks - 1, a, third), (a, b), *_tower(disks - 1, third, b))


_THIRD = {
    (a, b): next(p for p in range(3) if p not in (a, b))
    for a in range(len(PEGS))
    for b in range(len(PEGS))
}


_TOKEN = re.compile(
    r"\b(?:disk|disc|ring)[\s#:\"']{0,4}(\d{1,3})\b"  # a disk that is named
    r"|\b\d{1,4}[.):](?=\s|[A-Za-z])"  # the number of a step
    r"|\b(\d{1,3})\b|([A-Za-z]+)|[-\s,;:.()\[\]{}<>\"'#=|→⟶⇒➔➜]+|(.)",
    re.IGNORECASE | re.ASCII,
)
_NOISE_WORDS = "move the disk disc ring from to into onto peg rod pole tower top then"
_NOISE = frozenset(_NOISE_WORDS.split())


_BARE = {
    pegs: {f"{PEGS[a]}->{PEGS[b]}": (0, a, b) for a in range(pegs) for b in range(pegs)}
    for pegs in range(3, len(PEGS) + 1)
}
"""By number of pegs: the moves as tasks ask for them."""


def _moves(text: str, pegs: int) -> list[tuple[int, int, int]]:
    """For each move the disk it names, 0 for none, and its two pegs."""
    bare = _BARE[pegs]
    try:
        return [bare[move] for move in text.split(", ")]
    except KeyError:
        return list(_read(text, PEGS[:pegs]))


def _read(text: str, pegs: str) -> Iterator[tuple[int, int, int]]:
    """Moves in any of the ways in which they are written."""
    disk, taken = 0, ""
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
                raise Unreadable(f"{shown(word, 40)} is no peg; the pegs are {', '.join(pegs)}")
            taken += word.upper()
        elif odd:
            raise Unreadable(f"unexpected {odd!r}")
        if len(taken) > 2:
            raise Unreadable("a move has two pegs")
        if len(taken) == 2:
            yield disk, pegs.index(taken[0]), pegs.index(taken[1])
            disk, taken = 0, ""
    if disk or taken:
        raise Unreadable("the last move is not complete")
