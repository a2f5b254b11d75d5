"""Compression: does a text say more than a loop of its length would?"""

from __future__ import annotations

import zlib

from ..text.words import strip_invisible
from ..verdict import Verdict
from .prose import Part, StyleVerifier

_OVERHEAD = 8  # bytes that zlib takes for nothing at all
_SHORT = 300  # bytes of text that a compressor needs to find its feet


class Compression(StyleVerifier):
    r"""Full marks for a reply that does not compress like a loop.

    The ratio is that of zlib's bytes (level 6, minus its constant 8) to the bytes of the text in
    UTF-8, with runs of white space as one. Prose and proofs have 0.3 to 0.6, less if they are long;
    loops have less than 0.1, even if each round differs slightly and so escapes
    :class:`Repetition`. Full marks from ``least``, falling linearly to 0 at half of it. Short texts
    compress badly: for :math:`b` bytes the bound is ``least`` times :math:`1 + 300 / (300 + b)`.
    The reference is ignored.

    Args:
        least: the ratio that earns full marks.
        part: what is read: ``all``, the ``thought``, or the ``answer`` that follows it.
        content: different words that it must hold, or it says nothing and earns 0.

    Raises:
        ValueError: ``least`` is not in (0, 0.5], content is below 1, or the part is not known.

    Example:
        >>> lean = Compression(content=5)
        >>> lean.verify("Six times seven is forty-two, as the table shows.", None).score
        1.0
        >>> lean.verify("So it is. Let me check it again. " * 9, None).score
        0.0
    """

    def __init__(self, *, least: float = 0.2, part: Part = "all", content: int = 20) -> None:
        if not 0 < least <= 0.5:
            raise ValueError(f"least must be above 0 and at most 0.5, got {least!r}")
        super().__init__(part, content)
        self.least = least

    def judge_text(self, text: str) -> Verdict:
        """Judge a text."""
        data = " ".join(strip_invisible(text).split()).encode("utf-8", "surrogatepass")
        ratio = max(0, len(zlib.compress(data, 6)) - _OVERHEAD) / len(data)
        least = self.least * (1 + _SHORT / (_SHORT + len(data)))
        if ratio >= least:
            return Verdict.correct(f"compresses to {ratio:.0%}")
        reason = f"compresses to {ratio:.0%}, less than {least:.0%}"
        return Verdict.wrong(reason, score=max(0.0, 2 * ratio / least - 1))
