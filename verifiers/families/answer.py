r"""The one answer of a reply to a task of a family."""

from __future__ import annotations

from dataclasses import replace

from ..extract import Answer, final_answer, unboxed

ONE_LINE = ("answer", "boxed", "fence", "last_line")
"""Where an answer of one line is: the first rule that finds its mark decides."""

BLOCK = ("answer", "boxed", "fence", "last_paragraph")
"""Where an answer of several lines is."""

_SIGNS = ("**", "`", "$$", "$")


def read_answer(reply: str, rules: tuple[str, ...] = ONE_LINE, *, longest: int = 2000) -> Answer:
    r"""The answer, without what only sets it off: a fence or box inside the tags, bold, code.

    The whole of it is the answer: a verifier that finds anything else in it refuses it, so no
    reply wins by naming several.

    Example:
        >>> read_answer("I try.\n<answer>**(3+5)*3**</answer>").text
        '(3+5)*3'
    """
    found = final_answer(reply, rules, longest=longest)
    if found.text is None:
        return found
    text = found.text
    if found.rule == "answer":
        inner = final_answer(text, ("fence", "whole"), longest=longest)
        text = text if inner.text is None or not text.startswith(("```", "~~~")) else inner.text
    text = unboxed(text)
    for sign in _SIGNS:
        if len(text) > 2 * len(sign) and text.startswith(sign) and text.endswith(sign):
            text = text[len(sign) : -len(sign)].strip()
    return replace(found, text=text)
