"""Length: is a reply neither too short nor too long?"""

from __future__ import annotations

from math import isqrt

from ..text.sentences import sentences
from ..validation import check_one_of
from ..verdict import Verdict
from .measure import UNITS, Unit, length
from .prose import Part, StyleVerifier

_WORDS = {"words": 1.0, "characters": 1 / 6, "sentences": 8.0}


class Length(StyleVerifier):
    """Full marks for a reply whose length is within a window.

    Padding does not count: runs of white space and invisible characters count once or not at all, a
    repeated sentence counts towards ``least`` once, and there must be as many distinct words as the
    square root of those that ``least`` takes. The reference is ignored.

    Args:
        least: the fewest units.
        most: the most units; any number if ``None``.
        unit: ``words`` (of Chinese and Japanese: letters),
            ``characters`` or ``sentences``.
        part: what is measured: ``all``, the ``thought``, or the ``answer`` that follows it.
        content: different words that it must hold, or it says nothing and earns 0.

    Raises:
        ValueError: the window is empty, a number is too small, or unit or part is not known.

    Example:
        >>> Length(most=12).verify("Paris, on the Seine, is the capital of France.", None).score
        1.0
        >>> Length(least=12).verify("Paris is the capital of France.", None).reason
        '6 words, at least 12 are required'
    """

    def __init__(
        self,
        *,
        least: int = 0,
        most: int | None = None,
        unit: Unit = "words",
        part: Part = "all",
        content: int = 6,
    ) -> None:
        if least < 0 or (most is not None and most < max(1, least)):
            raise ValueError(f"need 0 <= least <= most and most >= 1, got {least!r} and {most!r}")
        if not least and most is None:
            raise ValueError("every reply is long enough for Length(): give least, most or both")
        check_one_of("unit", unit, UNITS)
        super().__init__(part, content)
        self.least, self.most, self.unit = least, most, unit

    @property
    def least_words(self) -> int:
        """At least the square root of the words that ``least`` takes."""
        return max(self.content, isqrt(int(self.least * _WORDS[self.unit])))

    def judge_text(self, text: str) -> Verdict:
        """Measure a text."""
        found = length(text, self.unit)
        if self.most is not None and found > self.most:
            return Verdict.wrong(f"{found} {self.unit}, at most {self.most} are allowed")
        if self.unit == "sentences" and found >= self.least:
            found = len(set(sentences(text, headings=True)))
        if found < self.least:
            return Verdict.wrong(f"{found} {self.unit}, at least {self.least} are required")
        return Verdict.correct(f"{found} {self.unit}")
