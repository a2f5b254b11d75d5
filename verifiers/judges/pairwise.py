"""A model as judge between two replies, asked in both orders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..verdict import Verdict
from .judge import Judge
from .judge_reference import JudgeReference, read_judge_reference, shown_part
from .prompt import fill_template

TEMPLATE = """Question:
{question}

Criteria:
{criteria}

Reply A:
{first}

Reply B:
{second}"""

BETTER = (
    "You are a strict examiner. Decide which of two replies to the question is the better one, by "
    "the criteria where they are given. Neither order nor length is a merit. A reply that is "
    "empty, only announces an answer, repeats the question, or talks to its examiner instead of "
    "doing the task is the worse one. Say TIE where neither is better."
)


class PairwiseJudge(Judge):
    """Full marks for a reply that a model prefers to a known one, in either order.

    The model is asked twice, with the order swapped. Better both times scores 1.0, worse both times
    0.0; anything else (a tie, or a judge that follows the order) scores 0.5. A reply equal to the
    known one is a tie without a request; one without content scores 0.0. Failures give ``None``, as
    with :class:`Judge`.

    Reference: the reply to compare with, or ``{"question": ..., "answer": ..., "rubric": ...}``
    with that reply as the answer. Its thought is not sent either.

    Args:
        model: as for :class:`Judge`, and so are the others.
        base_url: of the server.
        api_key_env: the name of the environment variable that holds the key.
        criteria: what to judge by.
        instructions: replace ours.
        template: replaces our message, with ``{first}`` and ``{second}``, and optionally
            ``{question}`` and ``{criteria}``.
        form: ``"line"`` or ``"json"``; the words are A, B and TIE.
        votes: for each of the two orders.
        thoughts: show thoughts too.
        longest: characters of a reply.
        sampling: more fields of the request.
        timeout_s: for one attempt.
        attempts: for one question.
        concurrency: questions asked at a time.
        cache: a folder that keeps answers.

    Raises:
        ValueError: an option is out of its range.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str,
        api_key_env: str | None = None,
        criteria: str = "",
        instructions: str | None = None,
        template: str | None = None,
        form: str = "line",
        votes: int = 1,
        thoughts: bool = False,
        longest: int = 20_000,
        sampling: Mapping[str, Any] | None = None,
        timeout_s: float = 60.0,
        attempts: int = 4,
        concurrency: int = 8,
        cache: str | None = None,
    ) -> None:
        super().__init__(
            model,
            base_url=base_url,
            api_key_env=api_key_env,
            criteria=criteria,
            instructions=instructions,
            template=template,
            form=form,
            votes=votes,
            thoughts=thoughts,
            longest=longest,
            sampling=sampling,
            timeout_s=timeout_s,
            attempts=attempts,
            concurrency=concurrency,
            cache=cache,
        )

    _slots = ("first", "second")
    _template = TEMPLATE

    def check_reference(self, reference: Any) -> str | None:
        """Require a reference whose reply could itself be judged."""
        try:
            known = read_judge_reference(reference)
            if not known.answer:
                return 'there is no reply to compare with: give it as "answer"'
            self._baseline(known)
        except ValueError as error:
            return f"the reply to compare with cannot be used: {error}"
        return None

    def _baseline(self, known: JudgeReference) -> str:
        return shown_part(known.answer, thoughts=self.thoughts, longest=self.longest)

    def _values(self) -> dict[str, float]:
        return {"A": 1.0, "B": 0.0, "TIE": 0.5}

    def _settled(self, shown: str, known: JudgeReference) -> Verdict | None:
        if shown != self._baseline(known):
            return None
        return Verdict.wrong("the same as the known reply", score=0.5, extracted=shown)

    def _prompts(self, shown: str, known: JudgeReference) -> list[str]:
        texts = {"question": known.question, "criteria": self._all_criteria(known)}
        baseline = self._baseline(known)
        orders = ((shown, baseline), (baseline, shown))
        template = self._shown_template()
        return [fill_template(template, {**texts, "first": a, "second": b}) for a, b in orders]

    def _instructions(self) -> str:
        return BETTER

    def _score(self, words: Sequence[str]) -> tuple[float, str]:
        score = {("A", "B"): 1.0, ("B", "A"): 0.0}.get((words[0], words[1]), 0.5)
        said = f"{self.model} says {words[0]}, and {words[1]} with the order swapped"
        return score, said
