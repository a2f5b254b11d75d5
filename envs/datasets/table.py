"""Rows into tasks: from a list, a file, a hub, or a function that makes one row at a time."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Number
from pathlib import Path
from typing import Any, NamedTuple, get_args

import numpy as np

from ...verifiers import Status, Verifier
from ...verifiers.exits import reraise_termination
from ..seeding import rng_at, share
from ..task import Conversation, Task
from .bad_rows import SHOWN, BadRows, BadRowsWarning, OnBadRows
from .errors import SplitError
from .reading import REMEDY, DataError, Row, placed_rows, refuse_value
from .same_prompt import plain_prompt
from .source import Rows, Source, Split
from .split_files import file_split, find_split, is_for_evaluation, no_split
from .tabular import Frame, dataset_rows, frame_rows

Place = Iterable[Row] | str | Path
Table = Place | Frame | Mapping[Split, Place | Frame]
"""Rows: a list; a pandas, pyarrow or polars table; a file, folder, hub name; or these by split."""

Draw = Callable[[np.random.Generator], Row]
"""Makes one row."""


class SplitRule(NamedTuple):
    """The rule by which the hash of a prompt puts it into a split.

    Attributes:
        test_share: the share of prompts that are for ``test``.
        salt: another one parts the prompts into other splits.
    """

    test_share: float
    salt: str


@dataclass(frozen=True)
class Filled:
    """Make a task of a row by filling slots.

    Attributes:
        prompt: a template; or the slot of a column of chat messages, ``"{prompt}"``; or chat
            messages whose contents are templates.
        reference: the column that holds it; or several, for an object of these; or the column of
            each key of an object. ``"column.key"`` is a value of a column of objects.
        solution: a template of a reply that earns full marks; empty if none is known.
        metadata: columns to keep beside the task.
        id: the column that holds the task's id; empty for the row's number.
        demanded: whether the reference must not be null.
    """

    prompt: str | Conversation
    reference: str | Sequence[str] | Mapping[str, str]
    solution: str = ""
    metadata: Sequence[str] = ()
    id: str = ""
    demanded: bool = False

    def __call__(self, row: Row) -> Task:
        """Make one task.

        Raises:
            ValueError: the row lacks a column.
        """
        return Task(
            prompt=self._prompt(row),
            reference=self._reference(row),
            id=self._id(row) if self.id else "",
            metadata={name: _column(row, name) for name in self.metadata},
            solution=fill(self.solution, row) if self.solution else None,
        )

    def _id(self, row: Row) -> str:
        found = _column(row, self.id)
        if found is None or found != found or found == "":
            raise ValueError(f"column {self.id!r} holds the task's id, which is missing")
        return str(found)

    def _prompt(self, row: Row) -> str | Conversation:
        if not isinstance(self.prompt, str):
            return [{**m, "content": fill(m["content"], row)} for m in self.prompt]
        slot = _ONE_SLOT.fullmatch(self.prompt)
        messages = row.get(slot[1]) if slot else None
        if not isinstance(messages, list) or not messages:
            return fill(self.prompt, row)
        last = messages[-1]
        if isinstance(last, Mapping) and last.get("role") == "assistant":
            raise ValueError(
                f"the messages of {self.prompt} must end before the reply, and the last is the "
                f"assistant's: {last!r:.80}"
            )
        return messages

    def _reference(self, row: Row) -> Any:
        names = self.reference
        if isinstance(names, str):
            found = _column(row, names)
            if found is None and self.demanded:
                raise ValueError(f"the reference, column {names!r}, is missing (null)")
            return found
        columns = names if isinstance(names, Mapping) else {name: name for name in names}
        return {key: _column(row, name) for key, name in columns.items()}


@dataclass(frozen=True)
class Drawn:
    """Make a task from a drawn row. Picklable if its functions are."""

    draw: Draw
    to_task: Callable[[Row], Task]

    def __call__(self, rng: np.random.Generator) -> Task:
        """Make one task."""
        row = self.draw(rng)
        if not isinstance(row, Mapping):
            raise ValueError(f"the function must return a dict of columns, got {row!r:.80}")
        return self.to_task(row)


def read_table(
    name: str,
    table: Table,
    to_task: Callable[[Row], Task],
    split: Split,
    seed: int,
    rule: SplitRule,
    judge: Verifier,
    on_bad_rows: OnBadRows = "raise",
    *,
    check_solutions: bool = False,
) -> Source:
    """Return the tasks of one split.

    Rows that are given by split stay so, and so do those of a folder, of a hub and of a file whose
    name says that it is for evaluation. Of a list or another file a row belongs to the split that
    its prompt hashes to (:func:`plain_prompt`), whatever the environment is called.

    Args:
        name: the environment, for errors and the order of the rows.
        table: the rows.
        to_task: a row's task.
        split: ``train`` or ``test``.
        seed: 0 keeps the order of the rows; another one shuffles them.
        rule: parts the rows of a list or file.
        judge: what judges replies, and so says which references can be used.
        on_bad_rows: ``"raise"`` to refuse a table with rows that cannot be used, ``"skip"`` to
            leave these out, with a warning that lists them.
        check_solutions: judge the solution of each task; a row whose own one fails is bad.

    Raises:
        DataError: the rows cannot be read, or one makes no task.
        ValueError: there is no such split, or no row in it.
    """
    if split not in get_args(Split):
        raise ValueError(f"split must be 'train' or 'test', got {split!r}")
    by_split = table if isinstance(table, Mapping) else None
    if by_split is not None and split not in by_split:
        raise no_split(name, split, list(by_split))
    place: Place = dataset_rows(frame_rows(table if by_split is None else by_split[split]))
    if not isinstance(place, str | Path | Iterable):
        raise DataError(f"{name}: data must be a file, a folder, a hub name or rows, got {place!r}")
    kind, whole = _kind(place, split) if by_split is None else (str(split), True)
    bad = BadRows(on_bad_rows)
    placed = (
        placed_rows(place, fields={}, split=kind, bad=bad)
        if isinstance(place, str | Path)
        else [(number, f"{name}: row {number}", row) for number, row in enumerate(place)]
    )
    if not placed and not bad.rows:
        raise DataError(f"{name}: no rows: give at least one")
    total = len(placed) + len(bad.rows)
    tasks = bad.keep(placed, lambda number, where, row: _task(where, number, to_task, row))
    of_split = [each for each in tasks if whole or _split_of(each[2], rule) == split]
    kept = usable_tasks(of_split, bad, judge, check_solutions=check_solutions)
    left_out = bad.close(name, total)
    if not kept:
        raise SplitError(
            f"{name}: none of {len(tasks)} rows is in the split {split!r}, since "
            f"{rule.test_share:.0%} of them, by the hash of the prompt, are for 'test'. Give more "
            "rows, or rows by split: {'train': ..., 'test': ...}",
            [other for other in get_args(Split) if other != split],
        )
    if seed:
        kept = [kept[i] for i in rng_at(name, "order", seed).permutation(len(kept))]
    source = Rows(kept, kind)
    source.bad_rows = left_out
    return source


def _kind(place: Place, split: Split) -> tuple[str, bool]:
    """Return the split to read, and whether it is everything that is read."""
    if not isinstance(place, str | Path):
        return split, False
    if Path(place).is_file():
        whole = is_for_evaluation(file_split(Path(place)))
        return (find_split(place, split), True) if whole else (split, False)
    return find_split(place, split), True


def _split_of(task: Task, rule: SplitRule) -> Split:
    prompt = plain_prompt(task.text)
    return "test" if share("split", rule.salt, prompt) < rule.test_share else "train"


def _task(where: str, number: int, to_task: Callable[[Row], Task], row: Row) -> Task:
    if not isinstance(row, Mapping):
        raise DataError(f"{where}: expected a dict of columns, got {row!r:.80}")
    try:
        task = to_task(row)
    except (Exception, SystemExit) as error:
        reraise_termination(error)
        message = f"no {error}" if isinstance(error, KeyError) else str(error)
        if not isinstance(error, ValueError | KeyError):  # a fault of the function's own
            message = f"{type(error).__name__}: {error}"
        raise DataError(f"{where}: {message}") from error
    if not isinstance(task, Task):
        raise DataError(f"{where}: expected a Task to be made of it, got {task!r:.80}")
    refuse_value(where, "prompt", task.text, str)
    if not task.text.strip():
        raise DataError(f"{where}: the prompt is empty. {REMEDY}")
    if isinstance(task.reference, float) and math.isnan(task.reference):
        raise DataError(f"{where}: the reference is missing (NaN). {REMEDY}")
    return task if task.id else replace(task, id=f"row-{number}")


def usable_tasks(
    placed: Iterable[tuple[int, str, Task]],
    bad: BadRows,
    judge: Verifier,
    *,
    check_solutions: bool,
) -> list[Task]:
    """Return the tasks whose id is their own, whose reference is usable and whose solution wins.

    Args:
        placed: index, place and task of each row.
        bad: collects the others.
        judge: the rubric.
        check_solutions: judge the solutions.

    Raises:
        DataError: no task has a solution, or one cannot be judged.
    """
    places: dict[str, str] = {}

    def own_id(_: int, place: str, task: Task) -> Task:
        if places.setdefault(task.id, place) != place:
            raise DataError(
                f"{place}: the id {task.id!r} must be this row's alone, and is also that of "
                f"{places[task.id]}. {REMEDY}"
            )
        return task

    def without(faults: Mapping[str, str]) -> Callable[[int, str, Task], Task]:
        def check(_: int, place: str, task: Task) -> Task:
            if task.id in faults:
                raise DataError(f"{place} ({task.id}): {faults[task.id]}. {REMEDY}")
            return task

        return check

    kept = bad.keep(placed, own_id)
    found = {task.id: _reference_fault(judge, task) for *_, task in kept}
    kept = bad.keep(
        kept, without({id_: fault for id_, fault in found.items() if fault is not None})
    )
    if check_solutions:
        kept = bad.keep(kept, without(_failing_solutions(judge, [task for *_, task in kept])))
    tasks = [task for *_, task in kept]
    _warn_of_contradictions(judge, tasks)
    return tasks


def _reference_fault(judge: Verifier, task: Task) -> str | None:
    try:
        return judge.check_reference(task.reference)
    except (Exception, SystemExit) as error:
        reraise_termination(error)
        return f"check_reference must return the fault, and raised {type(error).__name__}: {error}"


def _warn_of_contradictions(judge: Verifier, tasks: Sequence[Task]) -> None:
    """Warn of tasks with one prompt of which none pays for another's reference."""
    first: dict[str, Task] = {}
    found: list[str] = []
    for task in tasks:
        known = first.setdefault(task.text, task)
        wins = None if known.reference == task.reference else judge.oracle_reply(known.reference)
        if wins is not None and judge.verify(wins, task.reference).status is Status.INCORRECT:
            found.append(f"{known.id} and {task.id}")
    if found:
        warnings.warn(
            f"{len(found)} rows ask what an earlier row asks and have another answer, so replies "
            f"that are right for one earn 0 for the other: {', '.join(found[:SHOWN])}. Remove the "
            "wrong ones",
            BadRowsWarning,
            stacklevel=5,
        )


def _failing_solutions(judge: Verifier, tasks: Sequence[Task]) -> dict[str, str]:
    """Return what is wrong with solutions that earn less than full marks, by the task's id."""
    known = [task for task in tasks if task.solution is not None]
    if tasks and not known:
        raise DataError("no row has a solution that could be checked: leave out check_solutions")
    replies = [task.solution or "" for task in known]
    verdicts = judge.verify_many(replies, [task.reference for task in known])
    failing: dict[str, str] = {}
    for task, verdict in zip(known, verdicts, strict=True):
        said = f"{verdict.status}: {verdict.reason}"
        if verdict.score is None and verdict.status is not Status.BAD_GOLD:
            raise DataError(f"the solution of {task.id} cannot be judged ({said})")
        if verdict.score != judge.score_range[1]:
            failing[task.id] = f"its own solution fails, and so may every reply ({said})"
    return failing


def _column(row: Row, name: str) -> Any:
    column, _, key = name.partition(".")
    if name not in row and key and isinstance(row.get(column), Mapping):
        return _column(row[column], key)
    if name not in row:
        raise ValueError(f"no column {name!r}; the row has {', '.join(map(str, row)) or 'none'}")
    return row[name]


_SLOT = re.compile(r"(\{+)([^\W\d][\w -]*(?:\.[\w -]+)*)(\}+)")
_ONE_SLOT = re.compile(r"\{([^\W\d][\w -]*)\}")


def fill(template: str, row: Mapping[str, Any]) -> str:
    r"""Put a row's values into the slots: ``{column}``, or ``{column.key}`` of a column of objects.

    What is put in is not read again.

    Braces around anything but a name (``\boxed{}``, ``x^{2}``) stay. As in Python's own format
    strings ``{{name}}`` gives ``{name}``, and ``{{{name}}}`` the value in braces.

    Raises:
        ValueError: there is no such column, or its value is neither text nor a number.

    Example:
        >>> fill(r"{n} apples? Use \boxed{}. \boxed{{{n}}}", {"n": 3})
        '3 apples? Use \\boxed{}. \\boxed{3}'
    """

    def put(found: re.Match[str]) -> str:
        left, name, right = found.groups()
        if "." in name and name not in row and not isinstance(row.get(name.split(".")[0]), Mapping):
            return found[0]
        depth = min(len(left), len(right))
        middle = _value(row, name) if depth % 2 else name
        kept = depth // 2
        return left[depth - kept :] + middle + right[depth - kept :]

    return _SLOT.sub(put, template)


def _value(row: Mapping[str, Any], name: str) -> str:
    if name not in row and "." not in name:
        raise ValueError(
            f"no column {name!r} for the slot {{{name}}}; the row has "
            f"{', '.join(map(str, row)) or 'none'}. Write {{{{{name}}}}} for the braces themselves"
        )
    value = _column(row, name)
    if not isinstance(value, str | Number) or value != value:  # NaN is a gap of pandas'
        raise ValueError(
            f"column {name!r} must be text or a number to stand in a prompt, or chat messages to "
            f"be all of it, got {value!r:.80}. Make the prompt in a function of the row instead: "
            "@environment(id, rows=...)"
        )
    return str(value)
