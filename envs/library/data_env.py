"""What environments over data sets share: where rows come from, and errors that name the row."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import ClassVar

from ...verifiers import Verifier
from ..data import DataError, Row, Types, read_rows
from ..source import Rows
from ..task import Task
from ..text_env import TextEnv

SAMPLE = "sample"
"""The ``data`` that stands for the few rows that come with the package."""


class DataEnv(TextEnv):
    """Tasks that are the rows of a data set. Derive from it, and write :meth:`task_of`.

    Without ``data`` it has a few rows of our own making, in the data set's layout, so that it
    runs offline; it warns of that, since nobody should train on them or report a score of them.
    ``data="sample"`` says that they are wanted, and warns of nothing.

    Args:
        data: a file, a folder, a hub name (see :func:`~assay.envs.data.read_rows`), or
            ``"sample"``; ``None`` for the sample with a warning.
        split: which split, where the data has several; the sample has one.
        rubric: what judges replies, or a function from the rows to it.
        render_mode: ``"ansi"`` or ``None``.

    Attributes:
        fields: what every row must have, with types.
        hub: the data set's name on the hub, with its configuration; empty where it is there as
            files that the datasets package does not read by name.
        data: where the rows are from; ``"sample"`` where they are the package's.

    Raises:
        DataError: the data cannot be read, or a row cannot be used; the message names it.
    """

    fields: ClassVar[Mapping[str, Types]]
    hub: ClassVar[str] = ""

    def __init__(
        self,
        data: str | Path | None,
        split: str,
        rubric: Verifier | Callable[[Sequence[Row]], Verifier],
        *,
        render_mode: str | None = None,
    ) -> None:
        if data is None:
            warnings.warn(_warning(type(self).__name__, self.hub), UserWarning, stacklevel=3)
        self.data, self.split = data if data is not None else SAMPLE, split
        place = sample_of(type(self)) if self.data == SAMPLE else self.data
        hub, _, config = self.hub.partition(":")
        if str(place) != hub and not Path(place).is_dir():
            config = ""  # another data set on the hub has other configurations
        rows = read_rows(place, fields=self.fields, split=split, config=config)
        judge = rubric if isinstance(rubric, Verifier) else rubric(rows)
        tasks = [self._task(row, i) for i, row in enumerate(rows) if self.wants(row)]
        if not tasks:
            raise DataError(f"{self.data} has {len(rows)} rows, and none is what was asked for")
        super().__init__(Rows(tasks), judge, render_mode=render_mode)

    def wants(self, row: Row) -> bool:
        """Whether a row is among those that were asked for; all are, by default."""
        return True

    def name_of(self, row: Row) -> str:
        """A row's own name, for errors; empty where it has none."""
        return str(next((row[key] for key in _NAMES if row.get(key) not in (None, "")), ""))

    @abstractmethod
    def task_of(self, row: Row, number: int) -> Task:
        """The task of one row, which has :attr:`fields`.

        Args:
            row: as it was read.
            number: its place, from 0.

        Raises:
            ValueError: it cannot be used; the message says what is wrong with it.
        """

    def _task(self, row: Row, number: int) -> Task:
        try:
            return self.task_of(row, number)
        except (ValueError, TypeError, AttributeError) as error:
            told, name = str(error), self.name_of(row)
            if not isinstance(error, ValueError):  # a field that may be missing is no text, say
                told = f"a field has another type than the layout has there ({told})"
            if _REMEDY not in told:
                told = f"{told}. {_REMEDY}"
            raise DataError(f"{self.data}, row {number}{name and f' ({name})'}: {told}") from error


_REMEDY = "Correct or remove this row"


def sample_of(kind: type[DataEnv]) -> Path:
    """The file with the rows that come with the package; it is named as its module."""
    name = kind.__module__.rpartition(".")[2]
    return Path(str(files(__package__) / "samples" / f"{name}.jsonl"))


def _warning(name: str, hub: str) -> str:
    such = f"a file or {hub!r}" if hub else "a file of its repository, as test.jsonl"
    return (
        f"{name} has only the sample: a few rows of Assay's own making, not the data set. Do not "
        f"train on it, and report no score of it. Give data=, such as {such}; "
        "data='sample' says that the sample is wanted"
    )


_NAMES = ("task_id", "question_id", "problem_id", "unique_id", "id", "ID")
