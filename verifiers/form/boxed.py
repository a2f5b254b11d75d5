r"""Boxed: is the answer in one ``\boxed{}``, where it is looked for?"""

from __future__ import annotations

import re
from typing import Any

from ..text.boxes import boxes
from ..text.markup import TEXT_COMMAND, blank_text
from ..text.thought import UNCLOSED, after_thinking
from ..text.words import has_content, strip_closed_comments
from ..validation import check_one_of, check_whole
from ..verdict import Verdict
from ..verifier import Verifier

PLACES = ("anywhere", "last_line", "end")
_ARGUMENT = r"\s{0,3}\{(?>(?:[^{}]++|\{[^{}]*+\})*)\}"
_LAYOUT = re.compile(  # commands whose names are letters that say nothing, and placeholders
    rf"\\(?:[hv]?phantom|[hv]space\*?|rule{_ARGUMENT}|(?:text)?color(?:box)?"
    rf"|begin(?:\s?{{array}})?|end|label|tag){_ARGUMENT}|{TEXT_COMMAND}"
    r"|\\(?:text[a-z]*|math[a-z]+|q?quad|[a-z]*space|[hv]?phantom|[hv]fill|left|right|hline|strut|null"
    r"|relax|smash|overline|displaystyle|boxed|fbox|[lcvd]?dots|square|Box|blacksquare|underline"
    r"|label|tiny|small|normalsize|(?i:large|huge)|bf|it|rm)(?![A-Za-z])"
    r"|\\(?:kern|[hv]skip)\s?-?[\d.]+\s?[a-z]{2}"
)
_CLOSING = re.compile(rf"</?answer>|{_LAYOUT.pattern}")
_OR = re.compile(r"(?<![A-Za-z\\])or(?![A-Za-z])")


class Boxed(Verifier):
    r"""Full marks for an answer in exactly one ``\boxed{}``, after the thought.

    The box is closed and contains a letter or a digit, a command for a symbol, such as ``\pi``, or
    one of ``< > =``. Boxes in ``<think>`` or a comment do not count, a box in a box counts as two,
    and an unclosed box earns 0. An empty ``\boxed{}`` that is only mentioned counts as well, since
    readers of the answer cannot distinguish it. A bare "or" in a box names candidates, not an
    answer, unlike ``\text{ or }`` between the two roots of an equation. ``\fbox{}`` is a box.

    Reference: ignored; whether the answer is right is for another verifier to say.

    Args:
        where: ``anywhere`` after the thought; ``last_line``: the box closes on the last line
            that says something; ``end``: nothing is said after the box. Closing marks say
            nothing: ``$``, ``\]``, ``\end{align}``, ``</answer>``, a full stop.
        count: how many boxes there are to be, if an answer has several parts.

    Raises:
        ValueError: there is no such place, or the count is not 1 to 20.

    Example:
        >>> Boxed().verify(r"6 by 7, so \boxed{42}.", None).score
        1.0
        >>> Boxed().verify(r"\boxed{41}, no: \boxed{42}.", None).reason
        'there are 2 boxes, not 1'
    """

    judges_form = True
    is_cheap = True

    def __init__(self, *, where: str = "anywhere", count: int = 1) -> None:
        check_one_of("where", where, PLACES)
        check_whole("count", count, 1, 20)
        self.where = where
        self.count = count

    def oracle_reply(self, reference: Any) -> str | None:
        """Return a thought and the boxes."""
        return "<think>6 by 7</think>" + " and ".join([r"\boxed{42}"] * self.count)

    def judge(self, reply: str, reference: Any) -> Verdict:
        """Judge one reply in a fixed number of passes."""
        text = after_thinking(reply)
        if text is None:
            return Verdict.unparseable(UNCLOSED)
        text = strip_closed_comments(text)
        closed, unclosed = boxes(text)
        if unclosed:
            return Verdict.unparseable("a box is never closed")
        if len(closed) != self.count:
            return Verdict.unparseable(f"there are {len(closed)} boxes, not {self.count}")
        for _, _, content in closed:
            fault = _fault(content)
            if fault:
                return Verdict.unparseable(fault)
        rest = _CLOSING.sub(" ", text[closed[-1][1] :])
        if self.where == "end" and has_content(rest):
            return Verdict.unparseable("something is said after the box")
        if self.where == "last_line" and has_content(rest.partition("\n")[2]):
            return Verdict.unparseable("the box is not on the last line")
        return Verdict.correct("well formed", extracted=closed[-1][2].strip())


def _fault(content: str) -> str:
    """Return what is wrong with the content of a box, empty if nothing."""
    inner, unclosed = boxes(content)
    if inner or unclosed:
        return "there is a box in the box"
    if content.strip(" $") not in ("<", ">", "=") and not has_content(_LAYOUT.sub(" ", content)):
        return "the box is empty"
    if _OR.search(blank_text(content)):
        return "the box names candidates"
    return ""
