"""Reward functions over a data set's own columns, for ``trl.scripts.grpo --reward_funcs``.

Name them by their import path, such as ``assay.rewards.accuracy_reward``. A row without a usable
reference gets ``None``, which TRL leaves out of its group.
"""

from __future__ import annotations

import atexit
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from .envs.trl.reward import verdict_metrics
from .envs.trl.tools import reply_of
from .sandbox import problem_from_row
from .verifiers import Code, Math, Status, Verdict, Verifier
from .verifiers.text.extract import final_answer
from .verifiers.verifier import same_length

Completions = Sequence[str | Sequence[Mapping[str, Any]]]
Log = Callable[..., None]

_MARKED = ("boxed", "answer", "hash", "phrase")
_LONGEST_BARE = 200
"""Characters of a solution that is an answer without a mark, such as ``34``."""


def accuracy_reward(
    completions: Completions,
    solution: Sequence[Any] | None = None,
    answer: Sequence[Any] | None = None,
    *,
    tolerance: Sequence[float | None] | None = None,
    log_metric: Log | None = None,
    log_extra: Log | None = None,
    **_: Any,
) -> list[float | None]:
    r"""Pay 1.0 for a final answer that equals the one in the data set's ``solution``.

    Args:
        completions: TRL's: texts, or lists of messages of which the policy's last is judged.
        solution: the column of known answers: LaTeX, a number or words, or a whole solution whose
            answer is in ``\boxed{}``, after ``####`` or after "the answer is".
            A list holds several known answers, any of which is correct.
        answer: the column that is read if there is no ``solution``, or null in a row.
        tolerance: the column of absolute tolerances, if there is one.
        log_metric: TRL's; gets the share of each status.
        log_extra: TRL's; gets each status and reason.

    Returns:
        One reward for each completion; ``None`` if no answer can be read in the solution.

    Raises:
        ValueError: the data set has neither column, or there is not one answer for each completion.

    Example:
        >>> accuracy_reward([r"It is \boxed{0.5}", r"\boxed{2}"], [r"$\frac{1}{2}$", "3"])
        [1.0, 0.0]
    """
    columns = [column for column in (solution, answer) if column is not None]
    if not columns:
        raise ValueError("accuracy_reward needs a column 'solution' or 'answer' in the data set")
    for column in columns:
        same_length(completions, column)
    rows = zip(*columns, strict=True)
    known = [next(filter(_is_known, row), None) for row in rows]
    given = tolerance or [None] * len(known)
    references = [
        {"answer": _reference(one), "tolerance": near} if _is_known(near) else _reference(one)
        for one, near in zip(known, given, strict=True)
    ]
    return _judge(_math(), completions, references, log_metric, log_extra)


def code_reward(
    completions: Completions,
    *,
    log_metric: Log | None = None,
    log_extra: Log | None = None,
    **columns: Any,
) -> list[float | None]:
    """Pay 1.0 for a program that passes the tests of its row, in the sandbox.

    Args:
        completions: as for :func:`accuracy_reward`.
        log_metric: as for :func:`accuracy_reward`.
        log_extra: as for :func:`accuracy_reward`.
        columns: the data set's columns, in any of the forms that
            :func:`~assay.sandbox.problem_from_row` reads.

    Returns:
        One reward for each completion; ``None`` if its row has no usable tests.
    """
    lists = {
        name: column
        for name, column in columns.items()
        if name not in _OF_TRL and isinstance(column, Sequence) and len(column) == len(completions)
    }
    rows = [{name: column[i] for name, column in lists.items()} for i in range(len(completions))]
    return _judge(_code(), completions, [_problem(row) for row in rows], log_metric, log_extra)


def think_format_reward(completions: Completions, **_: Any) -> list[float]:
    """Pay 1.0 for a reply that opens with ``<think>``, once, and closes it, as TRL's does.

    It judges form alone: an empty thought and an empty answer are paid.
    :class:`~assay.verifiers.Format` with ``tags=("think",)`` refuses both.

    Example:
        >>> think_format_reward(["<think>6 by 7</think> 42", "42"])
        [1.0, 0.0]
    """
    thoughts = (reply.partition("<think>") for reply in _replies(completions))
    return [
        float(not before and bool(tag) and "<think>" not in rest and "</think>" in rest)
        for before, tag, rest in thoughts
    ]


_OF_TRL = frozenset({"prompts", "completion_ids", "trainer_state", "environments"})


@cache
def _math() -> Math:
    return Math(worked_out=True)


@cache
def _code() -> Code:
    code = Code()
    atexit.register(code.close)
    return code


def _reference(solution: Any) -> str | float | list[str | float]:
    """Return the answer in a solution, or in each of several; empty if none can be read."""
    if isinstance(solution, list):
        return [_answer(one) for one in solution]
    return _answer(solution)


def _is_known(value: Any) -> bool:
    """Return whether a cell holds something: pandas marks what is missing by NaN."""
    return value is not None and not (isinstance(value, float) and value != value)


def _answer(solution: Any) -> str | float:
    if isinstance(solution, Mapping) or not _is_known(solution):
        return ""
    if isinstance(solution, float):
        return solution
    text = str(solution)
    found = final_answer(text, _MARKED)
    if found.rule:
        return found.text or ""
    bare = text.strip()
    return bare if "\n" not in bare and len(bare) <= _LONGEST_BARE else ""


def _problem(row: Mapping[str, Any]) -> Any:
    try:
        return problem_from_row(row)
    except ValueError as error:
        return error


def _replies(completions: Completions) -> list[str]:
    return [reply_of(completion) for completion in completions]


def _judge(
    verifier: Verifier,
    completions: Completions,
    references: Sequence[Any],
    log_metric: Log | None,
    log_extra: Log | None,
) -> list[float | None]:
    replies = _replies(completions)
    usable = [i for i, one in enumerate(references) if not isinstance(one, ValueError)]
    found = verifier.verify_many([replies[i] for i in usable], [references[i] for i in usable])
    judged = dict(zip(usable, found, strict=True))
    verdicts = [
        judged[i] if i in judged else Verdict.fault(Status.BAD_GOLD, str(reference))
        for i, reference in enumerate(references)
    ]
    if log_extra is not None:
        log_extra("status", [verdict.status.value for verdict in verdicts])
        log_extra("reason", [verdict.reason for verdict in verdicts])
    if log_metric is not None:
        for name, value in verdict_metrics(verdicts).items():
            log_metric(name, value)
    return [verdict.score for verdict in verdicts]
