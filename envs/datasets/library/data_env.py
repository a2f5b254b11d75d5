"""Base of environments over data sets: loading rows, and errors that name the row."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import ClassVar

from ....sandbox import Sandbox
from ....verifiers import Code, Rubric, Verifier
from ...accuracy import accuracy_rubric
from ...task import Task
from ...text_env import TextEnv
from ..bad_rows import BadRows, OnBadRows
from ..errors import SplitError
from ..reading import REMEDY, DataError, Row, Types, placed_rows
from ..source import Rows
from ..split_files import find_split, is_for_evaluation, no_split, split_kind
from ..splits import SAMPLE
from ..table import usable_tasks


class DataEnv(TextEnv):
    """Tasks that are the rows of a data set. Derive from it, and write :meth:`task_of`.

    A class's options are documented once, in the class that takes them first.

    Without ``data`` it has a sample, a few rows in the data set's layout that were written for this
    package, so that it runs offline; a warning says so, since a sample is neither for training nor
    for reported scores. ``data="sample"`` selects it without the warning.

    Args:
        data: a file, a folder, a hub name (see :func:`~assay.envs.datasets.reading.read_rows`), or
            ``"sample"``; ``None`` for the sample with a warning.
        split: the split to read; ``None`` for the only one that the data has.
        rubric: what judges replies, or a function from the rows to it.
        on_bad_rows: ``"skip"`` to leave out rows that cannot be used, and list them.
        check_solutions: judge the solution of each row; one whose own solution fails cannot be
            used.
        render_mode: ``"ansi"`` or ``None``.

    Attributes:
        fields: what every row must have, with types.
        optional: what a row may have, with types; null stands for nothing there.
        hub: the data set's name on the hub, with its configuration; empty if it is there as
            files that the datasets package does not read by name.
        data: the source of the rows; ``"sample"`` for the package's.
        benchmark: whether such data is made for evaluation alone, whatever its files call it.

    Raises:
        DataError: the data cannot be read, or a row cannot be used; the message names it.
    """

    fields: ClassVar[Mapping[str, Types]]
    optional: ClassVar[Mapping[str, Types]] = {}
    hub: ClassVar[str] = ""
    benchmark: bool = False

    def __init__(
        self,
        data: str | Path | None,
        split: str | None,
        rubric: Verifier | Callable[[Sequence[Row]], Verifier],
        *,
        on_bad_rows: OnBadRows = "raise",
        check_solutions: bool = False,
        render_mode: str | None = None,
    ) -> None:
        bad = BadRows(on_bad_rows)
        if not isinstance(data, str | Path | None):
            raise DataError(
                f"data must be a file, a folder or a hub name, got a {type(data).__name__}. Write "
                "rows or a data frame to a file, or register them: register_rows(id, rows, ...)"
            )
        if data is None:
            warnings.warn(_warning(type(self).__name__, self.hub), UserWarning, stacklevel=3)
        self.data = data if data is not None else SAMPLE
        place = sample_of(type(self)) if self.data == SAMPLE else self.data
        hub, _, config = self.hub.partition(":")
        if str(place) != hub and not Path(place).is_dir():
            config = ""  # another data set on the hub has other configurations
        found_split = self._find_split(place, split, config)
        self.split = split or found_split or "test"  # the ids of rows without one begin with it
        placed = placed_rows(
            place,
            fields=self.fields,
            optional=self.optional,
            split=found_split,
            config=config,
            bad=bad,
        )
        total = len(placed) + len(bad.rows)
        if not placed:
            bad.close(str(self.data), total)
        judge = rubric if isinstance(rubric, Verifier) else rubric([row for _, _, row in placed])
        wanted = [(index, where, row) for index, where, row in placed if self.wants(row)]
        if not wanted:
            raise DataError(f"{self.data} has {total} rows, and none is what was asked for")
        made = bad.keep(wanted, self._task)
        tasks = usable_tasks(made, bad, judge, check_solutions=check_solutions)
        left_out = bad.close(str(self.data), total)
        if not tasks:
            raise DataError(f"{self.data}: none of the rows that were asked for can be used")
        source = Rows(tasks, self._kind(found_split))
        source.bad_rows = left_out
        super().__init__(source, judge, checked=True, render_mode=render_mode)

    def _find_split(self, place: str | Path, split: str | None, config: str) -> str:
        """Return the split to read: the sample has all, a benchmark only its test split."""
        if self.data == SAMPLE:
            if split and not any(map(split_kind, split.split("+"))):  # no data set may have it
                raise no_split(SAMPLE, split, ["train", "validation", "test"])
            return split or ""
        try:
            return find_split(place, split, config)
        except SplitError as error:
            if self.benchmark and split == "test" and len(error.splits) == 1:
                return error.splits[0]
            raise

    def _kind(self, split: str) -> str:
        """Return the split that the rows belong to, whatever was read."""
        if self.data == SAMPLE:
            return SAMPLE
        return "test" if self.benchmark and not is_for_evaluation(split) else split

    def wants(self, row: Row) -> bool:
        """Return whether to select a row; by default all."""
        return True

    def name_of(self, row: Row) -> str:
        """Return a row's own name for errors, empty if it has none."""
        return str(next((row[key] for key in _NAMES if row.get(key) not in (None, "")), ""))

    @abstractmethod
    def task_of(self, row: Row, number: int) -> Task:
        """Make the task of a row, which has :attr:`fields`.

        Raises:
            ValueError: it cannot be used; the message says what is wrong with it.
        """

    def _task(self, number: int, place: str, row: Row) -> Task:
        try:
            return self.task_of(row, number)
        except (ValueError, TypeError, AttributeError) as error:
            message, name = str(error), self.name_of(row)
            if not isinstance(error, ValueError):  # a field that may be missing is no text, say
                message = f"a field has another type than the layout has there ({message})"
            if REMEDY not in message:
                message = f"{message}. {REMEDY}"
            raise DataError(f"{place}{name and f' ({name})'}: {message}") from error


class AnswerEnv(DataEnv):
    """Base of data sets with an answer to each question: its verifier, and a format on request.

    Args:
        think: ask for ``<think>`` and ``<answer>`` and pay for them.
    """

    verifier: ClassVar[Callable[[], Verifier]]

    def __init__(
        self,
        data: str | Path | None = None,
        split: str | None = None,
        *,
        think: bool = False,
        on_bad_rows: OnBadRows = "raise",
        render_mode: str | None = None,
    ) -> None:
        self.think = think
        super().__init__(
            data, split, self.rubric_of, on_bad_rows=on_bad_rows, render_mode=render_mode
        )

    def rubric_of(self, rows: Sequence[Row]) -> Verifier:
        """Return what judges replies, given the rows."""
        return accuracy_rubric(type(self).verifier(), think=self.think)


class ProgramEnv(DataEnv):
    """Base of data sets whose answers are programs, judged in a sandbox.

    Args:
        difficulty: only rows of this ``difficulty``; empty for all.
        partial: pay the share of cases passed, instead of all or nothing.
        sandbox: where programs run; ``None`` opens one on first use.
        check_solutions: run each row's own solution, and take a row whose solution fails for bad.
    """

    def __init__(
        self,
        data: str | Path | None = None,
        split: str | None = None,
        *,
        difficulty: str = "",
        partial: bool = False,
        sandbox: Sandbox | None = None,
        on_bad_rows: OnBadRows = "raise",
        check_solutions: bool = False,
        render_mode: str | None = None,
    ) -> None:
        self.difficulty = difficulty
        super().__init__(
            data,
            split,
            Rubric({"accuracy": Code(sandbox, partial=partial)}),
            on_bad_rows=on_bad_rows,
            check_solutions=check_solutions,
            render_mode=render_mode,
        )

    def wants(self, row: Row) -> bool:
        """Return whether a row has the requested difficulty."""
        return not self.difficulty or row.get("difficulty") == self.difficulty


def sample_of(kind: type[DataEnv]) -> Path:
    """Return the file with the sample of an environment, named like its module."""
    name = kind.__module__.rpartition(".")[2]
    return Path(str(files(__package__) / "samples" / f"{name}.jsonl"))


def _warning(name: str, hub: str) -> str:
    such = f"a file or {hub!r}" if hub else "a file of its repository, as test.jsonl"
    return (
        f"{name} has only the sample: a few rows of Assay's own making, not the data set. Do not "
        f"train on it, and report no score of it. Give data=, such as {such}; "
        "data='sample' says that the sample is wanted"
    )


def question_in(row: Row, field: str) -> str:
    """Return a row's question, stripped.

    Raises:
        ValueError: the field holds no text, or says nothing.
    """
    value = row.get(field)
    if not isinstance(value, str) or not value.strip():
        raise ValueError(
            f"{field!r} must be text that says something, got {value!r:.80}; the row has "
            f"{', '.join(map(str, row)) or 'no fields'}"
        )
    return value.strip()


def id_of(row: Row, *names: str, default: str | int) -> str:
    """Return a row's id: the first of these fields that is set, which may be 0."""
    found = next((row[name] for name in names if row.get(name) not in (None, "")), default)
    return str(found)


_NAMES = ("task_id", "question_id", "problem_id", "unique_id", "id", "ID")
