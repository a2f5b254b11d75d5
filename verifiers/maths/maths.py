r"""Mathematical answers: is what the reply commits to equal to the known answer?"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

from ..memo import Memo
from ..nearest import did_you_mean
from ..text.answer import MAX_ANSWER, Answer
from ..text.extract import DEFAULT_RULES, check_rules, final_answer, format_answer
from ..verdict import Status, Verdict
from ..verifier import Verifier, same_length
from .choice import read_choice
from .conventions import Conventions
from .equal import compare_answers, comparison, is_readable
from .latex import is_balanced, respell
from .number import read_number, without_unit
from .pool import shared_pool
from .reference import References, read_reference, short
from .worker import WorkerError, WorkerLimits, WorkerReply

_TOWER = re.compile(r"\^[{( ]{0,4}\d+[)} ]{0,4}(?:\^|\*\*)[{( ]{0,4}\d|![)}\] ]{1,4}!")
"""Powers of powers of numbers and factorials of factorials: a worker would compute them in vain."""
_STATUS = {
    "different": Status.INCORRECT,
    "unparseable": Status.UNPARSEABLE,
    "timeout": Status.TIMEOUT,
    "memory": Status.MEMORY,
    "crash": Status.RUNTIME_ERROR,
}


class Math(Verifier):
    r"""Compare the final answer of a reply with a reference.

    Numbers are compared exactly and structure piece by piece; only expressions that need
    algebra go to math-verify, in a worker process that is killed when it uses too much.

    A reference is a number, or a string of bare LaTeX or text such as ``"3/4"``,
    ``"3\sqrt{13}"``, ``"(1, 2)"``, ``"x^2 + 1"`` or ``"\text{even}"``; ``$...$`` or ``\boxed{}``
    around it do no harm. A list contains several references, any of which is correct. A dict gives
    a row its own tolerance: ``{"answer": "9.81", "tolerance": 0.01}``; ``answer`` may be a list and
    ``relative_tolerance`` is a share of the reference. Each is checked when data is loaded.

    Args:
        extract: rules that extract the answer, in this order; see
            :func:`~assay.verifiers.text.extract.final_answer`. ``("boxed",)`` is the strict choice.
        limits: what one question to a worker may use.
        memo: pairs of answers that are remembered.
        **conventions: ``percent``, ``rounded_digits``, ``tolerance``, ``relative_tolerance``,
            ``units``, ``conversions``, ``radians``, ``case``, ``ordered``, ``brackets``,
            ``members``, ``dates``, ``worked_out`` and ``reduced``: what counts as the same if
            people differ; see :class:`~assay.verifiers.maths.conventions.Conventions`.

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
        limits: WorkerLimits | None = None,
        memo: int = 1 << 16,
        **conventions: Any,
    ) -> None:
        check_rules(extract)
        for name in conventions.keys() - {each.name for each in fields(Conventions)}:
            near = did_you_mean(name, [each.name for each in fields(Conventions)])
            raise TypeError(f"Math has no option {name!r}. {near}".rstrip())
        self.extract = DEFAULT_RULES if extract is DEFAULT_RULES else tuple(extract)
        self.conventions = Conventions(**conventions)
        self.limits = limits or WorkerLimits()
        self._memo_size = memo
        self._by_tolerance: Memo[References, Math] = Memo(64)
        self._verdicts: Memo[tuple[str, str], Verdict] = Memo(memo)
        self._faults: Memo[str, str] = Memo(memo)

    def judge(self, reply: str, reference: Any) -> Verdict:
        """Judge one reply against a reference that was checked."""
        found = final_answer(reply, self.extract)
        if found.text is None:
            return Verdict.unparseable(found.reason)
        known = read_reference(reference)
        if isinstance(known, str):
            known = References((known,))
        verdicts = self._under(known)._pairs([_paired(text, found) for text in known.texts])
        faults = (v for v in verdicts if v.score is None)
        return next((v for v in verdicts if v.score == 1.0), next(faults, verdicts[0]))

    def _under(self, known: References) -> Math:
        """Return this verifier with the tolerance of a row."""
        given = {"tolerance": known.tolerance, "relative_tolerance": known.relative_tolerance}
        given = {name: value for name, value in given.items() if value is not None}
        if not given:
            return self
        key = replace(known, texts=())
        return self._by_tolerance.get(key) or self._by_tolerance.put(
            key,
            Math(
                extract=self.extract,
                limits=self.limits,
                memo=self._memo_size,
                **{**self.conventions.to_json(), **given},
            ),
        )

    def verify_many(self, replies: Sequence[str], references: Sequence[Any]) -> list[Verdict]:
        """Judge ``replies[i]`` against ``references[i]``; the order is kept.

        Equal pairs are compared once, and what needs algebra is spread over this process's
        workers. The verdicts are those of one by one.

        Raises:
            ValueError: there are not as many references as replies.
        """
        if type(self).judge is not Math.judge:
            return super().verify_many(replies, references)
        same_length(replies, references)
        started = time.perf_counter()
        rows = [self._row(*pair) for pair in zip(replies, references, strict=True)]
        pairs = list(dict.fromkeys(row for row in rows if isinstance(row, tuple)))
        verdicts = dict(zip(pairs, self._pairs(pairs), strict=True))
        share = (time.perf_counter() - started) / max(1, len(replies))
        found = [verdicts[row] if isinstance(row, tuple) else row for row in rows]
        return [verdict.timed(share) for verdict in found]

    def _row(self, reply: str, reference: Any) -> tuple[str, str] | Verdict:
        """Return the pair to compare, or the verdict if there is nothing to compare."""
        try:
            fault = self.check_reference(reference)
            if fault is not None:
                return Verdict.fault(Status.BAD_GOLD, fault)
            known = read_reference(reference)
            if isinstance(known, References) or not isinstance(reply, str):
                return self._guarded(reply, reference, checked=True)
            found = final_answer(reply, self.extract)
        except Exception as error:  # a bug in a verifier is ours; the cause stays in the reason
            return Verdict.from_error(error)
        return Verdict.unparseable(found.reason) if found.text is None else _paired(known, found)

    def check_reference(self, reference: Any) -> str | None:
        """Say why a reference cannot be used.

        Raises:
            WorkerError: it needs algebra to read, and the worker cannot be started.
        """
        try:
            known = read_reference(reference)
        except (TypeError, ValueError) as error:
            return str(error)
        for gold in (known,) if isinstance(known, str) else known.texts:
            fault = self._faults.get(gold)
            if fault is None:
                fault = self._faults.put(gold, self._fault(gold))
            if fault:
                return fault
        return None

    def oracle_reply(self, reference: Any) -> str | None:
        """Return the reference in a box, or in the form of the first rule."""
        known = read_reference(reference)
        return format_answer(known if isinstance(known, str) else known.texts[0], self.extract)

    def to_json(self) -> dict[str, Any]:
        """Return the name and the options that scores depend on."""
        return {"name": "Math", "extract": list(self.extract), **self.conventions.to_json()}

    def _fault(self, gold: str) -> str:
        """Return what is wrong with a reference, empty if nothing."""
        if len(gold) > MAX_ANSWER:
            return f"the reference is longer than {MAX_ANSWER} characters"
        if read_number(gold) is not None:
            return ""
        makes_sense = is_readable(gold)
        if makes_sense is None:
            finding = shared_pool(self.limits).ask({"op": "check", "gold": _plain(gold)})
            makes_sense = finding.kind == "same"
            cause = finding.reason
        else:
            cause = "it is empty" if not gold else "its braces do not match, or nest too deep"
        return "" if makes_sense else f"the reference {gold!r} cannot be used: {cause}"

    def _pairs(self, pairs: Sequence[tuple[str, str]]) -> list[Verdict]:
        """Judge references and answers; undecided pairs go to the workers at once."""
        found = [self._verdicts.get(pair) or self._compared(*pair) for pair in pairs]
        asked = [pair for pair, verdict in zip(pairs, found, strict=True) if verdict is None]
        if asked:
            findings = shared_pool(self.limits).ask_many([self._question(*pair) for pair in asked])
            answers = iter(zip(asked, findings, strict=True))
            found = [v or self._concluded(*next(answers)) for v in found]
        verdicts = [verdict for verdict in found if verdict is not None]
        for pair, verdict in zip(pairs, verdicts, strict=True):
            if verdict.status is not Status.VERIFIER_ERROR:
                self._verdicts.put(pair, verdict)
        return verdicts

    def _compared(self, gold: str, answer: str) -> Verdict | None:
        on = comparison(self.conventions)
        try:
            same = compare_answers(gold, answer, on)
        except Exception as error:
            return Verdict.from_error(error)
        if same is None and self.conventions.worked_out and read_number(gold) is not None:
            same = False  # a worker would work it out
        if same is None and _TOWER.search(answer) and not _TOWER.search(gold):
            return Verdict.wrong("too large to compute", status=Status.TIMEOUT, extracted=answer)
        if same is None and not is_balanced(answer, 20):
            return Verdict.unparseable("nested too deep", extracted=answer)
        if same is None and len(answer) > 400 + 8 * len(gold):
            return Verdict.unparseable(f"too long to compare with {short(gold)}", extracted=answer)
        if same is None:
            return None
        if same:
            return Verdict.correct(", ".join(["equal", *on.notes]), extracted=answer)
        status = Status.INCORRECT if is_balanced(answer) else Status.UNPARSEABLE
        return Verdict.wrong(f"not {short(gold)}", status=status, extracted=answer)

    def _question(self, gold: str, answer: str) -> dict[str, Any]:
        number, enough = read_number(answer), self.conventions.rounded_digits
        digits = number.digits if number is not None and enough is not None else 0
        rounded = digits if enough is not None and digits >= enough else None
        return {"op": "same", "gold": _plain(gold), "answer": _plain(answer), "digits": rounded}

    def _concluded(self, pair: tuple[str, str], finding: WorkerReply | WorkerError) -> Verdict:
        gold, answer = pair
        if isinstance(finding, WorkerError):
            return Verdict.from_error(finding)
        if finding.kind == "same":
            return Verdict.correct(finding.reason, extracted=answer)
        if finding.kind == "bad_gold":
            # The gold was found good when it was checked: an odd answer brought the pair to the
            # worker, and must not buy itself a None.
            why = f"it cannot be compared with {short(gold)}: {finding.reason}"
            return Verdict.unparseable(why, extracted=answer)
        reason = f"not {short(gold)}" if finding.kind == "different" else finding.reason
        return Verdict.wrong(reason, status=_STATUS[finding.kind], extracted=answer)


def _paired(gold: str, found: Answer) -> tuple[str, str]:
    """Return a reference and the answer to it, with the option's letter if it is an option."""
    label = found.label if found.label and read_choice(gold) else ""
    return gold, f"{label}{found.text}{found.unit}"


def _plain(text: str) -> str:
    """Return the text in the form that the worker reads."""
    return without_unit(respell(text))[0]
