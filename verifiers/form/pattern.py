"""Pattern: does the answer match, or avoid, a regular expression?"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from ..text.extract import check_rules, final_answer
from ..text.words import strip_invisible
from ..validation import check_one_of
from ..verdict import Verdict
from ..verifier import Verifier
from .linear import compiled

MAX_TEXT = 100_000
"""Characters. A longer answer is not read."""

MODES = ("full", "contains", "absent")
_MOST_TIMES = 100
_MIN_WORDS_WHERE_ABSENT = 20
_WORD = re.compile(r"[^\W\d_]{2,}")
_JUNK = ("0", "...", "I don't know.")


class Pattern(Verifier):
    r"""Full marks for text that a regular expression allows.

    The pattern is RE2's, so a verdict takes linear time and depends on no clock; patterns with
    look-around or back-references are refused, and so are those that match the empty text, or all
    of ``0``, ``...`` and ``I don't know.``, which would pay for anything. White space at both ends
    of the text is ignored; a text of more than 100,000 characters fails.

    Avoiding a pattern takes no effort, so ``absent`` also requires ``min_words`` distinct words of
    at least two letters.

    Reference: the pattern, if the constructor has none; else ignored.

    Args:
        pattern: one for all tasks.
        mode: ``"full"``: the whole text matches. ``"contains"``: a part of it does. ``"absent"``:
            no part does.
        times: with ``"contains"``, how many parts must match, without overlap; else one or more.
        extract: rules that find the text in the reply, as for
            :class:`~assay.verifiers.maths.Math`; ``None`` for all that follows the thought.
        case: whether capitals count.
        min_words: how many different words the text must have; 20 if the mode is
            ``"absent"``, else none.

    Raises:
        ValueError: the pattern is refused, or an option is none of these.

    Example:
        >>> Pattern(r"[A-Z]{3}-\d{4}").verify("KLM-0042", None).score
        1.0
        >>> Pattern(r"(?i)\bplease\b", mode="absent").verify("No.", None).reason
        'has 1 different words, 20 are needed'
    """

    def __init__(
        self,
        pattern: str | None = None,
        *,
        mode: str = "full",
        times: int | None = None,
        extract: Sequence[str] | None = None,
        case: bool = True,
        min_words: int | None = None,
    ) -> None:
        check_one_of("mode", mode, MODES)
        if times is not None and (mode != "contains" or times not in range(1, _MOST_TIMES + 1)):
            raise ValueError(
                f"times goes with mode='contains' and is a whole number from 1 to {_MOST_TIMES}, "
                f"got {times!r} with mode={mode!r}"
            )
        least = 1 if mode == "absent" else 0
        if min_words is not None and (type(min_words) is not int or min_words < least):
            raise ValueError(
                f"min_words must be a whole number from {least} with mode={mode!r}, "
                f"got {min_words!r}"
            )
        if extract is not None:
            check_rules(extract)
        self.pattern, self.mode, self.times, self.case = pattern, mode, times, case
        self.extract = None if extract is None else tuple(extract)
        self.min_words = min_words
        fault = None if pattern is None else self._fault(pattern)
        if fault is not None:
            raise ValueError(fault)

    def check_reference(self, reference: Any) -> str | None:
        """Require a string that RE2 accepts and that does not match every text."""
        return None if self.pattern is not None else self._fault(reference)

    def judge(self, reply: str, reference: Any) -> Verdict:
        """Judge one reply."""
        found = final_answer(reply, self.extract or ("whole",), longest=MAX_TEXT)
        if found.text is None:
            return Verdict.unparseable(found.reason)
        fault = self._too_few_words(found.text) or self._wrong(found.text, reference)
        if fault:
            return Verdict.wrong(fault, extracted=found.text)
        return Verdict.correct("as the pattern asks", extracted=found.text)

    def _wrong(self, text: str, reference: Any) -> str:
        held = compiled(reference if self.pattern is None else self.pattern, self.case)
        if self.mode == "full":
            return "" if held.fills(text) else "the text does not match the pattern"
        if self.times is not None:
            count = held.count(text, self.times + 1)
            more = " or more" if count > self.times else ""
            return f"matches {count}{more}, not {self.times} times" * (count != self.times)
        found = held.stands_in(text) or (
            self.mode == "absent" and held.stands_in(strip_invisible(text))
        )
        if found == (self.mode == "contains"):
            return ""
        return "a part matches the pattern" if self.mode == "absent" else "no part matches"

    def _too_few_words(self, text: str) -> str:
        absent = _MIN_WORDS_WHERE_ABSENT if self.mode == "absent" else 0
        needed = absent if self.min_words is None else self.min_words
        if not needed:
            return ""
        words = {word.casefold() for word in _WORD.findall(text)}
        if len(words) >= needed:
            return ""
        return f"has {len(words)} different words, {needed} are needed"

    def _fault(self, pattern: Any) -> str | None:
        if not isinstance(pattern, str) or not pattern:
            return f"the pattern must be a string that is not empty, got {pattern!r:.80}"
        try:
            held = compiled(pattern, self.case)
        except ValueError as error:
            return str(error)
        if held.stands_in(""):
            return f"the pattern {pattern!r:.80} matches the empty text: ask for something"
        matches = held.fills if self.mode == "full" else held.stands_in
        if self.mode != "absent" and all(map(matches, _JUNK)):
            return f"the pattern {pattern!r:.80} matches any text: ask for something"
        return None
