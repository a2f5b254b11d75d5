r"""The one answer of a reply to a task of a family."""

from __future__ import annotations

import re

from .answer import Answer
from .boxes import unboxed
from .extract import final_answer
from .fences import unfenced
from .labels import unlabelled

ONE_LINE = ("answer", "boxed", "fence", "last_line")
"""Where an answer of one line is: the first rule that finds its mark decides."""

BLOCK = ("answer", "boxed", "fence", "last_paragraph")
"""Where an answer of several lines is."""

_SIGNS = ("**", "`", "$$", "$")


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
        text = unfenced(text)
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


def _bare(text: str) -> str:
    for sign in _SIGNS:
        if len(text) > 2 * len(sign) and text.startswith(sign) and text.endswith(sign):
            text = text[len(sign) : -len(sign)].strip()
    return text
