"""Format: did the reply think in one place and answer in another?"""

from __future__ import annotations

import re
from typing import Any

from ..verdict import Status, Verdict
from ..verifier import Verifier

_TAG = re.compile(r"</?(?:think|answer)>")
_ORDER = ("<think>", "</think>", "<answer>", "</answer>")
_SOMETHING = re.compile(r"[^\W_]")


class Format(Verifier):
    """Full marks for exactly ``<think>...</think> <answer>...</answer>``.

    Each tag stands once and in this order, each part holds a letter or a digit at least, and
    there is nothing but white space before, between and after. The reference is not looked at.

    Args:
        prefilled_think: the prompt has already opened ``<think>``, so the reply must not.

    Example:
        >>> Format().verify("<think>6 by 7</think><answer>42</answer>", None).score
        1.0
    """

    def __init__(self, *, prefilled_think: bool = False) -> None:
        self.prefilled_think = prefilled_think

    def winning_reply(self, reference: Any) -> str | None:
        """A short thought and an answer."""
        return f"{'' if self.prefilled_think else '<think>'}6 by 7</think><answer>42</answer>"

    def judge(self, reply: str, reference: Any) -> Verdict:
        """Judge one reply in one pass."""
        expected = _ORDER[1:] if self.prefilled_think else _ORDER
        pieces: list[str] = []
        tags: list[str] = []
        at = 0
        for tag in _TAG.finditer(reply):
            if len(tags) == len(expected) or tag.group() != expected[len(tags)]:
                return _wrong(_complaint(tag.group(), tags, expected))
            pieces.append(reply[at : tag.start()])
            tags.append(tag.group())
            at = tag.end()
        if len(tags) < len(expected):
            return _wrong(f"{expected[len(tags)]} is missing")
        pieces.append(reply[at:])
        if self.prefilled_think:
            pieces.insert(0, "")
        before, thought, between, answer, after = pieces
        for place, text in (("before", before), ("between", between), ("after", after)):
            if text.strip():
                return _wrong(f"there is text {place} the tags")
        for name, text in (("thought", thought), ("answer", answer)):
            if not _SOMETHING.search(text):
                return _wrong(f"the {name} is empty")
        return Verdict.correct("well formed", extracted=answer.strip())


def _complaint(tag: str, seen: list[str], expected: tuple[str, ...]) -> str:
    if tag in seen:
        return f"{tag} stands twice"
    if tag not in expected:
        return f"{tag} is in the prompt already"
    return f"{tag} comes before {expected[len(seen)]}"


def _wrong(reason: str) -> Verdict:
    return Verdict.wrong(reason, status=Status.UNPARSEABLE)
