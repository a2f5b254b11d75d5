r"""Commitment: does a reply give one answer and stand by it?"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from ..text.boxes import boxes, unboxed
from ..text.extract import DEFAULT_RULES, check_rules, final_answer
from ..text.markup import unwrap_text
from ..text.thought import after_thinking
from ..text.words import check_content, distinct_words, has_content
from ..verdict import Verdict
from ..verifier import Verifier
from .prose import part_of

_TAIL = 2000  # characters before the end in which a refusal is looked for
_DECLINES = re.compile(
    r"\b(?:i\s(?:do\snot|don['’]t|really\sdon['’]t)\sknow|i(?:['’]m|\sam)\s(?:not\s(?:really\s|at\sall\s)?(?:sure|certain)|"
    r"unsure|unable|sorry|guessing)|(?:i\s)?(?:cannot|can['’]t|can\snot)\s(?:help|answer|assist|say|tell|solve)|"
    r"no\sidea|as\san\sai\b|i\s(?:give|gave)\sup|(?:only\s)?a\s(?:wild\s)?guess|just\sguessing|"
    r"i\s(?:decline|refuse))",
    re.IGNORECASE,
)
_WITHDRAWN = re.compile(
    r"\b(?:wait|actually|hmm+|oops|sorry)\b[^.!?\n]{0,20}\b(?:that|this|it)(?:['’]s|\s(?:is|was))\s"
    r"(?:wrong|incorrect|mistaken|a\smistake|not\s(?:right|correct))\b",
    re.IGNORECASE,
)
_OPEN = re.compile(
    r"\s*(?:(?:i\s)?(?:don['’]?t|do\snot)\sknow|unknown|unclear|none|null|nothing|n/?a|nan|idk|tbd|"
    r"not\s(?:sure|known|given)|no\sidea|any(?:thing)?|(?:the\s)?answer|reference|"
    r"\\[cl]?dots)[\s.!]*",
    re.IGNORECASE,
)
_EITHER = re.compile(
    r"\b(?:or|either|maybe|perhaps|possibly|probably|between|and/or|neither)\b|\?|\Anot\s[-$\\\d]",
    re.IGNORECASE,
)


class Commits(Verifier):
    r"""Full marks for a reply that explains itself and commits to one answer.

    It earns 0 for: no answer; an answer that the words next to it deny, question or withdraw, by
    the rules of extraction; boxes or ``<answer>`` tags that differ; alternatives in the answer
    ("5 or 6", "maybe 5"); a non-answer ("unknown", "?"); and a refusal or a guess in the last 2000
    characters ("I don't know", "I am not sure"). Whether the answer is correct is not checked: gate
    this with a verifier that does, or use it if none can. The reference is ignored.

    Args:
        extract: the rules by which the answer is found, as for
            :func:`~assay.verifiers.text.extract.final_answer`.
        content: different words that the reply must hold beside its answer.

    Raises:
        ValueError: a rule is not known, or content is below 1.

    Example:
        >>> one = Commits(content=4)
        >>> one.verify(r"Six times seven is \boxed{42}, by the table.", None).score
        1.0
        >>> one.verify(r"Six times seven is \boxed{42 or 43}, by the table.", None).reason
        'the answer leaves a choice'
    """

    judges_form = True

    def __init__(self, *, extract: Sequence[str] = DEFAULT_RULES[:-1], content: int = 20) -> None:
        check_rules(extract)
        check_content(content)
        self.extract, self.content = tuple(extract), content

    def judge(self, reply: str, reference: Any) -> Verdict:
        """Judge one reply."""
        found = final_answer(reply, self.extract)
        if found.text is None:
            return Verdict.unparseable(found.reason)
        fault = _wavers(found.text) or _differ(reply)
        text = part_of(reply, "all") or ""
        if not fault and _DECLINES.search((after_thinking(reply) or "")[-_TAIL:]):
            fault = "it declines, or guesses"
        before, _, after = text.rpartition(found.text)
        if not fault and _WITHDRAWN.search(after):
            fault = "the answer is taken back"
        rest = f"{before} {after}"
        if not fault and distinct_words(rest, enough=self.content) < self.content:
            fault = f"explains too little: fewer than {self.content} different words"
        if fault:
            return Verdict.wrong(fault, extracted=found.text)
        return Verdict.correct("commits to one answer", extracted=found.text)


def _wavers(answer: str) -> str:
    text = unwrap_text(answer, " ")
    if _OPEN.fullmatch(text.strip(" $*`")) or not has_content(text):
        return "the answer is none"
    return "the answer leaves a choice" if _EITHER.search(text) else ""


def _differ(reply: str) -> str:
    """Return the reason for boxes and tags that contain different answers."""
    text = after_thinking(reply) or ""
    contents = {" ".join(unboxed(content).split()) for _, _, content in boxes(text)[0]}
    if len(contents) > 1:
        return f"{len(contents)} different boxes"
    tagged = {part.partition("</answer>")[0].strip() for part in text.split("<answer>")[1:]}
    return f"{len(tagged)} different answers in tags" if len(tagged) > 1 else ""
