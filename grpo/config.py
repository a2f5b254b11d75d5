"""Everything a training run can be told, in one place."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, get_args

from .objective import Objective

Schedule = Literal["constant", "linear", "cosine"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GRPOConfig(Objective):
    """Settings of a training run; those of the loss and the advantages are Objective's.

    Attributes:
        steps: rollouts to train on; each is followed by its updates.
        prompts_per_step: P, tasks of a rollout.
        group_size: G, replies to each task, at least 2.
        learning_rate: of AdamW, after the warm-up. The default suits a pretrained model; a tiny
            one made from nothing takes 3e-4.
        warmup_steps: steps over which it rises linearly. Without any, a few steps at full rate
            can drive all rewards to zero, where no gradient leads back.
        schedule: of the learning rate after the warm-up: ``constant``, or a ``linear`` or
            ``cosine`` decay that comes to 0 after the last step.
        weight_decay: of AdamW.
        max_grad_norm: longer gradients are scaled down to this length.
        num_iterations: times each rollout is trained on, mu in the papers.
        minibatches: optimizer steps into which one pass over a rollout is cut.
        temperature: of sampling; log-probabilities are taken at the same.
        max_new_tokens: tokens after which a reply is cut off.
        chat_template_kwargs: given to the tokenizer's chat template, such as
            ``{"enable_thinking": False}``.
        rows_per_batch: replies decoded side by side.
        tokens_per_batch: padded tokens of one forward and backward pass. It changes memory and
            speed, not the gradient.
        rollout_chunks: parts in which the tasks of a rollout are played, in turn: one is sampled
            while environments judge and answer another. 0: as many as ``rows_per_batch`` cuts it
            into in any case. More of them hide slow verifiers, at the price of smaller batches.
        max_refills: dynamic sampling (DAPO, arXiv 2503.14476, section 3.2): rollouts that a step
            may take beyond its first, until it has ``prompts_per_step`` groups whose replies
            differ; 0 takes the groups as they come.
        max_none_share: the run stops where more than this share of a rollout has no reward.
        max_rollout_s: the run stops if a rollout or an evaluation, verifiers included, takes more
            than so many seconds; 0 for no limit.
        max_mismatch: the run stops where the policy is further than this from the one that
            sampled, in nats a token, before any update; 0 for no bound.
        max_drift: the same after updates on the same rollout.
        alarm_patience: rollouts in a row with nothing to learn from after which the run stops;
            0 only warns.
        reference_every: steps after which the model of the KL penalty becomes the policy as it
            is then, again and again; 0 keeps the first.
        eval_every: steps between evaluations on held-out tasks; 0 for never.
        eval_samples: replies to each held-out task, for pass@k; pass it on to ``held_out_tasks``.
        eval_temperature: of sampling there; ``temperature`` where it is ``None``, and 0 takes the
            most likely token.
        keep_best: keep the model with the best held-out reward in ``best/``.
        early_stop: evaluations in a row without a better held-out reward that end the run; 0 for
            never.
        save_every: steps between checkpoints; 0 for only at the end.
        save_every_updates: optimizer steps between checkpoints within one rollout; 0 for none.
        keep_checkpoints: how many of the newest are kept.
        seed: of sampling and of the order of minibatches.
        allow_test_split: train on a split that is for evaluation: test, validation, eval.
        allow_overlap: train on prompts that the held-out tasks have too.
        allow_sample: train on the few rows that the package ships to try an environment with.

    Raises:
        ValueError: a setting is out of its range.
    """

    steps: int = 300
    prompts_per_step: int = 64
    group_size: int = 8
    learning_rate: float = 1e-6
    warmup_steps: int = 10
    schedule: Schedule = "constant"
    weight_decay: float = 0.0
    max_grad_norm: float = 1.0
    num_iterations: int = 1
    minibatches: int = 1
    temperature: float = 1.0
    max_new_tokens: int = 256
    chat_template_kwargs: Mapping[str, Any] | None = None
    rows_per_batch: int = 512
    tokens_per_batch: int = 16384
    rollout_chunks: int = 0
    max_refills: int = 0
    max_none_share: float = 0.5
    max_rollout_s: float = 3600.0
    max_mismatch: float = 0.02
    max_drift: float = 1.0
    alarm_patience: int = 10
    reference_every: int = 0
    eval_every: int = 0
    eval_samples: int = 1
    eval_temperature: float | None = None
    keep_best: bool = False
    early_stop: int = 0
    save_every: int = 0
    save_every_updates: int = 0
    keep_checkpoints: int = 2
    seed: int = 0
    allow_test_split: bool = False
    allow_overlap: bool = False
    allow_sample: bool = False

    def __post_init__(self) -> None:
        Objective.__post_init__(self)  # not super(): see there
        _require_finite(self)
        if self.group_size < 2:
            raise ValueError(
                f"group_size must be at least 2, got {self.group_size}: a reply is compared with "
                "the others to its prompt, and alone it has no advantage. 8 is a good start"
            )
        for name in _AT_LEAST_1:
            _require(self, name, getattr(self, name) >= 1, "at least 1")
        for name in _AT_LEAST_0:
            _require(self, name, getattr(self, name) >= 0, "at least 0")
        for name, rule in _ABOVE_0.items():
            _require(self, name, getattr(self, name) > 0, rule)
        _require(
            self,
            "learning_rate",
            self.learning_rate <= 1,
            "at most 1, as AdamW moves every weight by about so much (1e-6 is usual, not 1e6)",
        )
        _require(
            self, "schedule", self.schedule in get_args(Schedule), f"one of {get_args(Schedule)}"
        )
        _require(self, "max_none_share", 0 <= self.max_none_share <= 1, "in [0, 1]")
        temperature = self.eval_temperature
        _require(
            self, "eval_temperature", temperature is None or temperature >= 0, "None or at least 0"
        )
        if self.minibatches > self.prompts_per_step:
            raise ValueError(
                f"minibatches must be at most prompts_per_step ({self.prompts_per_step}), "
                f"got {self.minibatches}"
            )
        self._refuse_contradictions()

    def _refuse_contradictions(self) -> None:
        """Settings that would do nothing without another one."""
        for name in ("keep_best", "early_stop"):
            if getattr(self, name) and not self.eval_every:
                raise ValueError(
                    f"{name} goes by evaluations, and eval_every is 0: set eval_every above 0"
                )
        if self.reference_every and not self.beta:
            raise ValueError(
                "reference_every refreshes the model of the KL penalty, and beta is 0: set beta "
                "above 0, or leave reference_every at 0"
            )
        updates = self.num_iterations * self.minibatches
        if self.save_every_updates and self.save_every_updates >= updates:
            raise ValueError(
                f"save_every_updates={self.save_every_updates} saves within a rollout, and a "
                f"rollout is {updates} update(s), minibatches times num_iterations: use save_every"
            )
        if self.rollout_chunks > self.prompts_per_step:
            raise ValueError(
                f"rollout_chunks must be at most prompts_per_step ({self.prompts_per_step}), "
                f"got {self.rollout_chunks}"
            )
        if self.eval_temperature == 0 and self.eval_samples > 1:
            raise ValueError(
                "eval_samples above 1 asks for several replies to a task, and eval_temperature=0 "
                "gives the same one each time: set one of them otherwise"
            )

    def rate(self, step: int) -> float:
        """Return the learning rate of a step, counted from 1."""
        rate = self.learning_rate * min(1.0, step / max(1, self.warmup_steps))
        if self.schedule == "constant" or step <= self.warmup_steps:
            return rate
        left = (self.steps + 1 - step) / (self.steps + 1 - self.warmup_steps)
        return rate * (left if self.schedule == "linear" else (1 - math.cos(math.pi * left)) / 2)

    def to_json(self) -> dict[str, Any]:
        """A dict of plain JSON values."""
        return asdict(self)


_AT_LEAST_1 = (
    "prompts_per_step",
    "num_iterations",
    "minibatches",
    "max_new_tokens",
    "rows_per_batch",
    "tokens_per_batch",
    "eval_samples",
    "keep_checkpoints",
)
_AT_LEAST_0 = (
    "steps",
    "warmup_steps",
    "weight_decay",
    "rollout_chunks",
    "max_refills",
    "max_rollout_s",
    "max_mismatch",
    "max_drift",
    "alarm_patience",
    "reference_every",
    "eval_every",
    "early_stop",
    "save_every",
    "save_every_updates",
)

_ABOVE_0 = {
    "learning_rate": "above 0: at 0 nothing is learned",
    "max_grad_norm": "above 0: at 0 nothing is learned",
    "temperature": "above 0: at 0 the replies of a group are equal, and teach nothing",
}


def _require_finite(config: GRPOConfig) -> None:
    for field in fields(config):
        value = getattr(config, field.name)
        if isinstance(value, float):
            bound = math.isinf(value) and field.name in _MAY_BE_INFINITE
            _require(config, field.name, math.isfinite(value) or bound, "finite")


# A bound that is infinite is none.
_MAY_BE_INFINITE = ("max_grad_norm", "cispo_cap", "correction_cap", "clip_high", "dual_clip")


def _require(config: GRPOConfig, name: str, holds: bool, rule: str) -> None:
    if not holds:
        raise ValueError(f"{name} must be {rule}, got {getattr(config, name)!r}")
