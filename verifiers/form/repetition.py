"""Repetition: does a reply say things once?"""

from __future__ import annotations

import re
from itertools import islice

from ..text.words import folded_words, strip_invisible
from ..verdict import Verdict
from .prose import Part, StyleVerifier

_RUN = re.compile(r"(\S{1,4}?)\1{15}(?>\1*)")


class Repetition(StyleVerifier):
    """Full marks for a reply that repeats few of its runs of words, none for a loop.

    A run of ``n`` words is repeated if it occurred before. A share of up to ``free`` repeated runs
    costs nothing; beyond it the score falls linearly to 0 at ``most``. A word that occurs more than
    ``run`` times in a row, or up to four characters more than ten times as often, with or without
    blanks, is a loop and earns 0. If a script has no spaces, words are letters; case, punctuation
    and invisible characters are ignored. The reference is ignored.

    The share is that of Yeo et al. (arXiv:2502.03373, section 4), who give each repeated run of
    40 tokens a small penalty, and of open-r1's reward, 1 - distinct / all for runs of 3, which
    penalises any long text, since more of its short runs recur.

    Args:
        n: words in a run.
        free: the share of repeated runs that costs nothing.
        most: the share from which nothing is left.
        run: how often a word may occur in a row.
        part: what is read: ``all``, the ``thought``, or the ``answer`` that follows it.
        content: different words that it must hold, or it says nothing and earns 0.

    Raises:
        ValueError: n or run is below 1, not 0 <= free < most <= 1, content is below 1, or the
            part is not known.

    Example:
        >>> said_once = Repetition(content=5)
        >>> said_once.verify("Six times seven is forty-two, as the table shows.", None).score
        1.0
        >>> said_once.verify("So it is. Let me check it again. " * 9, None).score
        0.0
    """

    def __init__(
        self,
        *,
        n: int = 8,
        free: float = 0.2,
        most: float = 0.6,
        run: int = 20,
        part: Part = "all",
        content: int = 20,
    ) -> None:
        if n < 1 or run < 1:
            raise ValueError(f"n and run must be at least 1, got {n!r} and {run!r}")
        if not 0 <= free < most <= 1:
            raise ValueError(f"need 0 <= free < most <= 1, got {free!r} and {most!r}")
        super().__init__(part, content)
        self.n, self.free, self.most, self.run = n, free, most, run

    def judge_text(self, text: str) -> Verdict:
        """Judge a text in a fixed number of passes."""
        for found in _RUN.finditer("".join(strip_invisible(text).split())):
            times = len(found.group()) // len(found[1])
            if times > 10 * self.run:
                return Verdict.wrong(f"{found[1]!r} occurs {times} times in a row")
        numbered = _numbered(text)
        word_run = _longest_run(numbered)
        if word_run > self.run:
            return Verdict.wrong(f"a word occurs {word_run} times in a row")
        share = _repeated(numbered, self.n)
        if share <= self.free:
            return Verdict.correct(f"{share:.0%} repeated")
        score = max(0.0, (self.most - share) / (self.most - self.free))
        return Verdict.wrong(f"{share:.0%} repeated, {self.free:.0%} is free", score=score)


def _numbered(text: str) -> list[int]:
    """Return the words as numbers: the first word 0, the next distinct one 1, and so on."""
    seen: dict[str, int] = {}
    return [seen.setdefault(word, len(seen)) for word in folded_words(text)]


def _longest_run(numbers: list[int]) -> int:
    best = current = 0
    before = None
    for number in numbers:
        current = current + 1 if number == before else 1
        before = number
        best = max(best, current)
    return best


def _repeated(numbers: list[int], n: int) -> float:
    """Return the share of runs of ``n`` that occurred before."""
    every = len(numbers) - n + 1
    if every < 1:
        return 0.0
    runs = zip(*(islice(numbers, k, None) for k in range(n)), strict=False)
    return 1 - len(set(runs)) / every
