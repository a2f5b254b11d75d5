"""verl: an environment as its reward function, and its tasks as its parquet rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..envs import TextEnv
from ..verifiers import Rubric, Status, Verdict, Verifier
from .judging import (
    Judge,
    by_name,
    decode_reference,
    encode_reference,
    judge_replies,
    tasks_to_write,
    verifier_named,
)

Row = dict[str, float | str]
"""The result for one reply."""


class VerlReward:
    """A ``compute_score`` of verl's. Make one with :func:`verl_reward`."""

    def __init__(self, judges: dict[str, Verifier] | Verifier, retries: int) -> None:
        self.judges, self.retries = judges, retries
        every: Iterable[Verifier] = [judges] if isinstance(judges, Verifier) else judges.values()
        # verl puts rows of all sources into one table, so each row has the columns of all.
        names = (f"part/{name}" for one in every if isinstance(one, Rubric) for name in one.parts)
        self.columns = dict.fromkeys(names, float("nan"))
        self.__name__ = "compute_score"

    def __call__(
        self,
        data_source: str | None = None,
        solution_str: str | None = None,
        ground_truth: str | None = None,
        extra_info: Mapping[str, Any] | None = None,
        *,
        data_sources: Sequence[str] | None = None,
        solution_strs: Sequence[str] | None = None,
        ground_truths: Sequence[str] | None = None,
        **_: Any,
    ) -> Row | list[Row]:
        """Judge one reply, as most managers ask; or a whole batch, as verl's ``batch`` does.

        Args:
            data_source: which environment, if there are several.
            solution_str: the reply; verl has taken its special tokens off.
            ground_truth: the reference, as :func:`to_verl` writes it.
            extra_info: ignored.
            data_sources: of a batch [B], in place of ``data_source``.
            solution_strs: of a batch [B].
            ground_truths: of a batch [B].

        Returns:
            ``score``, what verl trains on; ``acc``, 1.0 for a right answer; ``status``; and each
            part of a rubric as ``part/NAME``, NaN if it has none. The same keys for every reply,
            whatever its source. A list of these for a batch.

        Raises:
            RewardFault: an infrastructure failure left no score.
            ValueError: no judge has the name, the ground truth is no JSON, or those of a batch are
                not as many as its replies.
            TypeError: neither a reply is given nor a batch.
        """
        if data_sources is not None and solution_strs is not None and ground_truths is not None:
            return self._batch(list(data_sources), list(solution_strs), list(ground_truths))
        if data_source is None or solution_str is None:
            raise TypeError(
                "expected data_source, solution_str and ground_truth, or data_sources, "
                "solution_strs and ground_truths: let verl's naive, dapo or batch manager ask"
            )
        return self._batch([data_source], [solution_str], [ground_truth])[0]

    def _batch(self, sources: list[str], replies: list[str], golds: list[Any]) -> list[Row]:
        """Judge rows in one batch per judge, and return them in order."""
        if not len(sources) == len(replies) == len(golds):
            raise ValueError(
                f"expected as many data_sources and ground_truths as solution_strs, got "
                f"{len(sources)}, {len(golds)} and {len(replies)}"
            )
        places: dict[str, list[int]] = {}
        for place, source in enumerate(sources):
            places.setdefault(str(source), []).append(place)
        found: dict[int, Row] = {}
        for source, mine in places.items():
            verifier = verifier_named(self.judges, source)
            references = [decode_reference("ground_truth", golds[i]) for i in mine]
            verdicts = judge_replies(
                verifier, [replies[i] for i in mine], references, retries=self.retries
            )
            found |= dict(zip(mine, map(self._row, verdicts), strict=True))
        return [found[place] for place in range(len(replies))]

    def _row(self, verdict: Verdict) -> Row:
        score = verdict.score
        assert score is not None  # noqa: S101  # judged() raised otherwise
        known = {f"part/{name}": s for name, s in verdict.parts.items() if s is not None}
        parts = {name: known.get(name, missing) for name, missing in self.columns.items()}
        right = float(verdict.status is Status.CORRECT)
        return {"score": score, "acc": right, "status": verdict.status.value, **parts}


def verl_reward(judges: Judge | Mapping[str, Judge], *, retries: int = 2) -> VerlReward:
    """Make a reward function for verl's ``reward.custom_reward_function.path`` and ``name``.

    verl has no word for "no score": ``None`` breaks its batch or becomes 0.0, depending on the
    reward manager, and NaN spoils the whole group's advantages. So a reply that is not judged is
    judged again, ``retries`` times, and then raises. Its ``naive``, ``dapo`` and ``batch``
    managers hand that on and the run stops; ``prime`` writes 0.0 for any exception, so do not use
    that one.

    Args:
        judges: an environment of one turn or a verifier; or several, by ``data_source``.
        retries: further tries for a reply that an infrastructure failure left without a score.

    Raises:
        ValueError: an environment plays more than one reply.

    Example:
        >>> from assay import Exact
        >>> compute_score = verl_reward(Exact())
        >>> compute_score("cities", "Paris", '"Paris"')["score"]
        1.0
    """
    return VerlReward(by_name(judges), retries)


def to_verl(
    env: TextEnv,
    path: str | Path,
    *,
    size: int | None = None,
    seed: int = 0,
    split: str = "train",
    data_source: str = "",
    **allow: bool,
) -> int:
    """Write tasks as the parquet file that verl's ``data.train_files`` names.

    Args:
        env: an environment of one turn.
        path: of the file.
        size: how many rows, in the order of training; by default every task once.
        seed: of that order.
        split: what the file is for, noted in ``extra_info``: make ``env`` with the same.
        data_source: what the rows are called; the environment's id.
        **allow: ``allow_test_split`` and ``allow_sample``, to write tasks for evaluation or the
            package's sample into a file to train on.

    Returns:
        The number of rows.

    Raises:
        ValueError: the environment is not of one turn, its tasks never end and there is no
            ``size``, its tasks are not for the split, or a reference cannot be used.
        ImportError: pyarrow is missing: the extra ``verl``.
    """
    import pyarrow
    from pyarrow import parquet

    rows = [
        {
            "data_source": data_source or env.name,
            "prompt": [dict(message) for message in task.messages],
            "ability": str(task.metadata.get("topic", "")),
            "reward_model": {"style": "rule", "ground_truth": encode_reference(task.reference)},
            "extra_info": {"index": index, "split": split, "task": task.id},
        }
        for index, task in tasks_to_write(env, size=size, seed=seed, split=split, **allow)
    ]
    parquet.write_table(pyarrow.Table.from_pylist(rows), str(path))
    return len(rows)
