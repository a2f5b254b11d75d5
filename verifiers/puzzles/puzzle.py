"""Base of the verifiers of puzzles: read the one answer, check it against the rules."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from ..text.answer import Answer
from ..text.labels import after_list_label
from ..text.read_answer import BLOCK, read_answer
from ..validation import safe_repr
from ..verdict import Verdict
from ..verifier import Verifier
from .reading import Unreadable, unmarked


class BadReference(ValueError):
    """The reference cannot be used; the message says why."""


class PuzzleVerifier(Verifier):
    r"""Accept every answer that breaks no rule. Derive from it; write `check` and `fault`.

    The answer is the content of the last ``<answer>``, else of the last ``\boxed{}``, else of the
    last fenced block, else the last paragraph, or the last line if the paragraph is not of the
    form. A label such as ``Path:``, list marks, bold, code and LaTeX's signs are removed. What is
    left must be the answer and nothing else, so no reply passes by naming several.

    Attributes:
        max_answer: characters; a longer answer is not read.
        rules: as for :func:`~assay.verifiers.text.extract.final_answer`.
        praise: the reason of a right answer.
    """

    max_answer: ClassVar[int] = 20_000
    rules: ClassVar[tuple[str, ...]] = BLOCK
    praise: ClassVar[str] = "holds to every rule"
    many_answers = True

    def check(self, reference: Any) -> None:
        """Check that a reference has the puzzle's form and can be solved.

        Raises:
            BadReference: it has not, or cannot.
        """

    def fault(self, text: str, reference: Any) -> str | None:
        """Return what is wrong with an answer, ``None`` if it is right.

        Raises:
            Unreadable: the text has not the form of an answer.
        """
        raise TypeError(f"{type(self).__name__} must define fault")

    def readings(self, reply: str, found: Answer) -> Iterator[str]:
        """Yield what the answer may be, in the order of preference."""
        text = unmarked(found.text or "")
        last = text.rpartition("\n")[2].strip()
        for reading in (text, last) if found.rule == "last_paragraph" and last != text else (text,):
            yield reading
            yield from after_list_label(reading)

    def check_reference(self, reference: Any) -> str | None:
        """Return what :meth:`check` finds."""
        try:
            self.check(reference)
        except BadReference as fault:
            return str(fault)
        return None

    def judge(self, reply: str, reference: Any) -> Verdict:
        """Check the first reading that has the form of an answer."""
        found = read_answer(reply, self.rules, longest=self.max_answer)
        if found.text is None:
            return Verdict.unparseable(found.reason)
        first = ""
        for text in self.readings(reply, found):
            try:
                fault = self.fault(text, reference)
            except Unreadable as error:
                first = first or str(error)
                continue
            if fault is None:
                return Verdict.correct(self.praise, extracted=text)
            return Verdict.wrong(fault, extracted=text)
        return Verdict.unparseable(first, extracted=found.text)

    def demands(self, option: str, reference: Any) -> bool:
        """Return True if an option is set here or in the reference."""
        return bool(getattr(self, option) or reference.get(option, False))


class ShortestVerifier(PuzzleVerifier):
    """Accept a way to a goal; a reference may ask for one of the least length.

    Args:
        shortest: only shortest ways win, whatever the reference says.
    """

    def __init__(self, *, shortest: bool = False) -> None:
        self.shortest = shortest


class GridVerifier(PuzzleVerifier):
    """Read a grid or a table verbatim: the answer, or the whole reply if nothing marks one."""

    max_answer: ClassVar[int] = 6000
    many_answers = False

    def readings(self, reply: str, found: Answer) -> Iterator[str]:
        """Yield the answer, then the reply: a solution may have blank lines in it."""
        yield found.text or ""
        if found.rule == "last_paragraph":
            whole = read_answer(reply, ("whole",), longest=self.max_answer)
            if whole.text is not None:
                yield whole.text


def fields(reference: Any, *names: str, flags: tuple[str, ...] = ()) -> list[Any]:
    """Return the named values of a reference; flags are options that are true or false.

    Raises:
        BadReference: it is no dict with these names, or a flag is neither true nor false.
    """
    if not isinstance(reference, dict) or not reference.keys() >= {*names}:
        listed = " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
        raise BadReference(f"expected a dict with {listed}, got {safe_repr(reference)}")
    for flag in flags:
        if type(reference.get(flag, False)) is not bool:
            raise BadReference(f"{flag} must be true or false, got {safe_repr(reference[flag])}")
    return [reference[name] for name in names]


def check_whole(name: str, value: Any, low: int, high: int) -> None:
    """Raise BadReference unless a value is an integer in a range."""
    if type(value) is not int or not low <= value <= high:
        raise BadReference(
            f"{name}: expected a whole number from {low} to {high}, got {safe_repr(value, 60)}"
        )


def check_list(name: str, value: Any, least: int, most: int, of: str) -> None:
    """Raise BadReference unless a value is a list of a length in a range."""
    if not isinstance(value, list) or not least <= len(value) <= most:
        size = f"{least}" if least == most else f"{least} to {most}"
        raise BadReference(f"{name} must be a list of {size} {of}, got {safe_repr(value)}")
