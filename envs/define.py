"""A task in ten lines: rows or a generator, a prompt, a rubric."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from ..verifiers import FunctionVerifier, Rubric, Verifier
from ..verifiers.verifier import VerifierLike, as_verifier
from .datasets.bad_rows import OnBadRows
from .datasets.reading import Row
from .datasets.source import Generated, Split
from .datasets.table import Draw, Drawn, Filled, SplitRule, Table, read_table
from .datasets.tabular import frame_rows
from .registry import register
from .task import Conversation, Task, check_message
from .text_env import TextEnv

_MakeTask = TypeVar("_MakeTask", bound=Callable[..., Task])


def environment(
    id: str,  # noqa: A002  # Gymnasium's own name for it
    *,
    rubric: VerifierLike,
    rows: Table | None = None,
    test_share: float = 0.1,
    split_salt: str = "",
) -> Callable[[_MakeTask], _MakeTask]:
    """Register a function that makes one task: from a random generator, or from a row.

    The environment takes ``split`` (``"train"`` or ``"test"``) and ``seed``; over rows also
    ``data``, other rows of the same columns, and ``on_bad_rows``.

    Args:
        id: ``namespace/Name-vN``.
        rubric: a Rubric, one verifier, or a function of reply and reference.
        rows: as for :func:`register_rows`; without them the function gets a generator.
        test_share: the share of tasks that are for ``test``, by the hash of the prompt.
        split_salt: another one puts other prompts into ``test``. The id is no part of the hash: a
            new version with the same prompts has the same splits.

    Raises:
        ValueError: the id is taken or is none, the function does not take one argument, or
            ``test_share`` is not inside (0, 1).

    Example:
        >>> @environment("doctest/Double-v0", rubric=lambda reply, answer: reply == answer)
        ... def double(rng):
        ...     n = int(rng.integers(100, 1000))
        ...     return Task(f"2 * {n} =", reference=str(2 * n))
        >>> from assay.envs import make
        >>> env = make("doctest/Double-v0", split="test")
        >>> question, info = env.reset(seed=0)
        >>> env.step(env.task(0).reference)[2]
        True
    """

    def decorate(make_task: _MakeTask) -> _MakeTask:
        rule = SplitRule(test_share, split_salt)
        _refuse_signature(id, make_task, "a row" if rows is not None else "a random generator")
        summary = (make_task.__doc__ or "").strip().partition("\n")[0]
        judge = _judge(rubric, test_share)
        if rows is None:
            build = _over_a_generator(id, make_task, judge, rule)
        else:
            build = _over_rows(id, rows, make_task, judge, rule)
        build.__qualname__ = make_task.__qualname__
        register(id, build, summary=summary, module=make_task.__module__)
        return make_task

    return decorate


def register_rows(
    id: str,  # noqa: A002  # Gymnasium's own name for it
    rows: Table | Draw,
    *,
    prompt: str | Conversation,
    reference: str | Sequence[str] | Mapping[str, str],
    rubric: VerifierLike,
    solution: str = "",
    metadata: Sequence[str] = (),
    task_id: str = "",
    test_share: float = 0.1,
    split_salt: str = "",
    summary: str = "",
) -> None:
    r"""Register rows with a prompt that has slots for their columns.

    The environment takes ``split``, ``seed`` (0 keeps the order of the rows), ``data``, other
    rows of the same columns, ``on_bad_rows``: with ``"skip"`` rows that cannot be used are
    left out, with a warning that lists them, and ``check_solutions``: a row whose own solution
    fails cannot be used. Files are read when it is made, not here.

    Args:
        id: ``namespace/Name-vN``.
        rows: a list of dicts; a table of pandas, pyarrow or polars; a file, folder or hub name
            (:func:`~assay.envs.read_rows`); ``{"train": ..., "test": ...}`` of these; or a function
            that makes one row from a random generator, for tasks without end.
        prompt: a template, ``"Capital of {country}?"``; or the slot of a column of chat messages,
            ``"{prompt}"``; or chat messages of templates. Braces around anything but a name stay,
            and ``{{name}}`` gives ``{name}``.
        reference: the column of the known answer, or ``"column.key"`` in a column of objects; or
            several, for an object of these; or the column of each key of an object:
            ``{"answer": "final_answer", "tolerance": "error"}``.
        rubric: a Rubric, one verifier, its class or name (``"Exact"``), or a function of reply
            and reference.
        solution: a template of a reply that earns full marks, if one is known.
        metadata: columns to group results by. Policies may see them.
        task_id: the column of ids; ``row-N`` without it.
        test_share: the share of a list's or file's rows that are for ``test``, by the hash of the
            prompt. Rows given by split stay as they are.
        split_salt: another one puts other prompts into ``test``. The id is no part of the hash: a
            new version with the same prompts has the same splits.
        summary: one line for people; the prompt, by default.

    Raises:
        ValueError: the id is taken or is none, there are no rows, ``rubric`` judges nothing, or
            ``test_share`` is not inside (0, 1).

    Example:
        >>> from assay import Exact, make
        >>> cities = {"France": "Paris", "Peru": "Lima", "Chad": "N'Djamena", "Oman": "Muscat"}
        >>> register_rows(
        ...     "doctest/Capitals-v0",
        ...     [{"country": c, "capital": city} for c, city in cities.items()],
        ...     prompt="What is the capital of {country}? Write only its name.",
        ...     reference="capital",
        ...     rubric=Exact(case=False),
        ... )
        >>> env = make("doctest/Capitals-v0")
        >>> env.reset(options={"task": 0})[0]
        'What is the capital of France? Write only its name.'
        >>> env.step("paris")[1]
        1.0
    """
    if not isinstance(prompt, str) and not (isinstance(prompt, Sequence) and prompt):
        raise ValueError(f"prompt must be a template or chat messages of templates, got {prompt!r}")
    if not isinstance(reference, str | Sequence | Mapping):
        raise ValueError(f"reference must name a column, or several, got {reference!r}")
    if isinstance(metadata, str):
        raise ValueError(f"metadata must be a list of columns, got {metadata!r}: [{metadata!r}]")
    for message in () if isinstance(prompt, str) else prompt:
        check_message(message)
    rule = SplitRule(test_share, split_salt)
    judge = _judge(rubric, test_share)
    # Functions cannot say which references they take.
    parts = judge.parts.values() if isinstance(judge, Rubric) else [judge]
    by_function = all(isinstance(part, FunctionVerifier) for part in parts)
    to_task = Filled(prompt, reference, solution, tuple(metadata), task_id, demanded=by_function)
    if callable(rows):
        _refuse_signature(id, rows, "a random generator")
        build = _over_a_generator(id, Drawn(rows, to_task), judge, rule)
    else:
        build = _over_rows(id, rows, to_task, judge, rule)
    text = prompt if isinstance(prompt, str) else prompt[-1]["content"]
    build.__qualname__ = f"register_rows({text!r})"
    module = sys._getframe(1).f_globals.get("__name__", "")
    register(id, build, summary=summary or text.partition("\n")[0], module=module)


def _over_a_generator(
    name: str, make_task: Callable[..., Task], judge: Verifier, rule: SplitRule
) -> Callable[..., TextEnv]:
    def build(split: Split = "train", seed: int = 0, render_mode: str | None = None) -> TextEnv:
        source = Generated(make_task, name=name, split=split, seed=seed, **rule._asdict())
        return TextEnv(source, judge, name=name, render_mode=render_mode)

    return build


def _over_rows(
    name: str, rows: Table, to_task: Callable[[Row], Task], judge: Verifier, rule: SplitRule
) -> Callable[..., TextEnv]:
    rows = frame_rows(rows)
    if isinstance(rows, Mapping) and (not rows or set(rows) - {"train", "test"}):
        raise ValueError(
            f"{name}: rows by split are 'train' and 'test', got {sorted(rows)}: give these two, as "
            "{'train': rows['train'], 'test': rows['validation']}"
        )
    if not isinstance(rows, str | Path | Iterable):
        raise ValueError(
            f"{name}: rows must be a list of dicts, a data frame, a file, folder or hub name, or "
            f"these by split, got {rows!r:.80}"
        )
    if isinstance(rows, Iterator):  # it could be read but once
        rows = list(rows)
    if isinstance(rows, Mapping):
        rows = {k: list(part) if isinstance(part, Iterator) else part for k, part in rows.items()}
    if isinstance(rows, Sequence) and not rows:
        raise ValueError(f"{name}: rows is empty: give at least one row")
    first = next(iter(rows)) if isinstance(rows, Mapping) and "train" not in rows else "train"

    def build(
        split: Split = first,
        seed: int = 0,
        data: str | Path | None = None,
        on_bad_rows: OnBadRows = "raise",
        check_solutions: bool = False,
        render_mode: str | None = None,
    ) -> TextEnv:
        table = rows if data is None else data
        source = read_table(
            name, table, to_task, split, seed, rule, judge, on_bad_rows,
            check_solutions=check_solutions,
        )  # fmt: skip
        return TextEnv(source, judge, name=name, checked=True, render_mode=render_mode)

    return build


def _refuse_signature(name: str, make: Callable[..., object], what: str) -> None:
    try:
        inspect.signature(make).bind(None)
    except TypeError as error:
        called = getattr(make, "__name__", repr(make))
        raise ValueError(f"{name}: {called} must take one argument, {what}: {error}") from error


def _judge(rubric: VerifierLike, test_share: float) -> Verifier:
    if not isinstance(test_share, int | float) or not 0.0 < test_share < 1.0:
        raise ValueError(f"test_share must be between 0 and 1, got {test_share!r}")
    try:
        return as_verifier(rubric)
    except TypeError as error:
        raise ValueError(
            "rubric must be a Verifier, its class or name, or a function of reply and reference: "
            f"{error}"
        ) from error
