"""Exact: is the reply the known text, character by character?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from unicodedata import normalize

from .text.extract import check_rules, final_answer, format_answer
from .text.thought import UNCLOSED, after_thinking
from .verdict import Verdict
from .verifier import Verifier


class Exact(Verifier):
    r"""String equality. White space at both ends never counts.

    A reference is a string that is more than white space.

    Args:
        case: whether capitals count.
        whitespace: whether inner white space counts; if not, each run of it is one space.
        extract: rules that find the answer in the reply, as for
            :class:`~assay.verifiers.maths.Math`; ``None`` for all that follows the thought.

    Raises:
        ValueError: there is no rule of that name.

    Example:
        >>> Exact(case=False).verify(" paris\n", "Paris").score
        1.0
    """

    is_cheap = True

    def __init__(
        self,
        *,
        case: bool = True,
        whitespace: bool = True,
        extract: Sequence[str] | None = None,
    ) -> None:
        if extract is not None:
            check_rules(extract)
        self.case, self.whitespace = case, whitespace
        self._loose = not (case and whitespace)
        self.extract = None if extract is None else tuple(extract)

    def judge(self, reply: str, reference: Any) -> Verdict:
        """Judge one reply."""
        if self.extract is None:
            given, reason = after_thinking(reply), UNCLOSED
        else:
            given, _, reason, *_ = final_answer(reply, self.extract)
        if given is None:
            return Verdict.unparseable(reason)
        given = given.strip()
        if not given:
            return Verdict.unparseable("the answer is empty")
        known = reference.strip()
        if not given.isascii():  # an accent may be a character of its own
            given, known = normalize("NFC", given), normalize("NFC", known)
        if given == known or (self._loose and self._plain(given) == self._plain(known)):
            return Verdict.correct("equal", extracted=given)
        return Verdict.wrong("not the expected text", extracted=given)

    def check_reference(self, reference: Any) -> str | None:
        """Require a string that is not blank."""
        if not isinstance(reference, str):
            remedy = "judge numbers by Math, or make them text by str()"
            return f"a reference must be text, got {reference!r:.80}: {remedy}"
        return None if reference.strip() else "the reference is empty, so nothing can match it"

    def oracle_reply(self, reference: Any) -> str | None:
        """Return the reference in the form of the first rule."""
        return format_answer(str(reference), self.extract)

    def _plain(self, text: str) -> str:
        text = text if self.whitespace else " ".join(text.split())
        return text if self.case else text.casefold()
