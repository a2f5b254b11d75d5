"""Judging for trainers that take one number: a failure of infrastructure raises."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..envs import Task, TextEnv
from ..envs.datasets.split_files import is_for_evaluation
from ..envs.datasets.splits import refuse_training
from ..envs.group_rubric import refuse_group_rubric
from ..lone_replies import played
from ..verifiers import Verdict, Verifier
from ..verifiers.atomic_io import write_text

Judge = TextEnv | Verifier


class RewardFault(RuntimeError):
    """No reward can be given, by no fault of the policy. The trainer has no word for it."""


def verifier_of(judge: Judge) -> Verifier:
    """Return the verifier of a single reply: the verifier itself, or an environment's rubric.

    Raises:
        ValueError: an episode of the environment is more than one reply, its reward is not its
            rubric's, or depends on the other replies of a group.
        TypeError: it is neither.
    """
    if isinstance(judge, Verifier):
        return judge
    if not isinstance(judge, TextEnv):
        raise TypeError(f"expected an environment or a verifier, got {type(judge).__name__}")
    why = played(judge)
    if why:
        raise ValueError(
            f"{judge.name} plays episodes ({', '.join(why)}), and this trainer's reward function "
            "sees one reply: train on it with TRL or assay.grpo"
        )
    refuse_group_rubric(judge.name, judge.group_rubric)
    return judge.rubric


def judge_replies(
    verifier: Verifier, replies: Sequence[str], references: Sequence[Any], *, retries: int
) -> list[Verdict]:
    """Judge replies; those that an infrastructure failure left without a score are judged again.

    Raises:
        RewardFault: a reply has no score after all tries. The message gives status and reason.
    """
    verdicts = verifier.verify_many(replies, references)
    for _ in range(retries):
        failed = [i for i, verdict in enumerate(verdicts) if verdict.score is None]
        if not failed:
            break
        again = verifier.verify_many([replies[i] for i in failed], [references[i] for i in failed])
        for i, verdict in zip(failed, again, strict=True):
            verdicts[i] = verdict
    for verdict in verdicts:
        if verdict.score is None:
            raise RewardFault(
                f"no reward after {retries + 1} tries: {verdict.status.value}: {verdict.reason}. "
                "The reply was not judged wrong, and 0.0 would teach that it was"
            )
    return verdicts


def encode_reference(reference: Any) -> str:
    """Encode a reference as these trainers' data sets store it: always JSON."""
    return json.dumps(reference, ensure_ascii=False)


def write_rows(path: str | Path, rows: Sequence[Mapping[str, Any]]) -> int:
    """Write rows atomically as a JSONL file; return their number."""
    write_text(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    return len(rows)


def decode_reference(name: str, text: Any) -> Any:
    """Invert :func:`encode_reference`.

    Raises:
        ValueError: it is not such text.
    """
    try:
        return json.loads(text)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{name} must be the JSON that to_verl and to_openrlhf write, got {text!r:.80}: "
            "write the data set with them, or json.dumps() the reference"
        ) from error


def tasks_to_write(
    env: TextEnv, *, size: int | None = None, seed: int = 0, split: str = "train", **allow: bool
) -> list[tuple[int, Task]]:
    """Return the tasks for a trainer's file, with their indices.

    Args:
        env: an environment of one turn.
        size: how many rows, in the order of training; by default every task once.
        seed: of that order.
        split: what the file is for: make ``env`` with the same.
        **allow: ``allow_test_split`` and ``allow_sample``, to write tasks for evaluation or the
            package's sample into a file to train on.

    Raises:
        ValueError: the environment is not of one turn, its tasks never end and there is no
            ``size``, its tasks are not for the split, or a reference cannot be used.
    """
    if not is_for_evaluation(split):
        refuse_training(env, **allow)
    elif env.source.split == "train":
        raise ValueError(
            f"{env.name}: its tasks are of the split 'train', and the file is for {split!r}: make "
            "the environment with split='test'"
        )
    verifier = verifier_of(env)
    found = [(index, env.task(index)) for index in rows_of(env, size, seed)]
    for index, task in found:
        fault = verifier.check_reference(task.reference)
        if fault is not None:
            raise ValueError(
                f"{env.name}, task {index} ({task.id}): {fault}. Correct or remove this row: no "
                "reply to it could be judged"
            )
    return found


def rows_of(env: TextEnv, size: int | None, seed: int) -> list[int]:
    """Return the indices of the tasks to write: all in order, or ``size`` in training's order.

    Raises:
        ValueError: the tasks never end and no size is given, or the size is below 1.
    """
    if size is None:
        if env.source.size is None:
            raise ValueError(f"{env.name} makes tasks without end: say how many by size=")
        return list(range(env.source.size))
    if size < 1:
        raise ValueError(f"size must be at least 1, got {size}")
    return [env.source.schedule(i, seed) for i in range(size)]


def by_name(judges: Judge | Mapping[str, Judge]) -> dict[str, Verifier] | Verifier:
    """Return verifiers by the name of the data that they judge, or the one for all.

    Raises:
        ValueError: there is none.
    """
    if not isinstance(judges, Mapping):
        return verifier_of(judges)
    if not judges:
        raise ValueError("expected at least one environment or verifier, got none")
    return {name: verifier_of(judge) for name, judge in judges.items()}


def verifier_named(judges: Verifier | Mapping[str, Verifier], data_source: str) -> Verifier:
    """Return the verifier of a row.

    Raises:
        ValueError: nothing judges its data source.
    """
    if isinstance(judges, Verifier):
        return judges
    if data_source not in judges:
        raise ValueError(
            f"nothing judges data_source {data_source!r}; known: {', '.join(judges)}. "
            "Name the environment as the rows do"
        )
    return judges[data_source]
