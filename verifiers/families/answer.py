r"""The one answer of a reply to a task of a family."""

from __future__ import annotations

import re

from ..extract import Answer, final_answer, unboxed

ONE_LINE = ("answer", "boxed", "fence", "last_line")
"""Where an answer of one line is: the first rule that finds its mark decides."""

BLOCK = ("answer", "boxed", "fence", "last_paragraph")
"""Where an answer of several lines is."""

_SIGNS = ("**", "`", "$$", "$")
_LABEL = re.compile(
    r"(?:\#{1,6}\s{1,3})?(?:\*\*)?(?:(?:so|thus|hence|therefore),?\s{1,3})?(?:(?:the|my|our)\s{1,3})?"
    r"(?:(?:final|correct|right)\s{1,3})?(?:answer|solution)\b[ *]{0,3}"
    r"(?::|=|\n|\bis\b\s{0,3}:?)[\s*]{0,9}(?=\S)",
    re.IGNORECASE,
)


class Unreadable(ValueError):
    """The text is no answer of the family's form; the message says why."""


def read_answer(reply: str, rules: tuple[str, ...] = ONE_LINE, *, longest: int = 2000) -> Answer:
    r"""The answer without what only sets it off: a fence or box in the tags, a label, bold, code.

    The whole of it is the answer: a verifier that finds anything else in it refuses it, so no
    reply wins by naming several.

    Example:
        >>> read_answer("I try.\n<answer>**(3+5)*3**</answer>").text
        '(3+5)*3'
        >>> read_answer("I try.\n**Final answer:** (3+5)*3").text
        '(3+5)*3'
    """
    if (rules is BLOCK or rules is ONE_LINE) and len(reply) <= longest:
        bare = _undressed(reply)
        if bare and (rules is BLOCK or "\n" not in bare):
            return Answer(bare, rules[-1])
    found = final_answer(reply, rules, longest=longest)
    if found.text is None:
        return found
    text = found.text
    if text.isalnum():
        return found
    if found.rule == "answer":
        inner = final_answer(text, ("fence", "whole"), longest=longest)
        text = text if inner.text is None or not text.startswith(("```", "~~~")) else inner.text
    text = _bare(unboxed(text))
    return found._replace(text=_bare(unboxed(unlabelled(text))))


_MARK = re.compile(r"[<\\`~$*#]")
_BREAK = re.compile(r"\n\s*\n")


def _undressed(reply: str) -> str:
    """A reply that has no mark, no label and one paragraph; empty where it might have more.

    Most replies to a task that asks for nothing but the answer are of this kind, and the rules
    would find each of them as it stands.
    """
    if not reply.isascii() or _MARK.search(reply):
        return ""
    text, small = reply.strip(), reply.lower()
    if "answer" in small or "solution" in small or ("\n" in text and _BREAK.search(text)):
        return ""
    return text


def unlabelled(text: str) -> str:
    """A text without "Final answer:" or "So the answer is" before it.

    Example:
        >>> unlabelled("**Answer**: 5"), unlabelled("The answer is not 5"), unlabelled("Answer:")
        ('5', 'not 5', 'Answer:')
    """
    label = _LABEL.match(text)
    if label is None:
        return text
    rest = text[label.end() :]
    return rest.removesuffix("**") if "**" in label.group() and rest.count("**") == 1 else rest


def _bare(text: str) -> str:
    for sign in _SIGNS:
        if len(text) > 2 * len(sign) and text.startswith(sign) and text.endswith(sign):
            text = text[len(sign) : -len(sign)].strip()
    return text
