"""The numbers of a rollout."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence

from ...envs import Counts, EpisodeGroup
from ..run.evaluate import Rollout, Score


def rollout_metrics(groups: Sequence[EpisodeGroup]) -> dict[str, float]:
    """Numbers of a rollout by name.

    Returns:
        ``reward`` and ``accuracy`` (means over scored episodes), ``reward/NAME`` for each named
        part, ``reward_std`` (mean over groups of the deviation within each), ``masked`` (episodes
        without a reward) and ``none_share`` (their share), ``truncated`` (share cut off),
        ``status/NAME`` (share of episodes that ended so), ``tokens/sampled``, ``tokens/reply``
        (their mean for an episode) and ``tokens/longest``.
    """
    episodes = [e for group in groups for e in group.episodes]
    score = Score.of(groups)
    lengths = [sum(len(s.ids) for s in e.spans if s.author == "model") for e in episodes]
    row = {
        "reward": score.reward,
        "reward_std": _spread(groups),
        "accuracy": score.pass_at_1,
        "masked": score.masked,
        "none_share": score.masked / max(1, len(episodes)),
        "truncated": score.truncated,
        "tokens/sampled": sum(lengths),
        "tokens/reply": sum(lengths) / max(1, len(lengths)),
        "tokens/longest": max(lengths, default=0),
    }
    statuses = Counter(e.status.value for e in episodes)
    row |= {f"status/{name}": n / len(episodes) for name, n in sorted(statuses.items())}
    for name in sorted({name for e in episodes for name in e.rewards}):
        parts = [p for e in episodes if (p := e.rewards.get(name)) is not None]
        if parts:
            row[f"reward/{name}"] = sum(parts) / len(parts)
    return row


def speed(row: Mapping[str, float]) -> dict[str, float]:
    """``tokens/s``: sampled tokens a second of a whole step, from the other numbers of its row."""
    seconds = row["seconds/rollout"] + row["seconds/update"]
    return {"tokens/s": row["tokens/sampled"] / max(seconds, 1e-9)}


def filter_metrics(rollout: Rollout) -> dict[str, float]:
    """What a rollout that leaves groups out, such as ``Refill``, did in the last step.

    Returns:
        ``groups/NAME`` for each of its counts of groups, and ``accuracy/played``: of all episodes
        that were played and scored, the share that is right. Nothing for other rollouts.
    """
    counts = getattr(rollout, "counts", None)
    if not isinstance(counts, Counts):
        return {}
    row = counts.to_json()
    correct, scored = row.pop("correct"), row.pop("scored")
    del row["masked"], row["wanted"]
    played = {"accuracy/played": correct / scored if scored else float("nan")}
    return {f"groups/{name}": float(number) for name, number in row.items()} | played


def _spread(groups: Sequence[EpisodeGroup]) -> float:
    """Mean over groups of the population deviation of their rewards; NaN where none has two."""
    scored = [[r for r in group.rewards if r is not None] for group in groups]
    deviations = [deviation(rewards) for rewards in scored if len(rewards) > 1]
    return statistics.fmean(deviations) if deviations else float("nan")


def deviation(values: Sequence[float]) -> float:
    """Population deviation; the same in any order, and 0.0 where all are equal.

    What ``statistics.pstdev`` gives, without its exact fractions, which cost a hundred times
    as much.
    """
    if min(values) == max(values):
        return 0.0
    mean = statistics.fmean(values)
    return math.sqrt(math.fsum([(v - mean) ** 2 for v in values]) / len(values))
