"""Word ladders: does each word differ from the last in one letter?"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import pairwise
from typing import Any

from ..validation import safe_repr
from .puzzle import BadReference, ShortestVerifier, check_list, fields
from .reading import items, names, repeated
from .search import shortest_path

MAX_WORDS = 5_000
_WORD = re.compile(r"[^\W\d_]{2,20}")


class WordLadder(ShortestVerifier):
    r"""Accept any ladder from the first word to the last, one letter changed at each step.

    The ladder names its words from first to last, ``cold -> cord -> card``, ``cold, cord, card``
    or the like. All must be words of the list, none twice. Case does not count.

    Reference: ``{"words": ["cold", "cord", "card"], "start": "cold", "goal": "card"}``, words of
    one length; with ``"shortest": true`` only a shortest ladder passes.

    Args:
        shortest: only shortest ladders win, whatever the reference says.
    """

    def check(self, reference: Any) -> None:
        """Check that a ladder joins two words of one length."""
        words, *ends = fields(reference, "words", "start", "goal", flags=("shortest",))
        check_list("words", words, 2, MAX_WORDS, "words")
        for word in [*words, *ends]:
            if type(word) is not str or not _WORD.fullmatch(word):
                raise BadReference(f"a word must be 2 to 20 letters, got {safe_repr(word, 60)}")
        if len({len(word.casefold()) for word in words}) != 1:
            raise BadReference("all words must be of one length")
        if not {end.casefold() for end in ends} <= {word.casefold() for word in words}:
            raise BadReference(f"start and goal must be among the words, got {safe_repr(ends)}")
        if ends[0].casefold() == ends[1].casefold():
            raise BadReference("start and goal must differ, or nothing is to be done")
        if not _ladder(reference):
            raise BadReference("no ladder leads from start to goal")

    def oracle_reply(self, reference: Any) -> str | None:
        return " -> ".join(_ladder(reference))

    def fault(self, text: str, reference: Any) -> str | None:
        words = list(dict.fromkeys(word.casefold() for word in reference["words"]))
        ladder = names(items(text), words)
        start, goal = reference["start"].casefold(), reference["goal"].casefold()
        if (ladder[0], ladder[-1]) != (start, goal):
            return f"leads from {ladder[0]} to {ladder[-1]}, not from {start} to {goal}"
        if (twice := repeated(ladder)) is not None:
            return f"names {twice} twice"
        for a, b in pairwise(ladder):
            if sum(x != y for x, y in zip(a, b, strict=True)) != 1:
                return f"{a} and {b} do not differ in one letter"
        if self.demands("shortest", reference) and len(ladder) > (least := len(_ladder(reference))):
            return f"takes {len(ladder)} words, {least} suffice"
        return None


def _ladder(reference: Any) -> tuple[str, ...]:
    words = tuple(dict.fromkeys(word.casefold() for word in reference["words"]))
    return shortest_ladder(words, reference["start"].casefold(), reference["goal"].casefold())


@lru_cache(maxsize=256)
def shortest_ladder(words: tuple[str, ...], start: str, goal: str) -> tuple[str, ...]:
    """Return a shortest ladder by breadth-first search, empty if there is none."""
    rungs: dict[tuple[int, str], list[str]] = {}
    for word in words:
        for at in range(len(word)):
            rungs.setdefault((at, word[:at] + word[at + 1 :]), []).append(word)
    path = shortest_path(
        start,
        goal.__eq__,
        lambda word: (
            (0, near) for at in range(len(word)) for near in rungs[at, word[:at] + word[at + 1 :]]
        ),
    )
    return (start, *(word for _, word in path)) if path else ()
