"""PPO with a critic, in the learner's loop.

Shapes: B rows, T reply tokens.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor

from ...envs import EpisodeGroup
from ..arithmetic.gae import gae
from ..arithmetic.kl import kl_estimate
from ..arithmetic.sums import merge_sums
from ..arithmetic.whiten import whiten
from ..config import GRPOConfig
from ..credit import credit, row_table
from ..learner import Learner
from ..model.batch import Row
from ..model.passes import Reading
from ..run.buffer import Buffer
from ..run.evaluate import Rollout
from ..run.guards import NotFinite
from .critic import Critic, read_values, value_gradient


@dataclass(frozen=True, slots=True, kw_only=True)
class PPOConfig(GRPOConfig):
    """Settings of PPO: those of :class:`GRPOConfig`, and the critic's.

    ``group_size`` may be 1: a reply is compared with what the critic expected, and so many more
    different tasks have room in a step. How groups are compared (``advantage`` and what belongs to
    it) must stay at its defaults. With ``kl_in="reward"`` the penalty is taken off the reward of
    each token.

    Attributes:
        critic_learning_rate: of the critic's AdamW; usually several times the policy's.
        critic_warmup: first rollouts that teach the critic alone. The policy's ``warmup_steps``
            come after them.
        value_clip: see :func:`~assay.grpo.value_loss`, in the unit of a reward; ``None`` for none.
        gamma: discount of each token.
        lam: lambda of :func:`~assay.grpo.gae`. At the default of 1 an advantage is the reward that
            is still to come less the value. The 0.95 that other fields take forgets an outcome
            within some twenty tokens: in DeepSeek-R1's appendix PPO falls far behind GRPO with
            0.95, and nearly ties with 1.
        whiten_advantages: bring them to mean 0 and deviation 1 over the rollout's tokens.
        turn_rewards: pay the rewards of turns at the turns' ends, in place of the total at the end.

    Raises:
        ValueError: a setting is out of its range, or has no effect on PPO.
    """

    critic_learning_rate: float = 1e-5
    critic_warmup: int = 0
    value_clip: float | None = 0.2
    gamma: float = 1.0
    lam: float = 1.0
    whiten_advantages: bool = True
    turn_rewards: bool = False

    _has_critic: ClassVar[bool] = True

    def __post_init__(self) -> None:
        GRPOConfig.__post_init__(self)  # not super(): see Objective
        for name in ("gamma", "lam"):
            value = getattr(self, name)
            if not 0 <= value <= 1:
                raise ValueError(f"{name} must be in [0, 1], got {value!r}")
        if not self.critic_learning_rate > 0:
            raise ValueError(
                f"critic_learning_rate must be above 0, got {self.critic_learning_rate!r}"
            )
        if self.critic_warmup < 0:
            raise ValueError(f"critic_warmup must be at least 0, got {self.critic_warmup!r}")
        if self.value_clip is not None and not self.value_clip > 0:
            raise ValueError(f"value_clip must be None or above 0, got {self.value_clip!r}")
        for name in _COMPARE:
            default = getattr(_PLAIN, name)
            if getattr(self, name) != default:
                raise ValueError(
                    f"{name}={getattr(self, name)!r} has no effect on PPO, whose critic gives the "
                    f"advantages: leave it at {default!r}, or train with the Learner"
                )
        if self.max_refills and self.group_size == 1:
            raise ValueError(
                "max_refills looks for groups whose replies differ, and with group_size=1 there "
                "are none: leave it at 0"
            )


_PLAIN = GRPOConfig()
_COMPARE = (
    "advantage",
    "advantage_std",
    "advantage_eps",
    "reward_weights",
    "hard_weight",
    "easy_weight",
)


class PPOLearner(Learner):
    """Trains a causal LM by PPO (arXiv 1707.06347) with a critic of the same size.

    The critic is a copy of the model with one output. Its weights and its optimizer's are part
    of the checkpoints, and runs resume to the bit, as with :class:`Learner`, whose loop, losses,
    guards and arguments these are. It is trained on the same minibatches as the policy, after it.

    A row of metrics has beside the learner's ``value/loss``, ``value/grad_norm``, ``value/mean``
    and ``value/explained_variance`` (the share of the returns' variance that the critic foresaw
    before it learnt of them; 0 is no better than a constant).

    Args:
        model: see :class:`Learner`, as for all others.
        tokenizer: the model's.
        rollout: training tasks.
        config: the settings.
        out_dir: of the run.
        options: the learner's other arguments.

    Raises:
        TypeError: ``config`` is no ``PPOConfig``.

    Attributes:
        critic: the critic.
    """

    config: PPOConfig
    critic: Critic

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        rollout: Rollout,
        config: PPOConfig,
        out_dir: str | Path,
        **options: Any,
    ) -> None:
        if not isinstance(config, PPOConfig):
            raise TypeError(f"PPO takes a PPOConfig, got {type(config).__name__}")
        self._seen: dict[str, float] = {}
        super().__init__(model, tokenizer, rollout, config, out_dir, **options)
        self.critic.shared = self.forward_name == "shared"

    def _make_optimizer(self, trained: Sequence[torch.nn.Parameter]) -> torch.optim.Optimizer:
        if self.world.size > 1:
            raise ValueError(
                f"PPO trains its critic in one process, and there are {self.world.size}: start it "
                "without torchrun"
            )
        self.critic = Critic(self.model)
        self._critic_optimizer = torch.optim.AdamW(
            self.critic.parameters(),
            lr=self.config.critic_learning_rate,
            weight_decay=self.config.weight_decay,
            fused=True,
        )
        settings = {"lr": self.config.learning_rate, "weight_decay": self.config.weight_decay}
        return _WithCritic(list(trained), settings, self.critic, self._critic_optimizer)

    def _rate(self, step: int) -> float:
        return super()._rate(max(0, step - self.config.critic_warmup))

    def _collect(self, step: int) -> Buffer:
        buffer = super()._collect(step)
        buffer.found |= self._seen
        return buffer

    def _credit(
        self, groups: Sequence[EpisodeGroup], rows: Sequence[Row], reading: Sequence[Reading] | None
    ) -> list[Row]:
        config = self.config
        values = read_values(self.critic, rows, budget=config.tokens_per_batch)
        rows = [replace(row, values=of_row) for row, of_row in zip(rows, values, strict=True)]
        mask, expected = row_table(rows, "written").bool(), row_table(rows, "values")
        rewards = token_rewards(groups, rows, config)
        advantages, returns = gae(rewards, expected, mask, gamma=config.gamma, lam=config.lam)
        self._seen = _foresight(expected[mask], returns[mask])
        # What teaches nothing here is a rollout, not a group, whose rewards are all equal.
        earned = {r for group in groups for r in group.rewards if r is not None}
        self._seen["zero_variance"] = float(len(earned) < 2)
        if config.whiten_advantages:
            advantages = whiten(advantages, mask)
        rows = [
            replace(row, returns=tuple(of_row[: len(row.reply)]))
            for row, of_row in zip(rows, returns.tolist(), strict=True)
        ]
        given = [
            tuple(of_row[: len(row.reply)])
            for row, of_row in zip(rows, advantages.tolist(), strict=True)
        ]
        return credit(groups, rows, config, reading, advantages=given)

    def _take(self, part: Sequence[Row], buffer: Buffer, rate: float) -> None:
        """One optimizer step of the policy, then one of the critic: one's gradient at a time."""
        if buffer.step > self.config.critic_warmup:
            super()._take(part, buffer, rate)
            self.optimizer.zero_grad(set_to_none=True)
        else:
            buffer.done += 1
        taught = [row for row in part if any(row.written)]
        if not taught:
            return
        self._whole = False  # where the critic's gradient is no number the policy is ahead of it
        loss = value_gradient(
            self.critic,
            taught,
            clip=self.config.value_clip,
            budget=self.config.tokens_per_batch,
        )
        parameters = self.critic.parameters()
        norm = float(torch.nn.utils.clip_grad_norm_(parameters, self.config.max_grad_norm))
        if not math.isfinite(loss) or not math.isfinite(norm):
            raise NotFinite(
                f"step {buffer.step}: the critic's loss is {loss} and its gradient's length "
                f"{norm}; nothing has reached its weights. Lower critic_learning_rate, and resume"
            )
        self._critic_optimizer.step()
        self._critic_optimizer.zero_grad(set_to_none=True)
        merge_sums(buffer.sums, {"value_loss": loss, "value_norm": norm, "value_updates": 1.0})
        self._whole = True

    def _row(self, buffer: Buffer, rate: float) -> dict[str, Any]:
        row = super()._row(buffer, rate)
        updates = buffer.sums.get("value_updates", 0.0)
        for name in ("loss", "norm"):
            total = buffer.sums.get(f"value_{name}", 0.0)
            key = "value/loss" if name == "loss" else "value/grad_norm"
            row[key] = total / updates if updates else float("nan")
        return row


def token_rewards(groups: Sequence[EpisodeGroup], rows: Sequence[Row], config: PPOConfig) -> Tensor:
    """The reward of each token: [B, T] of float64.

    An episode's total at its last token, or with ``turn_rewards`` each turn's at its end; less
    ``beta`` times the KL estimate of each token where ``kl_in="reward"`` (Ziegler et al., arXiv
    1909.08593, eq. 2; DeepSeekMath, arXiv 2402.03300, eq. 2).

    Args:
        groups: what was rolled out.
        rows: those of the episodes that have a reward.
        config: the settings.

    Raises:
        ValueError: rewards of turns are asked for, and an episode has none.
    """
    mask = row_table(rows, "written").bool()
    rewards = torch.zeros(mask.shape, dtype=torch.float64)
    scored = [e for group in groups for e in group.episodes if e.reward is not None]
    for i, (episode, row) in enumerate(zip(scored, rows, strict=True)):
        if not config.turn_rewards:
            rewards[i, row.ends[-1]] = episode.reward or 0.0
            continue
        if not episode.step_rewards:
            raise ValueError(
                f"turn_rewards needs a reward of each turn, but an episode of task "
                f"{episode.task_id!r} has none: let the environment's Turn carry rewards, or leave "
                "turn_rewards at False"
            )
        for reward, end in zip(episode.step_rewards, row.ends, strict=False):
            rewards[i, end] += reward or 0.0
    if config.beta and config.kl_in == "reward":
        logprobs, reference = row_table(rows, "logprobs"), row_table(rows, "reference")
        kl = kl_estimate(logprobs, reference, config.kl).masked_fill(~mask, 0.0)
        rewards -= config.beta * kl
    return rewards


def _foresight(values: Tensor, returns: Tensor) -> dict[str, float]:
    """How well values told returns, both [N]."""
    variance = float(returns.var(correction=0)) if returns.numel() else 0.0
    missed = float((returns - values).var(correction=0)) if returns.numel() else 0.0
    return {
        "value/mean": float(values.mean()) if values.numel() else float("nan"),
        "value/explained_variance": 1 - missed / variance if variance > 0 else float("nan"),
    }


class _WithCritic(torch.optim.AdamW):
    """The policy's optimizer; the state that a checkpoint keeps of it holds the critic too."""

    def __init__(
        self,
        parameters: Sequence[torch.nn.Parameter],
        settings: dict[str, float],
        critic: Critic,
        optimizer: torch.optim.Optimizer,
    ) -> None:
        super().__init__(
            parameters, lr=settings["lr"], weight_decay=settings["weight_decay"], fused=True
        )
        self._critic: dict[str, Any] = {"critic": critic, "critic_optimizer": optimizer}

    def state_dict(self) -> dict[str, Any]:
        return super().state_dict() | {k: v.state_dict() for k, v in self._critic.items()}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        rest = dict(state_dict)
        for name, part in self._critic.items():
            part.load_state_dict(rest.pop(name))
        super().load_state_dict(rest)
