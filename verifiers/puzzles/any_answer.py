"""What verifiers share whose tasks have many right answers: read one, hold it to the rules."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, ClassVar

from ..text.answer import Answer
from ..text.labels import after_list_label
from ..text.markup import unwrap_text
from ..text.read_answer import BLOCK, Unreadable, read_answer
from ..verdict import Status, Verdict, unchecked
from ..verifier import Verifier


class AnyAnswer(Verifier):
    r"""Pays every answer without a fault. Derive from it and write :meth:`fault`.

    The answer is what the last ``<answer>`` holds, else the last ``\boxed{}``, else the last
    fenced block, else the last paragraph, or its last line where the whole of it is not of the
    form. A label such as ``Path:``, list marks, bold, code and LaTeX's signs are set aside. What
    is left must be the answer and nothing else.

    Attributes:
        longest: characters; a longer answer is not read.
    """

    longest: ClassVar[int] = 20_000
    many_answers = True

    def fault(self, text: str, reference: Any) -> str | None:
        """What is wrong with an answer, or ``None`` where it is right.

        Raises:
            Unreadable: the text is no answer of the form.
        """
        raise TypeError(f"{type(self).__name__} must define fault")

    def judge(self, reply: str, reference: Any) -> Verdict:
        """Hold the first reading that has the form of an answer to the rules."""
        found = read_answer(reply, BLOCK, longest=self.longest)
        if found.text is None:
            return Verdict.wrong(found.reason, status=Status.UNPARSEABLE)
        first = ""
        for text in self.readings(reply, found):
            try:
                fault = self.fault(text, reference)
            except Unreadable as error:
                first = first or str(error)
                continue
            if fault is None:
                return unchecked(Status.CORRECT, 1.0, "holds to every rule", text)
            return unchecked(Status.INCORRECT, 0.0, fault, text)
        return Verdict.wrong(first, status=Status.UNPARSEABLE, extracted=found.text)

    def readings(self, reply: str, found: Answer) -> Iterator[str]:
        """What the answer may be, in the order in which that is tried."""
        text = unmarked(found.text or "")
        last = text.rpartition("\n")[2].strip()
        shorter = found.rule == "last_paragraph" and last != text
        for reading in (text, last) if shorter else (text,):
            yield reading
            rest = after_list_label(reading)
            if rest is not None:
                yield rest


_LATEX_FRAME = re.compile(r"\\(?:begin|end)\{[a-z]{1,12}\*?\}(?:\{[lcr|]{0,40}\})?")
_LATEX_SIGNS = {
    "longrightarrow": "→", "rightarrow": "→", "Rightarrow": "→", "to": "→", "leftarrow": "←",
    "uparrow": "↑", "downarrow": "↓", "quad": " ", "qquad": " ", "left": "", "right": "",
    "leq": "≤", "le": "≤", "geq": "≥", "ge": "≥", "times": "×",
}  # fmt: skip
_LATEX = re.compile(r"\\(?:([A-Za-z]{1,20})|([,;:! {}\[\]_&%#]|\\))")
_LIST_MARK = re.compile(
    r"^[ \t]{0,8}(?:(?:step|move)[ \t]{1,3}\d{1,4}[.):]?[ \t]{1,3}|\d{1,4}[.)][ \t]{1,3}"
    r"|[-*+•][ \t]{1,3})",
    re.MULTILINE | re.IGNORECASE,
)


def unmarked(text: str) -> str:
    r"""A text without list marks, bold and code, and with LaTeX's signs as characters.

    Example:
        >>> unmarked(r"\text{A} \to \text{B}")
        'A → B'
        >>> unmarked("1. up\n2. down")
        'up\ndown'
    """
    if "\\" in text:
        text = _LATEX_FRAME.sub("", unwrap_text(text))
        text = _LATEX.sub(_sign, text)
    for mark in ("**", "`", "$", "\ufe0f"):  # the last makes an emoji of an arrow
        text = text.replace(mark, "")
    text = text.strip()
    if "\n" in text:
        text = _LIST_MARK.sub("", text).strip()
    elif found := _LIST_MARK.match(text):
        text = text[found.end() :].lstrip()
    return text.removesuffix(".").rstrip()


def _sign(found: re.Match[str]) -> str:
    name, mark = found.groups()
    if name is not None:
        return _LATEX_SIGNS.get(name, found.group())
    if mark == "\\":
        return "\n"
    return " " if mark in ",;:! " else mark


_OPEN = {"[": "]", "(": ")", "{": "}"}


def unbracketed(text: str) -> str:
    """The text without brackets around the whole of it, two pairs at most.

    Example:
        >>> unbracketed("[A, B]"), unbracketed("(0, 1), (0, 2)")
        ('A, B', '(0, 1), (0, 2)')
    """
    for _ in range(2):
        text = text.strip()
        if not text or _OPEN.get(text[0]) != text[-1] or _closes(text) != len(text) - 1:
            break
        text = text[1:-1]
    return text.strip()


def _closes(text: str) -> int:
    """Where the bracket closes that the text begins with; -1 where it does not."""
    depth, left, right = 0, text[0], _OPEN[text[0]]
    for at, char in enumerate(text):
        depth += (char == left) - (char == right)
        if depth == 0:
            return at
    return -1


ARROW = r"[-=]{1,3}>|[→⟶⇒➔➜]"
_SEPARATOR = re.compile(rf"(?:[\s,;]|{ARROW}|[-–—|])+")
_QUOTES = "\"'“”‘’"
_LAST_AND = re.compile(
    r"(?:,\s{0,3}|\A\s{0,3}([^\s,]{1,60})\s{1,3})and\s{1,3}(?=[^\s,]{1,60}\s{0,3}\Z)"
)


def items(text: str, separator: re.Pattern[str] = _SEPARATOR) -> list[str]:
    """The items of a list that is written in any usual way; quotes around an item fall away.

    Example:
        >>> items('["A", "B"]'), items("A -> B"), items("A and B"), items("A-B")
        (['A', 'B'], ['A', 'B'], ['A', 'B'], ['A', 'B'])
    """
    text = _LAST_AND.sub(lambda found: f"{found[1] or ''}, ", unbracketed(text))
    found = (item.strip(_QUOTES) for item in separator.split(text))
    return [item for item in found if item]
