r"""Read the one answer of a reply that consists of nothing else, or that marks it."""

from __future__ import annotations

from .answer import Answer
from .boxes import unboxed
from .extract import final_answer
from .fences import unfenced
from .labels import strip_label

ONE_LINE = ("tag", "boxed", "fence", "last_line")
"""Where an answer of one line is: the first rule that finds its mark decides."""

BLOCK = ("tag", "boxed", "fence", "last_paragraph")
"""Where an answer of several lines is."""


def read_answer(reply: str, rules: tuple[str, ...] = ONE_LINE, *, longest: int = 2000) -> Answer:
    r"""Return the answer without a fence or box inside the tags, a label, bold or code signs.

    The whole of it is the answer: a verifier that finds anything else in it refuses it, so no
    reply passes by naming several.

    Example:
        >>> read_answer("I try.\n<answer>**(3+5)*3**</answer>").text
        '(3+5)*3'
        >>> read_answer("I try.\n**Final answer:** (3+5)*3").text
        '(3+5)*3'
    """
    found = final_answer(reply, rules, longest=longest)
    if found.text is None:
        return found
    text = unfenced(found.text) if found.rule in ("answer", "tag") else found.text
    return found._replace(text=strip_signs(unboxed(strip_label(strip_signs(unboxed(text))))))


def strip_signs(text: str) -> str:
    """Remove the bold, code or formula signs around a text."""
    for sign in ("**", "`", "$$", "$"):
        if len(text) > 2 * len(sign) and text.startswith(sign) and text.endswith(sign):
            text = text[len(sign) : -len(sign)].strip()
    return text
