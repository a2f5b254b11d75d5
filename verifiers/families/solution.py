"""What the puzzles share: the answer is read as a solution, then held against the rules."""

from __future__ import annotations

from typing import Any, ClassVar

from ..verdict import Status, Verdict
from ..verifier import Verifier
from .answer import BLOCK, Unreadable, read_answer


class Solution(Verifier):
    """Judges an answer of several lines by rules: derive from it, and say how to read and hold it.

    The answer is all that stands in the last ``<answer>``, else in the last box, else in the last
    fenced block, else in the last paragraph; or the whole reply, where that is one solution with
    blank lines in it.

    Attributes:
        longest: an answer of more characters is not read.
        kept: what a right solution does, in words.
    """

    longest: ClassVar[int] = 6000
    kept: ClassVar[str] = "keeps the rules"

    def read(self, text: str, reference: Any) -> Any:
        """The one solution that a text consists of.

        Raises:
            Unreadable: it is none, or there is more in it.
        """
        raise TypeError(f"{type(self).__name__} must define read and broken")

    def broken(self, solution: Any, reference: Any) -> str | None:
        """The first rule that a solution breaks, in words; ``None`` where it breaks none."""
        raise TypeError(f"{type(self).__name__} must define read and broken")

    def judge(self, reply: str, reference: Any) -> Verdict:
        """Read the solution, hold it against the rules."""
        found = read_answer(reply, BLOCK, longest=self.longest)
        if found.text is None:
            return Verdict.wrong(found.reason, status=Status.UNPARSEABLE)
        text = found.text
        try:
            solution = self.read(text, reference)
        except Unreadable as error:
            whole = read_answer(reply, ("whole",), longest=self.longest)
            solution = None
            if found.rule == "last_paragraph" and whole.text is not None:
                text = whole.text
                solution = self._read_whole(text, reference)
            if solution is None:
                reason = str(error)
                return Verdict.wrong(reason, status=Status.UNPARSEABLE, extracted=found.text)
        fault = self.broken(solution, reference)
        if fault is not None:
            return Verdict.wrong(fault, extracted=text)
        return Verdict.correct(self.kept, extracted=text)

    def _read_whole(self, text: str, reference: Any) -> Any:
        try:
            return self.read(text, reference)
        except Unreadable:
            return None
