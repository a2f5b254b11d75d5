"""Assign credit: turn judged episodes into rows of tokens, each with its advantage.

Passes the named rewards of :mod:`assay.envs` to the pure functions of
:mod:`~assay.grpo.advantage` and :mod:`~assay.grpo.loss`. Token weights (by mismatch or entropy) are
multiplied into advantages: every surrogate is proportional to them.

Shapes: P groups, G episodes in the largest of them, B rows (the episodes that have a reward),
T tokens of the longest reply, K turns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from ..envs import Episode, EpisodeGroup, outcome
from .advantage import outcome_advantages, process_advantages
from .batch import Row, row_of
from .config import Objective
from .logprobs import TokenScores
from .loss import mismatch_weights, penalised_rewards, top_entropy_mask

NAN = float("nan")


def rows_of(groups: Sequence[EpisodeGroup]) -> list[Row]:
    """Make rows of all episodes that have a reward, group by group, without advantages.

    Those of further branches of an episode come after the first rows of all.
    """
    scored = [e for group in groups for e in group.episodes if e.reward is not None]
    further = [replace(e, spans=spans) for e in scored for spans in e.branches]
    return [row_of(e) for e in (*scored, *further)]


def reads_policy(objective: Objective) -> bool:
    """Return whether :func:`credit` needs the scores of the rows under the trainer."""
    return objective.correction != "none" or objective.top_entropy < 1


def credit(
    groups: Sequence[EpisodeGroup],
    rows: Sequence[Row],
    objective: Objective,
    reading: Sequence[TokenScores] | None = None,
) -> list[Row]:
    """Give each row, from :func:`rows_of`, the advantages of its tokens.

    If a KL penalty is taken off the reward, they have their reference. ``reading`` are scores of
    each row under the trainer, if :func:`reads_policy` says so; if the mismatch is corrected, the
    rows get these log-probabilities.

    Raises:
        ValueError: the objective needs rewards of turns or named ones, and there are none.
    """
    if not rows:  # without episodes there are no named rewards, which is no fault of the settings
        return []
    scored = [e for group in groups for e in group.episodes if e.reward is not None]
    # Episodes are compared by their first rows; further branches share the outcome.
    owners = [*range(len(scored)), *(i for i, e in enumerate(scored) for _ in e.branches)]
    if objective.advantage == "process":
        advantages = _of_turns(groups, rows, objective)
    else:
        compared = _of_outcomes(groups, rows[: len(scored)], objective)
        advantages = [(compared[i],) * len(r.reply) for i, r in zip(owners, rows, strict=True)]
    made = [replace(r, advantages=a) for r, a in zip(rows, advantages, strict=True)]
    if objective.mask_truncated:
        for i, (owner, row) in enumerate(zip(owners, made, strict=True)):
            n = len(row.reply)
            if scored[owner].truncated:
                made[i] = replace(row, written=(False,) * n, advantages=(0.0,) * n)
    return made if reading is None else _weighed(made, reading, objective)


def reading_drift(rows: Sequence[Row], reading: Sequence[TokenScores]) -> float:
    """Return the distance of reader and sampler, in nats a token, as :func:`.guards.drift`."""
    far = _padded([x.logprobs for x in reading]) - row_table(rows, "logprobs")
    far = far[row_table(rows, "written").bool()]
    return float((far.expm1() - far).mean())


def flat_share(groups: Sequence[EpisodeGroup], rows: Sequence[Row]) -> float:
    """Return the share of groups without a gradient: none of their tokens has an advantage.

    ``rows`` are theirs, from :func:`credit`. With ``advantage="group"`` these are groups whose
    rewards are all equal, or whose tokens are all masked.
    """
    rest = iter(rows)
    flat = 0
    for group in groups:
        mine = [next(rest) for e in group.episodes if e.reward is not None]
        flat += not any(row.teaches for row in mine)
    return flat / max(1, len(groups))


def reward_table(
    groups: Sequence[EpisodeGroup], of: Callable[[Episode], float | None] = lambda e: e.reward
) -> Tensor:
    """Return rewards of groups of any sizes as [P, G] of float64; NaN if missing."""
    width = max(len(group.episodes) for group in groups)
    found = [[of(e) for e in group.episodes] for group in groups]
    padded = [[NAN if r is None else r for r in row] + [NAN] * (width - len(row)) for row in found]
    return torch.tensor(padded, dtype=torch.float64)


def _of_outcomes(
    groups: Sequence[EpisodeGroup], rows: Sequence[Row], objective: Objective
) -> list[float]:
    """Compute one advantage for each row."""
    rewards = reward_table(groups)
    there = ~rewards.isnan()
    if objective.beta and objective.kl_in == "reward":
        logprobs, reference = row_table(rows, "logprobs"), row_table(rows, "reference")
        mask = row_table(rows, "written").bool()
        rewards[there] = penalised_rewards(
            rewards[there], logprobs, reference, mask, beta=objective.beta, estimator=objective.kl
        )
    lengths = torch.zeros_like(rewards)
    lengths[there] = torch.tensor([float(r.length) for r in rows], dtype=torch.float64)
    names = {name for group in groups for e in group.episodes for name in e.rewards}
    named = {n: reward_table(groups, lambda e, n=n: e.rewards.get(n)) for n in sorted(names)}  # type: ignore[misc]  # the default binds n
    correct = reward_table(groups, outcome).masked_fill(~there, NAN)
    advantages = outcome_advantages(
        rewards, objective, lengths=lengths, named=named, correct=correct
    )
    found: list[float] = advantages[there].tolist()
    return found


def _of_turns(
    groups: Sequence[EpisodeGroup], rows: Sequence[Row], objective: Objective
) -> list[tuple[float, ...]]:
    """Compute the advantages of each row's tokens from the rewards of its turns."""
    _require_turn_rewards(groups)
    if not rows:
        return []
    scored = [[e for e in group.episodes if e.reward is not None] for group in groups]
    shape = len(groups), max(map(len, scored)), max([1, *(len(row.ends) for row in rows)])
    rewards = torch.full(shape, NAN, dtype=torch.float64)
    ends = torch.zeros(shape, dtype=torch.int64)
    places = [(p, i) for p, mine in enumerate(scored) for i in range(len(mine))]
    for (p, i), row in zip(places, rows, strict=True):
        # An episode that was cut off in its first turn has no rewards of turns.
        for k, reward in enumerate(scored[p][i].step_rewards):
            if reward is not None:
                rewards[p, i, k], ends[p, i, k] = reward, row.ends[k]
    longest, o = max(len(row.reply) for row in rows), objective
    values = process_advantages(rewards, ends, longest, std=o.advantage_std, eps=o.advantage_eps)
    found = [values[p, i].tolist() for p, i in places]
    return [tuple(of_row[: len(row.reply)]) for of_row, row in zip(found, rows, strict=True)]


def _require_turn_rewards(groups: Sequence[EpisodeGroup]) -> None:
    """Refuse a rollout without rewards of turns, or with others than the policy's turns."""
    scored = [e for group in groups for e in group.episodes if e.reward is not None]
    for episode in scored:
        if episode.branches:
            raise ValueError(
                f"advantage='process' credits the turns of one conversation, and an episode of "
                f"task {episode.task_id!r} has several: set advantage='group'"
            )
        turns = sum(s.author == "model" for s in episode.spans)
        if episode.step_rewards and len(episode.step_rewards) != turns:
            raise ValueError(
                f"advantage='process' needs one reward for each turn: an episode of task "
                f"{episode.task_id!r} has {len(episode.step_rewards)} rewards and tokens of "
                f"{turns} turns. A policy must give the tokens of every turn it takes"
            )
    # An episode that was cut off in its first turn has none; a whole rollout may be of these.
    without = next((e for e in scored if not e.truncated), None)
    if without is not None and not any(e.step_rewards for e in scored):
        raise ValueError(
            f"advantage='process' needs a reward of each turn, but the episodes of task "
            f"{without.task_id!r} have none: let the environment's Turn carry rewards, or set "
            "advantage='group'"
        )


def _weighed(
    rows: Sequence[Row], reading: Sequence[TokenScores], objective: Objective
) -> list[Row]:
    """Multiply advantages by token weights; if corrected, use the trainer's log-probabilities."""
    mask, advantages = row_table(rows, "written").bool(), row_table(rows, "advantages")
    read = [replace(r, logprobs=x.logprobs) for r, x in zip(rows, reading, strict=True)]
    if objective.correction != "none":
        advantages = advantages * mismatch_weights(
            row_table(read, "logprobs"),
            row_table(rows, "logprobs"),
            mask,
            objective.correction,
            objective.correction_cap,
            floor=objective.correction_floor,
        )
        rows = read
    if objective.top_entropy < 1:
        entropies = _padded([x.entropies for x in reading])
        chosen = top_entropy_mask(entropies, mask, objective.top_entropy)
        advantages = advantages.masked_fill(~chosen, 0.0)
    weighed = advantages.tolist()
    return [
        replace(row, advantages=tuple(values[: len(row.reply)]))
        for row, values in zip(rows, weighed, strict=True)
    ]


def row_table(rows: Sequence[Row], name: str) -> Tensor:
    """Return a field of rows for each reply token: [B, T] of float64, 0 past the end."""
    return _padded([getattr(row, name) for row in rows])


def _padded(values: Sequence[Sequence[float]]) -> Tensor:
    """Pad to [B, T] of float64, with 0 past the end."""
    width = max((len(v) for v in values), default=0)
    padded = [[*v, *[0.0] * (width - len(v))] for v in values]
    return torch.tensor(padded, dtype=torch.float64).reshape(len(values), width)  # none: [0, 0]
