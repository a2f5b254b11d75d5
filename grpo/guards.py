"""Checks that stop a run before it is lost, each cause with its name."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..envs import EpisodeGroup
from .config import GRPOConfig
from .interrupt import TrainingStopped

METRIC = "held_out/reward"
"""What evaluations are compared by."""
NEARLY_ALL, NEARLY_NOTHING = 0.98, 0.01
_ALARM_AFTER = 3


class TooManyUnscored(TrainingStopped):
    """So many episodes have no reward that training would follow what is left by accident."""


class NotFinite(TrainingStopped):
    """The loss or its gradient is infinite or NaN; it has not reached the weights."""


class SamplerMismatch(TrainingStopped):
    """The log-probabilities of a fresh rollout are not those of the model that is trained."""


class RatioExploded(TrainingStopped):
    """The policy has moved too far from the one that sampled to learn from its rollout."""


class NothingToLearn(TrainingStopped):
    """Several rollouts in a row have no gradient."""


class TrainingAlarm(UserWarning):
    """Training goes on, but the rewards hold nothing to learn from."""


def require_scored(groups: Sequence[EpisodeGroup], step: int, most: float) -> None:
    """Refuse a rollout in which more than a share of ``most`` of the episodes has no reward.

    Raises:
        TooManyUnscored: it names the most common reason.
    """
    episodes = [e for group in groups for e in group.episodes]
    lost = [e for e in episodes if e.reward is None]
    if len(lost) <= most * len(episodes):
        return
    reasons = Counter(f"{e.status.value}: {e.verdict.reason}" for e in lost)
    raise TooManyUnscored(
        f"step {step}: {len(lost)} of {len(episodes)} episodes have no reward, more than the share "
        f"of {most} that max_none_share allows. Most common: {reasons.most_common(1)[0][0]!r}. "
        "Mend that and resume; no update was made"
    )


def drift(sums: Mapping[str, float]) -> float:
    """Return the mean of p / q - 1 - log(p / q) over tokens that q sampled, in nats.

    p is the policy. An unbiased estimate of KL(q || p) that is never negative (Schulman,
    "Approximating KL divergence", 2020: k3). The mean of the ratio itself says little: its
    expectation is 1 however far p is from q. NaN without tokens. ``sums`` are those of
    :func:`~assay.grpo.loss.policy_sums`.
    """
    if not sums.get("tokens"):
        return math.nan
    if sums["ratio"] == math.inf:  # where q is 0 the logarithm is infinite too
        return math.inf
    return (sums["ratio"] - sums["log_ratio"]) / sums["tokens"] - 1


def require_near(sums: Mapping[str, float], config: GRPOConfig, step: int, *, fresh: bool) -> None:
    """Refuse a minibatch, by its sums, whose policy is too far from the one that sampled it.

    Raises:
        SamplerMismatch: it is, although it is ``fresh``: no update was made since.
        RatioExploded: it is, after updates.
    """
    far, name = drift(sums), "max_mismatch" if fresh else "max_drift"
    most = getattr(config, name)
    if not most or not far > most:  # NaN is found in the gradient
        return
    found = (
        f"step {step}: the policy is {far:.3g} nats a token from the one that sampled (a log ratio "
        f"of up to {sums['max_log_ratio']:.3g}), and {name} is {most}. "
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
    """Refuse a gradient before it reaches the weights, by its length.

    And by the loss: a bound cuts the gradient of a ratio that is no number to zero.

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
class StopReason:
    """Why a run ends before its last step: well, if its tasks are solved; else it is stuck."""

    reason: str
    well: bool


def stall_reason(row: Mapping[str, Any]) -> StopReason | None:
    """Say why a step's rollout holds (nearly) nothing to learn from; ``None`` if it does."""
    solved = StopReason("every reply to every task is right", True)
    reward = row.get("reward")
    if reward is None or reward != reward:  # NaN reads back as None
        if not row.get("groups/generated"):
            if row.get("prompts/too_long") and not row.get("tokens/sampled"):
                return StopReason("every prompt was left out: raise max_prompt_tokens", False)
            return StopReason("no episode has a reward", False)
        # All groups were left out by a filter.
        if row.get("groups/all_correct", 0.0) >= NEARLY_ALL * row["groups/generated"]:
            return solved
        return StopReason("dynamic sampling found no group whose replies differ", False)
    if row["zero_variance"] < NEARLY_ALL:
        return None
    if reward >= 1 - NEARLY_NOTHING:
        return solved
    if row["truncated"] >= NEARLY_ALL:
        return StopReason("every reply was cut off: raise max_new_tokens", False)
    if reward <= NEARLY_NOTHING:
        return StopReason(
            "nearly every group earned nothing: warm-start the model, take easier tasks, or go "
            "back to a checkpoint with a lower learning_rate or more warmup_steps",
            False,
        )
    return StopReason(
        f"within nearly every group all replies earned the same (mean reward {reward:.3g}): take "
        "tasks that are neither always nor never solved",
        False,
    )


class Patience:
    """Counts steps in a row that hold nothing to learn from; so many end the run, 0 never.

    One such step happens in a healthy run with few prompts; three in a row hardly do: ``alarm``
    then says what to warn of.
    """

    def __init__(self, steps: int) -> None:
        self._most, self._streak = steps, 0
        self.alarm: str | None = None

    def check(self, row: Mapping[str, Any]) -> StopReason | None:
        """Take a step's row; say why the run ends, if it does."""
        found, self.alarm = stall_reason(row), None
        if found is None:
            self._streak = 0
            return None
        self._streak += 1
        reason = f"for {self._streak} rollouts in a row {found.reason}"
        if self._streak == _ALARM_AFTER:
            self.alarm = reason
        return StopReason(reason, found.well) if 0 < self._most <= self._streak else None


class EarlyStop:
    """Counts evaluations in a row without a better one; so many end the run, 0 never."""

    def __init__(self, evaluations: int) -> None:
        self._most, self._since, self._best = evaluations, 0, -math.inf

    def check(self, row: Mapping[str, Any]) -> StopReason | None:
        """Take a row, with an evaluation or without; say why the run ends, if it does."""
        value = row.get(METRIC)
        if value is None:
            return None
        better = value > self._best  # False for NaN
        self._best, self._since = (value, 0) if better else (self._best, self._since + 1)
        if not self._most or self._since < self._most:
            return None
        return StopReason(
            f"{self._since} evaluations in a row were no better than {METRIC} = {self._best:.4g}",
            True,
        )
