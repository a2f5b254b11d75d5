"""The loop for policies of units: sample groups, score, give credit, update, and again."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from assay.family.trainers.fit import descend
from assay.grpo import Objective, derive_seed, policy_loss
from assay.grpo.loss import loss_denominator, merge_sums, policy_sums

from .units import Credit, Scorer, UnitPolicy, Units, outcome_credit


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitConfig(Objective):
    """Settings of :class:`UnitLearner`; those of the objective are :class:`Objective`'s.

    Attributes:
        steps: rollouts.
        prompts_per_step: P.
        group_size: G.
        learning_rate: of AdamW.
        num_iterations: passes over each rollout (mu).
        minibatches: optimizer steps of each pass; each takes whole groups.
        max_grad_norm: gradients are scaled down to this norm.
        seed: decides everything.

    Raises:
        ValueError: a value is out of its range, or has no effect beside the others.
    """

    steps: int = 100
    prompts_per_step: int = 8
    group_size: int = 16
    learning_rate: float = 3e-4
    num_iterations: int = 1
    minibatches: int = 1
    max_grad_norm: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        Objective.__post_init__(self)  # not super(): see Objective
        for name in ("steps", "prompts_per_step", "group_size", "num_iterations", "minibatches"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)!r}")
        if self.minibatches > self.prompts_per_step:
            raise ValueError(
                f"minibatches must be at most prompts_per_step ({self.prompts_per_step}), for each "
                f"takes whole groups, got {self.minibatches}"
            )
        for name in ("learning_rate", "max_grad_norm"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} must be above 0, got {getattr(self, name)!r}")
        if self.kl_in != "loss":
            raise ValueError("kl_in='reward' has no effect on units: leave it at 'loss'")


class UnitLearner:
    """Trains a :class:`UnitPolicy` by the losses of the GRPO family.

    Args:
        policy: trained in place.
        prompts: ``(count, generator)`` to [P, ...], the prompts of a step.
        scorer: named rewards of what was sampled.
        config: the settings.
        credit: advantages from rewards.

    Raises:
        ValueError: ``beta`` is not 0, and the policy has no ``read_with_kl``.
    """

    def __init__(
        self,
        policy: UnitPolicy,
        prompts: Callable[[int, torch.Generator], Tensor],
        scorer: Scorer,
        config: UnitConfig,
        *,
        credit: Credit = outcome_credit,
    ) -> None:
        self.policy: Any = policy
        self.prompts, self.scorer = prompts, scorer
        self.config, self.credit, self.step = config, credit, 0
        self.optimizer = torch.optim.AdamW(
            list(policy.parameters()), lr=config.learning_rate, weight_decay=0.0
        )
        self.reference: Any = None
        if config.beta:
            if not hasattr(policy, "read_with_kl"):
                raise ValueError(
                    f"beta={config.beta} needs a policy with read_with_kl(units, reference), and "
                    f"{type(policy).__name__} has none: give it one, or set beta=0"
                )
            self.reference = copy.deepcopy(policy)
            for parameter in self.reference.parameters():
                parameter.requires_grad_(False)

    def train(self, on_step: Callable[[dict[str, float]], None] | None = None) -> None:
        """Take the steps that are left; ``on_step`` is called with the metrics of each."""
        while self.step < self.config.steps:
            row = self.train_step()
            if on_step is not None:
                on_step(row)

    def train_step(self) -> dict[str, float]:
        """Take one rollout and its updates.

        Returns:
            ``step``, ``reward`` and each named one; ``zero_variance``, the share of groups that
            teach nothing; over all updates ``loss``, ``grad_norm``, and by unit ``ratio``,
            ``clip_fraction`` and ``kl``: NaN if no update was made.

        Raises:
            ValueError: no episode has a reward.
            NotFinite: the gradient is infinite or NaN.
        """
        config, step = self.config, self.step + 1
        generator = torch.Generator().manual_seed(derive_seed(config.seed, step))
        with torch.no_grad():
            prompts = self.prompts(config.prompts_per_step, generator)
            units = self.policy.sample(prompts, config.group_size, generator)
            named = self.scorer(units)
            advantages = self.credit(units, named, config).to(units.logprobs.dtype)
        if all(bool(rewards.isnan().all()) for rewards in named.values()):
            raise ValueError(f"the scorer gave no episode of step {step} a reward: see why")
        sums: dict[str, float] = {}
        for _ in range(config.num_iterations):
            order = torch.randperm(len(prompts), generator=generator)
            for chosen in order.tensor_split(config.minibatches):
                mine = advantages[units.rows_of(chosen)]
                # Momentum alone must not move the weights.
                if mine.any() or config.beta:
                    merge_sums(sums, self._update(units.of_prompts(chosen), mine))
        self.step = step
        flat = (advantages.view(len(prompts), -1) == 0).all(dim=1)
        zero_variance = float(flat.double().mean())
        return {"step": step, **_rewards(named), "zero_variance": zero_variance, **_means(sums)}

    def _update(self, units: Units, advantages: Tensor) -> dict[str, float]:
        """Take one optimizer step; return its sums over units."""
        config, kl = self.config, None
        if self.reference is None:
            logprobs = self.policy.read(units)
        else:
            logprobs, kl = self.policy.read_with_kl(units, self.reference)
        lengths = units.mask.sum(dim=1)
        denominator = loss_denominator(lengths, average=config.loss, max_tokens=units.mask.shape[1])
        old = units.logprobs, advantages, units.mask, config
        loss = policy_loss(logprobs, *old, denominator=denominator, kl=kl)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
        total, most = float(loss.detach()), config.max_grad_norm
        rate, step = config.learning_rate, self.step + 1
        norm = descend(self.optimizer, total, rate=rate, max_norm=most, step=step)
        divergence = float("nan") if kl is None else float(kl.detach()[units.mask].sum())
        own = {"updates": 1.0, "loss": total, "grad_norm": norm, "kl": divergence}
        return policy_sums(logprobs.detach(), *old) | own


def _rewards(named: Mapping[str, Tensor]) -> dict[str, float]:
    """Return means over the episodes that have a reward: of the sum, and by name."""
    total = float(torch.stack(list(named.values())).sum(dim=0).nanmean())
    return {"reward": total, **{f"reward/{name}": float(x.nanmean()) for name, x in named.items()}}


def _means(sums: dict[str, float]) -> dict[str, float]:
    if not sums:
        names = ("loss", "grad_norm", "ratio", "clip_fraction", "kl")
        return dict.fromkeys(names, float("nan"))
    clipped = sum(sums[f"clipped_{bound}"] for bound in ("low", "high", "dual"))
    return {
        "loss": sums["loss"] / sums["updates"],
        "grad_norm": sums["grad_norm"] / sums["updates"],
        "ratio": sums["ratio"] / sums["tokens"],
        "clip_fraction": clipped / sums["tokens"],
        "kl": sums["kl"] / sums["tokens"],
    }
