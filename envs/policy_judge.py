"""A policy as judge between two replies: the model that a learner has trained for it, or any."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..verifiers import Status, Verdict, Verifier
from ..verifiers.judges.judge_reference import JudgeReference, read_judge_reference, shown_part
from ..verifiers.judges.prompt import CONTROL
from ..verifiers.memo import Memo
from ..verifiers.text.extract import final_answer
from ..verifiers.verifier import same_length
from .policy import Policy

TEMPLATE = """Question: {question}

Reply A: {first}

Reply B: {second}

Which is better? Think inside <think></think>, then write A or B inside <answer></answer>."""

_SLOT = re.compile(r"\{(question|first|second)\}")


class PolicyJudge(Verifier):
    """Full marks for a reply that a policy finds better than a known one, in either order.

    It replaces a :class:`~assay.verifiers.PairwiseJudge`, such as in a
    :class:`~assay.envs.Tournament`, and scores as that does, but asks no server: a model of a few
    million parameters can be trained to judge and be the reward in the same process. The policy is
    asked twice, with the order swapped: better both times scores 1.0, worse both times 0.0,
    anything else 0.5. So does a reply that is the same as the known one, which is not asked about.
    Equal questions of a batch are asked once.

    What the policy says is read from its last ``<answer>``. If that is neither A nor B, or the
    policy raises, in one order or both, it is asked about "I do not know." in place of the reply:
    if it can be read on that in both orders, the reply is ``unparseable`` and scores 0.0, else
    there is no score.

    A reply may say nothing that the template says between its slots, since it could then pass for
    more than one slot: it is ``unparseable`` and scores 0.0, as is one that says nothing.

    Reference: the reply to compare with, or ``{"question": ..., "answer": that reply}``.

    Args:
        policy: what is asked. At temperature 0 its verdicts are repeatable.
        template: of the message, with ``{first}``, ``{second}`` and optionally ``{question}``.
        longest: characters of a reply.
        remember: prompts whose answers are kept. Only for a policy at temperature 0 that is not
            trained meanwhile: of any other it would keep what was said once.

    Raises:
        ValueError: the template lacks a slot, or two of its slots touch.

    Example:
        >>> from assay.envs import FunctionPolicy
        >>> longer = lambda asked: "<answer>A</answer>" if asked.count("A1") else "?"
        >>> PolicyJudge(FunctionPolicy(longer)).verify("A1", "B2").score is None
        True
    """

    def __init__(
        self, policy: Policy, template: str = TEMPLATE, *, longest: int = 20_000, remember: int = 0
    ) -> None:
        missing = {"first", "second"} - set(_SLOT.findall(template))
        if missing:
            raise ValueError(f"the template needs {{{min(missing)}}}, got {template!r:.200}")
        self.policy, self.template = policy, template
        self.longest, self.remember = longest, remember
        self._known: Memo[str, str] | None = Memo(remember) if remember else None
        pieces = _SLOT.sub("\0", template).split("\0")
        if not all(pieces[1:-1]):
            raise ValueError(f"there must be text between two slots, got {template!r:.200}")
        self._marks = [piece.strip() or piece for piece in pieces if piece]

    def check_reference(self, reference: Any) -> str | None:
        """Require a reference whose reply could itself be judged."""
        try:
            known = read_judge_reference(reference)
            if not known.answer:
                return 'there is no reply to compare with: give it as "answer"'
            self._shown(known.answer)
        except ValueError as error:
            return f"the reply to compare with cannot be used: {error}"
        return None

    def verify_many(self, replies: Sequence[str], references: Sequence[Any]) -> list[Verdict]:
        """Judge ``replies[i]`` against ``references[i]``; the policy is asked once, for all.

        If it raises, it is asked in halves: what it fails on spoils no other verdict.

        Raises:
            ValueError: there are not as many references as replies.
        """
        same_length(replies, references)
        plans = [self._plan(r, g) for r, g in zip(replies, references, strict=True)]
        wanted = dict.fromkeys(text for p in plans if isinstance(p, _Plan) for text in p.prompts)
        said, failed = self._answers(list(wanted))
        lost = [p for p in plans if isinstance(p, _Plan) and _words(p.prompts, said) is None]
        said |= self._answers(list(dict.fromkeys(text for p in lost for text in p.control)))[0]
        return [_judged(p, said, failed) if isinstance(p, _Plan) else p for p in plans]

    def _answers(self, prompts: Sequence[str]) -> tuple[dict[str, str], dict[str, str]]:
        """Ask all prompts at once; if the policy raises, in halves, to find which it fails on.

        Returns:
            The answers, and the errors of the rest: of all if it also fails on a prompt of ours.
        """
        said: dict[str, str] = {}
        failed: dict[str, str] = {}
        parts, tried = [prompts], False
        while parts:
            part = parts.pop()
            try:
                said |= self._said(part)
                continue
            except Exception as error:  # whatever the policy raises
                failed |= dict.fromkeys(part, f"{type(error).__name__}: {error}")
            if not tried:
                tried = True
                try:
                    self._said([pairwise_prompt(self.template, "?", CONTROL, CONTROL)])
                except Exception:  # likewise: no prompt is at fault
                    return said, failed
            half = len(part) // 2
            parts += [part[:half], part[half:]] if half else []
        return said, {text: failed[text] for text in failed.keys() - said.keys()}

    def _said(self, prompts: Sequence[str]) -> dict[str, str]:
        """Return the policy's answer to each prompt, cached."""
        kept = {} if self._known is None else {text: self._known.get(text) for text in prompts}
        said = {text: answer for text, answer in kept.items() if answer is not None}
        new = [text for text in prompts if text not in said]
        if new:
            given = self.policy([[{"role": "user", "content": text}] for text in new])
            for text, done in zip(new, given, strict=True):
                said[text] = done.text
                if self._known is not None:
                    self._known.put(text, done.text)
        return said

    def _plan(self, reply: str, reference: Any) -> Verdict | _Plan:
        fault = self.check_reference(reference)
        if fault is not None:
            return Verdict.fault(Status.BAD_GOLD, fault)
        known = read_judge_reference(reference)
        other = self._shown(known.answer)
        try:
            shown = self._shown(reply)
        except ValueError as error:
            return Verdict.unparseable(str(error))
        if shown == other:
            return Verdict.wrong("the same as the known reply", score=0.5, extracted=shown)
        return _Plan(shown, self._orders(known, shown, other), self._orders(known, CONTROL, other))

    def _shown(self, reply: str) -> str:
        shown = shown_part(reply, thoughts=False, longest=self.longest)
        mark = next((mark for mark in self._marks if mark in shown), None)
        if mark is not None:
            raise ValueError(f"it holds {mark!r:.80}, which sets parts of the judge's task apart")
        return shown

    def _orders(self, known: JudgeReference, one: str, other: str) -> tuple[str, str]:
        ask = functools.partial(pairwise_prompt, self.template, known.question)
        return ask(one, other), ask(other, one)


def pairwise_prompt(template: str, question: str, first: str, second: str) -> str:
    """Return the prompt of a :class:`PolicyJudge`, also for tasks that train a judge."""
    texts: Mapping[str, str] = {"question": question, "first": first, "second": second}
    return _SLOT.sub(lambda slot: texts[slot[1]], template)  # in one pass: no text names a slot


@dataclass(frozen=True, slots=True)
class _Plan:
    """The question about a reply.

    Attributes:
        shown: the part of it that is judged.
        prompts: the message in which it is A, and the one in which it is B.
        control: the same with a harmless reply of ours in its place.
    """

    shown: str
    prompts: tuple[str, str]
    control: tuple[str, str]


def _words(prompts: tuple[str, str], said: Mapping[str, str]) -> tuple[str, ...] | None:
    """Read the verdicts on two messages; ``None`` if one cannot be read."""
    found = (final_answer(said.get(text, ""), ("answer",)).text or "" for text in prompts)
    words = tuple(word.strip() for word in found)
    return words if set(words) <= {"A", "B"} else None


def _judged(plan: _Plan, said: Mapping[str, str], failed: Mapping[str, str]) -> Verdict:
    words = _words(plan.prompts, said)
    if words is None:
        found = [said.get(text, failed.get(text)) for text in plan.prompts]
        bad = f"the judge says neither A nor B: {found!r:.240}"
        if _words(plan.control, said) is None:
            return Verdict.fault(Status.VERIFIER_ERROR, bad)
        reason = f"{bad}, and one of them about another reply"
        return Verdict.unparseable(reason, extracted=plan.shown)
    score = {("A", "B"): 1.0, ("B", "A"): 0.0}.get((words[0], words[1]), 0.5)
    reason = f"the judge says {words[0]}, and {words[1]} with the order swapped"
    status = Status.CORRECT if score == 1.0 else Status.INCORRECT
    return Verdict(status, score, reason, extracted=plan.shown)
