"""Multiple choice in the layouts of MMLU, MMLU-Pro, ARC and GPQA."""

from __future__ import annotations

from pathlib import Path
from string import ascii_uppercase

from ....verifiers import MultipleChoice as MultipleChoiceVerifier
from ...accuracy import thought
from ...seeding import rng_at
from ...task import Task
from ..bad_rows import OnBadRows
from ..reading import Row
from .choices import options_of, right_letter, shown
from .data_env import AnswerEnv, id_of, question_in
from .prompts import asked

_HOW = "Choose one option: end with a line that has its letter and nothing else."
_TOPICS = ("subject", "category", "High-level domain")
_GPQA = ("Correct Answer", "Incorrect Answer 1", "Incorrect Answer 2", "Incorrect Answer 3")


class MultipleChoice(AnswerEnv):
    """Choose an option (MMLU: Hendrycks et al. 2020, arXiv:2009.03300, and its kin).

    Observation: the question, its options and how to answer. Action: the reply.
    Reward: 1.0 if the reply commits to the right option, by its letter or its text. With
    ``think``, a sixth of it is paid for the format.
    End: after one step.

    Args:
        data: rows in the layout of MMLU (``question``, ``choices``, ``answer`` an index or a
            letter), of MMLU-Pro (``options`` instead of ``choices``), of ARC (``choices`` with
            ``text`` and ``label``, ``answerKey``) or of GPQA (``Question``, ``Correct Answer``,
            ``Incorrect Answer 1`` to ``3``): a file, a folder or a hub name; by default, the
            sample.
        shuffle: put the options in another order, the same one each time. Rows in GPQA's
            layout, where the right one is first, are always shuffled.
        seed: another seed gives other orders.

    Raises:
        DataError: the data cannot be read, or an answer names no option.
    """

    verifier = MultipleChoiceVerifier
    fields = {}  # the layouts share no field
    optional = {
        **dict.fromkeys(("question", "Question"), str),
        **dict.fromkeys((*_GPQA, *_TOPICS), (str, int, float)),
        "choices": (list, dict),
        "options": (list, dict),
        "answer": (str, int),
        "answerKey": (str, int),
        "id": (str, int),
        "question_id": (str, int),
    }
    hub = "cais/mmlu:all"

    def __init__(
        self,
        data: str | Path | None = None,
        split: str | None = None,
        *,
        shuffle: bool = False,
        seed: int = 0,
        think: bool = False,
        on_bad_rows: OnBadRows = "raise",
        render_mode: str | None = None,
    ) -> None:
        self.shuffle, self.seed = shuffle, seed
        super().__init__(data, split, think=think, on_bad_rows=on_bad_rows, render_mode=render_mode)

    def task_of(self, row: Row, number: int) -> Task:
        """Read a row, whose fields identify the layout."""
        question, options, letter = _read(row)
        if _GPQA[0] in row:  # on the hub its only split is called train
            self.benchmark = True
        if self.shuffle or _GPQA[0] in row:
            order = list(rng_at("options", self.seed, number).permutation(len(options)))
            letter = ascii_uppercase[order.index(ascii_uppercase.index(letter))]
            options = [options[i] for i in order]
        answer = f"{letter}) {options[ascii_uppercase.index(letter)]}"
        topic = next((row[key] for key in _TOPICS if isinstance(row.get(key), str)), None)
        return Task(
            prompt=asked(f"{question}\n\n{shown(options)}", _HOW, think=self.think),
            reference={"answer": letter, "options": options},
            id=id_of(row, "id", "question_id", default=f"{self.split}-{number}"),
            metadata={} if topic is None else {"topic": topic},
            solution=thought("I choose.", answer) if self.think else f"The answer is {answer}",
        )


def _read(row: Row) -> tuple[str, list[str], str]:
    """Read question, options and the letter of the correct one."""
    if _GPQA[0] in row:
        for key in _GPQA:
            if not isinstance(row.get(key), str | int | float) or not str(row[key]).strip():
                raise ValueError(f"{key!r} must be text or a number, got {row.get(key)!r:.80}")
        return question_in(row, "Question"), [str(row[key]).strip() for key in _GPQA], "A"
    field = "choices" if row.get("options") is None or row.get("choices") else "options"
    options, labels = options_of(row.get(field), field)
    key = "answerKey" if row.get("answerKey") is not None else "answer"
    return question_in(row, "question"), options, right_letter(row.get(key), options, labels, key)
