"""What the puzzles share: the answer is read as a solution, then held against the rules."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from ..extract import Answer
from ..text.read_answer import read_answer
from .any_answer import AnyAnswer


class Solution(AnyAnswer):
    """Judges an answer of several lines by rules: derive from it, and say how to read and hold it.

    The answer is all that stands in the last ``<answer>``, else in the last box, else in the last
    fenced block, else in the last paragraph; or the whole reply, where that is one solution with
    blank lines in it.
    """

    longest: ClassVar[int] = 6000
    many_answers = False

    def read(self, text: str, reference: Any) -> Any:
        """The one solution that a text consists of.

        Raises:
            Unreadable: it is none, or there is more in it.
        """
        raise TypeError(f"{type(self).__name__} must define read and broken")

    def broken(self, solution: Any, reference: Any) -> str | None:
        """The first rule that a solution breaks, in words; ``None`` where it breaks none."""
        raise TypeError(f"{type(self).__name__} must define read and broken")

    def fault(self, text: str, reference: Any) -> str | None:
        """The first rule that the solution breaks which the text is."""
        return self.broken(self.read(text, reference), reference)

    def readings(self, reply: str, found: Answer) -> Iterator[str]:
        """The answer as it stands, and the whole reply where no mark sets the answer off."""
        yield found.text or ""
        if found.rule == "last_paragraph":
            whole = read_answer(reply, ("whole",), longest=self.longest)
            if whole.text is not None:
                yield whole.text
