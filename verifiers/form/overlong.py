"""Soft overlong: a reply that nears its limit loses marks little by little."""

from __future__ import annotations

from ..validation import check_one_of
from ..verdict import Verdict
from .measure import UNITS, Unit, length
from .prose import Part, StyleVerifier


class SoftOverlong(StyleVerifier):
    """Full marks up to a length, then linearly less, and none from ``most`` on.

    DAPO (arXiv:2503.14476, equation 13) adds R to the reward of a reply of length L: 0 up to
    ``L_max - L_cache``, then ``((L_max - L_cache) - L) / L_cache``, and -1 beyond ``L_max``. The
    score here is 1 + R, in [0, 1], which differs by a constant that the group's mean removes. DAPO
    counts tokens, which a verifier does not see: if tokens matter, shape lengths in the learner.
    The reference is ignored.

    Args:
        most: the length from which nothing is left, DAPO's ``L_max``.
        cache: over how much of it marks fall, DAPO's ``L_cache``.
        unit: ``words``, ``characters`` or ``sentences``.
        part: what is measured: ``all``, the ``thought``, or the ``answer`` that follows it.
        content: different words that it must hold, or it says nothing and earns 0.

    Raises:
        ValueError: not 0 < cache <= most, a number is too small, or a name is not known.

    Example:
        >>> soft = SoftOverlong(most=20, cache=10, content=5)
        >>> said = "one two three four five "
        >>> [soft.verify(said * times, None).score for times in (2, 3, 4)]
        [1.0, 0.5, 0.0]
    """

    def __init__(
        self,
        most: int,
        cache: int,
        *,
        unit: Unit = "words",
        part: Part = "all",
        content: int = 20,
    ) -> None:
        if not 0 < cache <= most:
            raise ValueError(f"cache must be above 0 and at most {most!r} (most), got {cache!r}")
        check_one_of("unit", unit, UNITS)
        super().__init__(part, content)
        self.most, self.cache, self.unit = most, cache, unit

    def judge_text(self, text: str) -> Verdict:
        """Measure a text."""
        found = length(text, self.unit)
        free = self.most - self.cache
        if found <= free:
            return Verdict.correct(f"{found} {self.unit}")
        score = 1 + max(-1.0, (free - found) / self.cache)
        return Verdict.wrong(f"{found} {self.unit}, {free} are free", score=score)
