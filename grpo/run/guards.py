"""What stops a run before it is lost, each cause with its name.

Shapes: B replies, T tokens.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ...envs import EpisodeGroup
from ..config import GRPOConfig

NEARLY_ALL, NEARLY_NOTHING = 0.98, 0.01


class TooManyUnscored(RuntimeError):
    """So many episodes have no reward that training would follow what is left by accident."""


class NotFinite(RuntimeError):
    """The loss or its gradient is infinite or NaN; it has not reached the weights."""


class SamplerMismatch(RuntimeError):
    """The log-probabilities of a fresh rollout are not those of the model that is trained."""


class RatioExploded(RuntimeError):
    """The policy has moved so far from the one that sampled that its rollout tells it nothing."""


class NothingToLearn(RuntimeError):
    """Rollout after rollout holds nothing that a gradient could come from."""


class TrainingAlarm(UserWarning):
    """Training goes on, but there is nothing in the rewards to learn from."""


def require_scored(groups: Sequence[EpisodeGroup], step: int, most: float) -> None:
    """Refuse a rollout in which too much has no reward.

    Args:
        groups: of the rollout.
        step: of the run.
        most: share of its episodes that may have none.

    Raises:
        TooManyUnscored: it names the most common reason.
    """
    total, masked = sum(len(g.episodes) for g in groups), sum(g.masked for g in groups)
    if masked <= most * total:
        return
    reasons = Counter(
        f"{e.status.value}: {e.verdict.reason}"
        for g in groups
        for e in g.episodes
        if e.reward is None
    )
    raise TooManyUnscored(
        f"step {step}: {masked} of {total} episodes have no reward, more than the share of "
        f"{most} that max_none_share allows. Most common: {reasons.most_common(1)[0][0]!r}. Mend "
        "that and resume; no update was made"
    )


@torch.no_grad()
def drift_sums(logprobs: Tensor, old_logprobs: Tensor, mask: Tensor) -> dict[str, float]:
    """How far the policy is from the one that sampled, for :func:`drift`.

    Args:
        logprobs: [B, T] under the policy.
        old_logprobs: [B, T] under the one that sampled.
        mask: [B, T] of bool.

    Returns:
        ``log_ratio``, a sum over tokens; ``max_log_ratio``, the largest of any, sign aside.
    """
    log_ratio = (logprobs - old_logprobs)[mask].double()
    furthest = float(log_ratio.abs().max()) if log_ratio.numel() else 0.0
    return {"log_ratio": float(log_ratio.sum()), "max_log_ratio": furthest}


def drift(sums: Mapping[str, float]) -> float:
    """Mean of p / q - 1 - log(p / q) over tokens that q sampled, p being the policy, in nats.

    An unbiased estimate of KL(q || p) that is never negative (Schulman, "Approximating KL
    divergence", 2020: k3). The mean of the ratio itself tells little: it is expected to be 1
    however far p is from q.

    Returns:
        NaN without tokens.
    """
    if not sums.get("tokens"):
        return float("nan")
    return (sums["ratio"] - sums["log_ratio"]) / sums["tokens"] - 1


def require_near(sums: Mapping[str, float], config: GRPOConfig, step: int, *, fresh: bool) -> None:
    """Refuse a minibatch whose policy is too far from the one that sampled it.

    Args:
        sums: of the minibatch.
        config: the bounds.
        step: of the run.
        fresh: no update was made since it was sampled.

    Raises:
        SamplerMismatch: it is, although it should be the same.
        RatioExploded: it is, after updates.
    """
    far, most = drift(sums), config.max_mismatch if fresh else config.max_drift
    if not most or not far > most:  # NaN is the gradient's to tell
        return
    found = (
        f"step {step}: the policy is {far:.3g} nats a token from the one that sampled (a log ratio "
        f"of up to {sums['max_log_ratio']:.3g}), and max_{'mismatch' if fresh else 'drift'} is "
        f"{most}. "
    )
    if fresh:
        raise SamplerMismatch(
            found + "No update was made since then, so the log-probabilities of the rollout are "
            "not this model's: look for another temperature or top-p, a chat template or tokenizer "
            "that reads the reply otherwise, a server with other weights, or half precision"
        )
    raise RatioExploded(
        found + "Resume with a lower learning_rate, or train with fewer num_iterations or "
        "minibatches"
    )


def require_finite(loss: float, norm: float, step: int) -> None:
    """Refuse a gradient before it reaches the weights.

    Args:
        loss: of the minibatch. Itself too: a bound cuts the gradient of a ratio that is no
            number to zero.
        norm: length of the gradient.
        step: of the run.

    Raises:
        NotFinite: one of them is infinite or NaN.
    """
    if not math.isfinite(loss) or not math.isfinite(norm):
        raise NotFinite(
            f"step {step}: the loss is {loss} and the gradient's length {norm}; nothing has "
            "reached the weights. Resume with a lower learning_rate or more warmup_steps; where it "
            "comes again at once, remove the newest checkpoint first"
        )


@dataclass(frozen=True, slots=True)
class Ending:
    """Why a run ends before its last step.

    Attributes:
        reason: for people.
        well: it has got what there was to get; else it is stuck.
    """

    reason: str
    well: bool


def silent(row: Mapping[str, Any]) -> Ending | None:
    """Say why a step's rollout holds (nearly) nothing to learn from; ``None`` where it does.

    Args:
        row: metrics of the step.
    """
    none = row.get("reward") is None or row["reward"] != row["reward"]  # NaN reads back as None
    if none and row.get("groups/generated"):  # all groups were left out by a filter
        right = row.get("groups/all_correct", 0.0) / row["groups/generated"]
        if right >= NEARLY_ALL:
            return Ending("every reply to every task is right", True)
        return Ending("dynamic sampling found no group whose replies differ", False)
    if none:
        return Ending("no episode has a reward", False)
    if row["zero_variance"] < NEARLY_ALL:
        return None
    reward = row["reward"]
    if reward >= 1 - NEARLY_NOTHING:
        return Ending("every reply to every task is right", True)
    if row["truncated"] >= NEARLY_ALL:
        return Ending("every reply was cut off: raise max_new_tokens", False)
    if reward <= NEARLY_NOTHING:
        return Ending(
            "nearly every group earned nothing: warm-start the model, take easier tasks, or go "
            "back to a checkpoint with a lower learning_rate or more warmup_steps",
            False,
        )
    return Ending(
        f"within nearly every group all replies earned the same (mean reward {reward:.3g}): take "
        "tasks that are neither always nor never solved",
        False,
    )


class Patience:
    """Counts steps in a row that hold nothing to learn from.

    Args:
        steps: how many end the run; 0 for any number.
    """

    def __init__(self, steps: int) -> None:
        self._most, self._streak = steps, 0

    def check(self, row: Mapping[str, Any]) -> Ending | None:
        """Take a step's row; say why the run ends, where it does."""
        found = silent(row)
        self._streak = 0 if found is None else self._streak + 1
        if found is None or not self._most or self._streak < self._most:
            return None
        return Ending(f"for {self._streak} rollouts in a row {found.reason}", found.well)
