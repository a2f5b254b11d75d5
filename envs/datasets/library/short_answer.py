"""Short answers from a passage, in the layout of SQuAD."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from ....verifiers import ShortAnswer as ShortAnswerVerifier
from ...accuracy import accuracy_rubric, thought
from ...task import Task
from ..bad_rows import OnBadRows
from ..reading import Row
from .data_env import DataEnv, id_of, question_in
from .prompts import asked

_HOW = (
    "Answer with a few words of the text and nothing else. Where the text does not tell, reply "
    "with the one word unanswerable."
)


class ShortAnswer(DataEnv):
    """Answer a question from a passage (SQuAD: Rajpurkar et al. 2016, arXiv:1606.05250).

    Questions without an answer, as SQuAD 2.0 has them (Rajpurkar et al. 2018,
    arXiv:1806.03822), want the word ``unanswerable``.

    Observation: the passage, the question and how to answer. Action: the reply.
    Reward: 1.0 if the answer is one of the known ones, but for case, punctuation and
    articles; with ``score="f1"``, the share of words in common. With ``think``, a sixth of it is
    paid for the format.
    End: after one step.

    Args:
        data: rows in the public layout (``question``, ``context``, ``answers`` with a list
            ``text``, empty if there is none): a file, a folder or a hub name; by default,
            the sample. ``context`` may be missing, and ``answers`` may be a list.
        score: ``"em"`` or ``"f1"``.
        think: ask for ``<think>`` and ``<answer>`` and pay for them.

    Raises:
        DataError: the data cannot be read, or an answer is no text.
        ValueError: ``score`` is neither.
    """

    fields = {"question": str, "answers": (Mapping, list)}
    optional = {"id": (str, int), "context": str}
    hub = "rajpurkar/squad_v2"
    extractive = True

    def __init__(
        self,
        data: str | Path | None = None,
        split: str | None = None,
        *,
        score: Literal["em", "f1"] = "em",
        think: bool = False,
        on_bad_rows: OnBadRows = "raise",
        render_mode: str | None = None,
    ) -> None:
        self.think = think
        rubric = accuracy_rubric(ShortAnswerVerifier(score=score), think=think)
        super().__init__(data, split, rubric, on_bad_rows=on_bad_rows, render_mode=render_mode)

    def task_of(self, row: Row, number: int) -> Task:
        """Read a row; all known answers are correct, duplicates are dropped."""
        answers = row["answers"]
        texts = answers.get("text") if isinstance(answers, Mapping) else answers
        if not isinstance(texts, list):
            raise ValueError(f"'answers' must have a list 'text', got {answers!r:.80}")
        for text in texts:
            if not isinstance(text, str) or not text.strip():
                raise ValueError(f"'answers' must be a list of texts, got {text!r:.80} in it")
        known = list(dict.fromkeys(texts))
        reply = known[0] if known else "unanswerable"
        context = row.get("context") or ""
        question = f"{context.strip()}\n\n{question_in(row, 'question')}".strip()
        return Task(
            prompt=asked(question, _HOW, think=self.think),
            reference=known,
            id=id_of(row, "id", default=f"{self.split}-{number}"),
            metadata={"answerable": bool(known)},
            solution=thought("I read it.", reply) if self.think else reply,
        )
