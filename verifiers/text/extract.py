r"""Find the one answer a reply commits to.

Every rule reads the reply a fixed number of times, whatever it holds: a reply of one megabyte
of ``\boxed{`` costs no more than one of prose. A thought is no answer: only what follows the
last ``</think>`` counts, and a ``<think>`` that is never closed leaves nothing to judge. Nor is an
HTML comment, where a label may introduce the answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache

from .answer import MAX_ANSWER, Answer
from .boxes import boxed, last_box
from .fences import fenced_blocks
from .labels import after_label, answer_line_after, answer_tag, hash_line, tag
from .numbers import last_math, last_number
from .thought import UNCLOSED, after_thinking
from .words import strip_closed_comments

DEFAULT_RULES = ("boxed", "answer", "hash", "phrase", "last_number")


def final_answer(
    reply: str, rules: Sequence[str] = DEFAULT_RULES, *, longest: int = MAX_ANSWER
) -> Answer:
    r"""Apply the rules in order; the first one that finds its mark decides, right or wrong.

    Args:
        reply: the whole reply.
        rules: names from :data:`RULES`:

            - ``boxed``: the last ``\boxed{}`` or ``\fbox{}``, with a sign before it and a percent
              sign after it. Boxes with nothing but commas, ``and`` or ``or`` between them are one
              list; of boxes that stand apart the last counts. A last box that never closes, or
              that is a factor or an exponent in a larger formula, is no answer. If one of the next
              three rules is asked for as well, and a later line states an answer with a label
              (``Final answer: 5``, ``#### 5``, ``<answer>5</answer>``), that line decides.
            - ``answer``: the last ``<answer>...</answer>``, unless the words next to it deny it.
            - ``tag``: all that the last ``<answer>`` holds; ``answer`` reads "The answer is 5.
              It is prime." as 5.
            - ``hash``: the last line with ``####``, unless it is a heading in words.
            - ``phrase``: what follows the last label ("answer is", "answer:", "solution is",
              答案是; eight more languages), to the end of the sentence; of "Answer: The largest
              n is 5" the 5. The field ``"answer": "5"`` of JSON is a label too.
            - ``last_math``: the last ``$...$``, ``\(...\)`` or ``\[...\]``.
            - ``last_number``: the last number with its sign, unless it is a part of something
              else or the words next to it hedge or deny it ("5 or 6", "not 6", "6 is wrong").
            - ``fence``: the last fenced block, whatever its language.
            - ``last_line``: the last line that is not blank.
            - ``last_paragraph``: the last lines with no blank line between them.
            - ``whole``: everything.
        longest: an answer of more characters is not read.

    Raises:
        ValueError: there is no rule of that name.
    """
    if isinstance(rules, str):
        check_rules(rules)
    if "<|begin_of_box|>" in reply:  # as GLM-4.5V writes it
        reply = reply.replace("<|begin_of_box|>", "\\boxed{").replace("<|end_of_box|>", "}")
    text = after_thinking(reply)
    if text is None:
        return Answer(None, reason=UNCLOSED)
    if "-->" in text and not _LABELS.isdisjoint(rules):
        text = strip_closed_comments(text)
    for rule, find in _finders(tuple(rules)):
        found = find(text)
        if found is None:
            continue
        given, named, reason, *_ = found
        if given is None:
            return Answer(None, rule, reason)
        if named and len(given) <= longest:  # the rule has made sure of the rest
            return found
        answer = given.strip()
        if answer and len(given) > longest:
            return Answer(None, rule, f"the answer is longer than {longest} characters")
        return (
            found._replace(text=answer, rule=rule)
            if answer
            else Answer(None, rule, "the answer is empty")
        )
    return Answer(None, reason=f"no answer found by {', '.join(rules)}")


def format_answer(answer: str, rules: Sequence[str] | None) -> str:
    r"""Format an answer as the first of some extraction rules reads it; bare if there is none.

    Example:
        >>> format_answer("42", ("boxed", "hash"))
        '\\boxed{42}'
    """
    # replace, not %: an answer may hold percent signs
    return _FORMATS.get(rules[0] if rules else "", "%s").replace("%s", answer)


_FORMATS = {
    "boxed": r"\boxed{%s}",
    "answer": "<answer>%s</answer>",
    "hash": "#### %s",
    "phrase": "The answer is %s.",
    "last_math": "$%s$",
}


def check_rules(rules: Sequence[str]) -> None:
    """Refuse names that are no rule."""
    unknown = [rule for rule in rules if rule not in RULES]
    if unknown or not rules or isinstance(rules, str):
        raise ValueError(
            f"extract must be a sequence of rules from {', '.join(RULES)}, got {rules!r}"
        )


@lru_cache(maxsize=256)
def _finders(rules: tuple[str, ...]) -> tuple[tuple[str, Callable[[str], Answer | None]], ...]:
    """Return the functions of rules; they are checked once, not with each reply."""
    check_rules(rules)
    finders = [(rule, RULES[rule]) for rule in rules]
    if "boxed" in rules and not _LABELS.isdisjoint(rules[rules.index("boxed") :]):
        finders[rules.index("boxed")] = ("boxed", _boxed_unless_restated)
    return tuple(finders)


_LABELS = frozenset(("answer", "hash", "phrase"))


def _boxed_unless_restated(text: str) -> Answer | None:
    """Return the boxed answer; ``None`` if a later line states an answer with a label."""
    found = last_box(text)
    if found is None or answer_line_after(text, found[1]):
        return None
    return found[0]


def _fenced(text: str) -> Answer | None:
    closed, unclosed = fenced_blocks(text)
    if unclosed is not None:
        return Answer(None, reason="the last code fence is never closed")
    return Answer(closed[-1].text) if closed else None


def _last_line(text: str) -> Answer | None:
    return Answer(_unruled(text).rpartition("\n")[2])


_BLANK_LINE = re.compile(r"\n[ \t\r]*\n")


def _last_paragraph(text: str) -> Answer | None:
    blocks = _BLANK_LINE.split(_unruled(text).lstrip())
    return Answer(blocks[-1])


def _unruled(text: str) -> str:
    """Remove Markdown's lines across the page from the end of a text, in linear time."""
    end = len(text.rstrip())
    while text.endswith(("---", "***", "___"), 0, end):
        start = text.rfind("\n", 0, end) + 1
        if not start or len(set(text[start:end].strip())) > 1:
            break
        end = start
        while end and text[end - 1].isspace():
            end -= 1
    return text[:end]


def _whole(text: str) -> Answer | None:
    return Answer(text)


RULES: dict[str, Callable[[str], Answer | None]] = {
    "boxed": boxed,
    "answer": answer_tag,
    "tag": tag,
    "hash": hash_line,
    "phrase": after_label,
    "last_math": last_math,
    "last_number": last_number,
    "fence": _fenced,
    "last_line": _last_line,
    "last_paragraph": _last_paragraph,
    "whole": _whole,
}
