"""What verifiers share that search for an answer to make sure that there is one."""

from __future__ import annotations

from typing import Any

from ..verdict import Status, Verdict
from .any_answer import AnyAnswer


class Searched(AnyAnswer):
    """Refuses a reference that no answer fits; where a reply is right it does not search.

    Derive from it and write :meth:`malformed`, :meth:`unsolvable` and :meth:`fault`.
    """

    def malformed(self, reference: Any) -> str | None:
        """What is wrong with the form of a reference, or ``None``."""
        raise TypeError(f"{type(self).__name__} must define malformed and unsolvable")

    def unsolvable(self, reference: Any) -> str | None:
        """Why no answer can be right, where the form is; ``None`` where none is known to be."""
        raise TypeError(f"{type(self).__name__} must define malformed and unsolvable")

    def check_reference(self, reference: Any) -> str | None:
        """The form, and that there is an answer."""
        fault = self.malformed(reference)
        return self.unsolvable(reference) if fault is None else fault

    def _held(self, reply: str, reference: Any) -> Verdict:
        """As ever; but a right answer shows by itself that there is one."""
        if type(self).check_reference is not Searched.check_reference:
            return super()._held(reply, reference)
        fault = self.malformed(reference)
        if fault is not None:
            return Verdict.fault(Status.BAD_GOLD, fault)
        verdict = self.judge(reply, reference)
        if verdict.status is Status.CORRECT:
            return verdict
        fault = self.unsolvable(reference)
        return verdict if fault is None else Verdict.fault(Status.BAD_GOLD, fault)
