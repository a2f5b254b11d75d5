"""The loop for policies of units: sample groups, score, give credit, update, and again."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor

from ..arithmetic.average import count
from ..arithmetic.objective import Objective
from ..arithmetic.policy_loss import penalised, policy_loss
from ..arithmetic.sums import merge_sums, policy_sums
from ..run.guards import require_finite
from ..sampling.random_numbers import derive_seed
from .units import (
    Credit,
    Penalised,
    Scorer,
    UnitPolicy,
    Units,
    outcome_credit,
    score_means,
    zero_variance,
)


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
        Objective.__post_init__(self)
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


class UnitLearner:
    """Trains a :class:`UnitPolicy` by the losses of the GRPO family.

    Args:
        policy: trained in place.
        prompts: ``(count, generator)`` to [P, ...], the prompts of a step.
        scorer: named rewards of what was sampled.
        config: the settings.
        credit: advantages from rewards.

    Raises:
        ValueError: ``beta`` is not 0, and the policy has no
            :meth:`~.units.Penalised.read_with_kl`.
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
        self.policy, self.prompts, self.scorer = policy, prompts, scorer
        self.config, self.credit, self.step = config, credit, 0
        self.optimizer = torch.optim.AdamW(
            list(policy.parameters()), lr=config.learning_rate, weight_decay=0.0
        )
        self.reference: Any = None
        if penalised(config):
            if not hasattr(policy, "read_with_kl"):
                raise ValueError(
                    f"beta={config.beta} needs a policy with read_with_kl(units, reference), and "
                    f"{type(policy).__name__} has none: give it one, or set beta=0"
                )
            self.refresh_reference()

    def refresh_reference(self) -> None:
        """Let the reference be the policy as it is now."""
        self.reference = copy.deepcopy(self.policy)
        for parameter in self.reference.parameters():
            parameter.requires_grad_(False)

    def train(self, on_step: Callable[[dict[str, float]], None] | None = None) -> None:
        """Take the steps that are left; ``on_step`` is called with the metrics of each."""
        while self.step < self.config.steps:
            row = self.train_step()
            if on_step is not None:
                on_step(row)

    def train_step(self) -> dict[str, float]:
        """One rollout and its updates.

        Returns:
            ``step``, ``reward`` and each named one; ``zero_variance``, the share of groups that
            teach nothing; over all updates ``loss``, ``grad_norm``, and by unit ``ratio``,
            ``clip_fraction`` and ``kl``: NaN where no update was made.

        Raises:
            ValueError: no episode has a reward.
            NotFinite: the gradient is infinite or NaN.
        """
        step = self.step + 1
        generator = torch.Generator().manual_seed(derive_seed(self.config.seed, step))
        with torch.no_grad():
            prompts = self.prompts(self.config.prompts_per_step, generator)
            units = self.policy.sample(prompts, self.config.group_size, generator)
            named = self.scorer(units)
            advantages = self.credit(units, named, self.config).to(units.logprobs.dtype)
        if all(bool(rewards.isnan().all()) for rewards in named.values()):
            raise ValueError(f"the scorer gave no episode of step {step} a reward: see why")
        sums: dict[str, float] = {}
        norms: list[float] = []
        for _ in range(self.config.num_iterations):
            order = torch.randperm(len(prompts), generator=generator)
            for chosen in order.tensor_split(self.config.minibatches):
                rows = units.rows_of(chosen)
                found = self._update(units.of_prompts(chosen), advantages[rows], norms)
                merge_sums(sums, found)
        self.step = step
        row = {"step": float(step), **score_means(named)}
        row["zero_variance"] = zero_variance(advantages, self.config.group_size)
        return row | _means(sums, norms)

    def _update(self, units: Units, advantages: Tensor, norms: list[float]) -> dict[str, float]:
        """One optimizer step; its sums over units."""
        config = self.config
        if not advantages.any() and not penalised(config):  # momentum alone must not move weights
            return {}
        kl = None
        if self.reference is None:
            logprobs = self.policy.read(units)
        else:
            policy = cast(Penalised, self.policy)  # checked at the start
            logprobs, kl = policy.read_with_kl(units, self.reference)
        lengths = units.mask.sum(dim=1)
        denominator = count(lengths, average=config.loss, max_tokens=units.mask.shape[1])
        loss = policy_loss(
            logprobs,
            units.logprobs,
            advantages,
            units.mask,
            config,
            denominator=denominator,
            kl=kl,
        )
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
        norm = torch.nn.utils.clip_grad_norm_(self.policy.parameters(), config.max_grad_norm)
        require_finite(float(loss.detach()), float(norm), self.step + 1)
        self.optimizer.step()
        norms.append(float(norm))
        sums = policy_sums(logprobs.detach(), units.logprobs, advantages, units.mask, config)
        sums["loss"] = float(loss.detach())
        sums["kl"] = float("nan") if kl is None else float(kl.detach()[units.mask].sum())
        return sums


def _means(sums: dict[str, float], norms: list[float]) -> dict[str, float]:
    nan = float("nan")
    if not norms:
        return dict.fromkeys(("loss", "grad_norm", "ratio", "clip_fraction", "kl"), nan)
    clipped = sum(sums[f"clipped_{bound}"] for bound in ("low", "high", "dual"))
    return {
        "loss": sums["loss"] / len(norms),
        "grad_norm": sum(norms) / len(norms),
        "ratio": sums["ratio"] / sums["tokens"],
        "clip_fraction": clipped / sums["tokens"],
        "kl": sums["kl"] / sums["tokens"],
    }
