r"""Mathematical answers: is what the reply commits to equal to the known answer?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .conventions import Conventions
from .equal import readable, same_value
from .extract import DEFAULT_RULES, MAX_ANSWER, boxed_or_bare, check_rules, final_answer
from .latex import balanced, respell
from .memo import Memo
from .number import read_number, without_unit
from .verdict import Status, Verdict
from .verifier import Verifier
from .winning import given_as
from .worker import Finding, WorkerLimits, shared_worker

_STATUS = {
    "different": Status.INCORRECT,
    "unparseable": Status.UNPARSEABLE,
    "timeout": Status.TIMEOUT,
    "memory": Status.MEMORY,
    "crash": Status.RUNTIME_ERROR,
}


class Math(Verifier):
    r"""Compares the final answer of a reply with a known one.

    Numbers are compared exactly and structure piece by piece; only expressions that need
    algebra go to math-verify, in a worker process that is killed when it uses too much.

    A reference is a number, or a string of bare LaTeX or text such as ``"3/4"``,
    ``"3\sqrt{13}"``, ``"(1, 2)"``, ``"x^2 + 1"`` or ``"\text{even}"``; ``$...$`` or ``\boxed{}``
    around it do no harm.

    Args:
        extract: where the answer is looked for, in this order; see
            :func:`~assay.verifiers.extract.final_answer`. ``("boxed",)`` is the strict choice.
        percent: ``"either"``, ``"unit"`` or ``"value"``; see
            :class:`~assay.verifiers.conventions.Conventions`.
        rounded_digits: how many digits after the point make a decimal stand for a number that
            no decimal writes exactly; ``None`` for never.
        units: whether a unit may be left out.
        limits: what one question to the worker may use.
        memo: pairs of answers that are remembered.

    Raises:
        ValueError: an option is unknown or out of range.

    Example:
        >>> Math().verify(r"So it is $\boxed{\frac{3}{4}}$.", "0.75").score
        1.0
    """

    def __init__(
        self,
        *,
        extract: Sequence[str] = DEFAULT_RULES,
        percent: str = "either",
        rounded_digits: int | None = 6,
        units: bool = True,
        limits: WorkerLimits | None = None,
        memo: int = 1 << 16,
    ) -> None:
        check_rules(extract)
        self.extract = tuple(extract)
        self.conventions = Conventions(percent, rounded_digits, units)
        self.limits = limits or WorkerLimits()
        self._verdicts: Memo[tuple[str, str], Verdict] = Memo(memo)
        self._faults: Memo[str, str] = Memo(memo)

    def judge(self, reply: str, reference: Any) -> Verdict:
        """Judge one reply against a reference that was checked."""
        found = final_answer(reply, self.extract)
        if found.text is None:
            return Verdict.wrong(found.reason, status=Status.UNPARSEABLE)
        gold = _gold_text(reference)
        key = (gold, found.text)
        known = self._verdicts.get(key)
        return known or self._verdicts.put(key, self._compared(gold, found.text))

    def check_reference(self, reference: Any) -> str | None:
        """Say why a reference cannot be used.

        Raises:
            WorkerError: it needs algebra to read, and the worker cannot be started.
        """
        try:
            gold = _gold_text(reference)
        except (TypeError, ValueError) as error:
            return str(error)
        fault = self._faults.get(gold)
        if fault is None:
            fault = self._faults.put(gold, self._fault(gold))
        return fault or None

    def winning_reply(self, reference: Any) -> str | None:
        """The reference in a box, or as the first rule wants it."""
        return given_as(_gold_text(reference), self.extract)

    def to_json(self) -> dict[str, Any]:
        """The name and the options that scores depend on."""
        return {"name": "Math", "extract": list(self.extract), **self.conventions.to_json()}

    def _fault(self, gold: str) -> str:
        """What is wrong with a gold; empty where nothing is."""
        if len(gold) > MAX_ANSWER:
            return f"the reference is longer than {MAX_ANSWER} characters"
        if read_number(gold) is not None:
            return ""
        makes_sense = readable(gold)
        if makes_sense is None:
            finding = self._ask({"op": "check", "gold": _plain(gold)})
            makes_sense = finding.kind == "same"
            cause = finding.reason
        else:
            cause = "it is empty" if not gold else "its braces do not match, or nest too deep"
        return "" if makes_sense else f"the reference {gold!r} cannot be used: {cause}"

    def _compared(self, gold: str, answer: str) -> Verdict:
        same = same_value(gold, answer, self.conventions)
        if same is None:
            return self._algebra(gold, answer)
        if same:
            return Verdict.correct("equal", extracted=answer)
        status = Status.INCORRECT if balanced(answer) else Status.UNPARSEABLE
        return Verdict.wrong(f"not {_short(gold)}", status=status, extracted=answer)

    def _algebra(self, gold: str, answer: str) -> Verdict:
        number = read_number(answer)
        enough = self.conventions.rounded_digits
        digits = number.digits if number is not None and enough is not None else 0
        question = {"op": "same", "gold": _plain(gold), "answer": _plain(answer)}
        rounded = digits if enough is not None and digits >= enough else None
        finding = self._ask(question | {"digits": rounded})
        if finding.kind == "same":
            return Verdict.correct(finding.reason, extracted=answer)
        if finding.kind == "bad_gold":
            return Verdict.fault(Status.BAD_GOLD, f"{gold!r}: {finding.reason}")
        reason = f"not {_short(gold)}" if finding.kind == "different" else finding.reason
        return Verdict.wrong(reason, status=_STATUS[finding.kind], extracted=answer)

    def _ask(self, question: dict[str, Any]) -> Finding:
        return shared_worker(self.limits).ask(question)


def _gold_text(reference: Any) -> str:
    """A reference as text.

    Raises:
        TypeError: it is neither text nor a number.
        ValueError: it is a number that is not finite.
    """
    if isinstance(reference, str):
        return boxed_or_bare(reference)
    if isinstance(reference, bool) or not isinstance(reference, int | float):
        raise TypeError(f"a reference must be text or a number, got {_short(repr(reference))}")
    if not math.isfinite(reference):
        raise ValueError(f"a reference must be finite, got {reference!r}")
    return repr(reference)


def _plain(text: str) -> str:
    """As the worker is to read it."""
    return without_unit(respell(text))[0]


def _short(text: str) -> str:
    return text if len(text) <= 80 else text[:77] + "..."
