"""PPO with a critic: a loop of its own over the functions of the learner.

Shapes: B rows, T reply tokens.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from assay.envs import EpisodeGroup
from assay.envs.group_summary import Score
from assay.grpo import (
    GRPOConfig,
    ModelPolicy,
    Row,
    accumulate_gradient,
    choose_forward,
    derive_seed,
    evaluate,
)
from assay.grpo.advantage import whiten
from assay.grpo.batch import row_of
from assay.grpo.guards import require_scored
from assay.grpo.logprobs import read_rows
from assay.grpo.loss import kl_estimate, merge_sums
from assay.grpo.tasks import Rollout, SampledTasks
from assay.grpo.update import update_metrics

from .critic import Critic, gae, read_values, value_gradient
from .fit import Metrics, Run, descend
from .rows import cut, table


@dataclass(frozen=True, slots=True, kw_only=True)
class PPOConfig(GRPOConfig):
    """Settings of PPO: those of :class:`~assay.grpo.GRPOConfig` that it reads, and the critic's.

    ``group_size`` may be 1: a reply is compared with what the critic expected, so a step has room
    for many more different tasks. With ``kl_in="reward"`` the penalty is subtracted from the
    reward of each token.

    Attributes:
        critic_learning_rate: of the critic's AdamW; usually several times the policy's.
        critic_warmup: first rollouts that train the critic alone. The policy's ``warmup_steps``
            come after them.
        value_clip: see :func:`~.critic.value_loss`, in the unit of a reward; ``None`` for none.
        gamma: discount of each token.
        lam: lambda of :func:`~.critic.gae`. At the default of 1 an advantage is the reward that
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

    def __post_init__(self) -> None:
        shared = {f.name: getattr(self, f.name) for f in fields(GRPOConfig)}
        GRPOConfig(**{**shared, "group_size": max(2, self.group_size)})  # checks the others
        clip = self.value_clip
        for name, holds, rule in (
            ("group_size", self.group_size >= 1, "at least 1"),
            ("gamma", 0 <= self.gamma <= 1, "in [0, 1]"),
            ("lam", 0 <= self.lam <= 1, "in [0, 1]"),
            ("critic_learning_rate", self.critic_learning_rate > 0, "above 0"),
            ("critic_warmup", self.critic_warmup >= 0, "at least 0"),
            ("value_clip", clip is None or clip > 0, "None or above 0"),
        ):
            if not holds:
                raise ValueError(f"{name} must be {rule}, got {getattr(self, name)!r}")
        plain = GRPOConfig()
        for name in sorted(shared.keys() - _READ.split()):
            default = getattr(plain, name)
            if getattr(self, name) != default:
                raise ValueError(
                    f"{name}={getattr(self, name)!r} has no effect on PPO: leave it at "
                    f"{default!r}, or train with the Learner"
                )


_READ = """
    loss ratio surrogate clip clip_high dual_clip off_policy_mask_threshold cispo_cap
    cispo_floor sapo_temperature sapo_temperature_negative beta kl kl_in kl_correction
    entropy_bonus steps prompts_per_step group_size learning_rate warmup_steps weight_decay
    max_grad_norm num_iterations minibatches temperature max_new_tokens rows_per_batch
    tokens_per_batch rollout_chunks max_none_share eval_every eval_samples save_every seed
    allow_test_split allow_overlap allow_sample
"""


class PPOLearner:
    """Trains a causal LM by PPO (arXiv 1707.06347) with a critic of the same size.

    The critic is a copy of the model with one output, trained on the same minibatches as the
    policy, after it. With ``save_every`` a checkpoint is written after each so many steps, and at
    the end; a resumed run goes on from there with the same bits.

    A row of metrics has beside the usual ones ``value/loss``, ``value/grad_norm``, ``value/mean``
    and ``value/explained_variance`` (the share of the returns' variance that the critic predicted
    before it learnt from them; 0 is no better than a constant).

    Args:
        model: trained in place. To resume, give the model that the run began with.
        tokenizer: the model's.
        rollout: ``(policy, step)`` to the groups of a training step, as
            :func:`~assay.grpo.training_tasks` gives it.
        config: the settings.
        out_dir: of the run, see :class:`~.fit.Run`.
        held_out: as ``rollout``, for the tasks of evaluation.
        resume: go on from the checkpoint in ``out_dir``.
        on_step: called with each row of metrics.

    Raises:
        CheckpointError: ``out_dir`` holds another run, or nothing to resume.
        TypeError: ``config`` is no ``PPOConfig``.
        ValueError: the rollout keeps a state, and would be resumed without it.

    Attributes:
        critic: the critic.
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        rollout: Rollout,
        config: PPOConfig,
        out_dir: str | Path,
        *,
        held_out: Rollout | None = None,
        resume: bool = False,
        on_step: Callable[[Metrics], None] | None = None,
    ) -> None:
        if not isinstance(config, PPOConfig):
            raise TypeError(f"PPO takes a PPOConfig, got {type(config).__name__}")
        if resume and isinstance(rollout, SampledTasks):
            raise ValueError(
                "PPO's checkpoints do not hold a sampler's state, so its run cannot be resumed: "
                "take training_tasks without a sampler, or begin again"
            )
        self.model, self.tokenizer, self.config = model.eval(), tokenizer, config
        self.rollout, self.held_out, self._on_step = rollout, held_out, on_step
        self.critic = Critic(model)
        trained = [p for p in model.parameters() if p.requires_grad]
        decay = config.weight_decay
        self._optimizer = torch.optim.AdamW(trained, weight_decay=decay, fused=True)
        self._critic_optimizer = torch.optim.AdamW(
            self.critic.parameters(), weight_decay=decay, fused=True
        )
        self._forward = choose_forward(model)[1]
        self._reference = copy.deepcopy(model).requires_grad_(False) if config.beta else None
        parts = {
            "model": model,
            "optimizer": self._optimizer,
            "critic": self.critic,
            "critic_optimizer": self._critic_optimizer,
        }
        self._run = Run(out_dir, parts, asdict(config), resume=resume)

    def train(self) -> None:
        """Train up to ``config.steps``.

        Raises:
            TooManyUnscored: more than ``max_none_share`` of a rollout has no reward.
            NotFinite: a gradient is infinite or NaN; it has not reached its weights.
        """
        steps, every = self.config.steps, self.config.save_every
        with self._run as run:
            if not run.step:
                self._write({"step": 0, **self._evaluate(0)}, save=False)
            for step in range(run.step + 1, steps + 1):
                row = {**self._train_step(step), **self._evaluate(step)}
                self._write(row, save=step == steps or (every > 0 and step % every == 0))
            run.finish(self.model, self.tokenizer)

    def credit(
        self, groups: Sequence[EpisodeGroup]
    ) -> tuple[list[Row], list[tuple[float, ...]], list[tuple[float, ...]]]:
        """Return rows of the episodes with a reward, the critic's values, and the returns."""
        config, budget = self.config, self.config.tokens_per_batch
        rows = [row_of(e) for group in groups for e in group.episodes if e.reward is not None]
        if self._reference is not None:
            heat = config.temperature
            read = read_rows(self._reference, self._forward, rows, temperature=heat, budget=budget)
            rows = [replace(row, reference=x.logprobs) for row, x in zip(rows, read, strict=True)]
        values = read_values(self.critic, rows, budget=budget)
        mask = table([row.written for row in rows]).bool()
        rewards = token_rewards(groups, rows, config)
        advantages, returns = gae(rewards, table(values), mask, gamma=config.gamma, lam=config.lam)
        if config.whiten_advantages:
            advantages = whiten(advantages, mask)
        given = zip(rows, cut(advantages, rows), strict=True)
        return [replace(row, advantages=x) for row, x in given], values, cut(returns, rows)

    def _train_step(self, step: int) -> Metrics:
        config = self.config
        groups = self.rollout(self._policy(derive_seed(config.seed, step)), step)
        score = Score.of(groups)
        require_scored(groups, step, config.max_none_share if score.scored else 0.0)
        rows, values, returns = self.credit(groups)
        late = max(0, step - config.critic_warmup)
        rate = config.learning_rate * min(1.0, late / max(1, config.warmup_steps))
        most, sums, norms = config.max_grad_norm, dict[str, float](), list[float]()
        learnt = {"loss": 0.0, "grad_norm": 0.0, "updates": 0.0}
        for part in self._minibatches(rows, step):
            mine = [rows[i] for i in part]
            found = accumulate_gradient(self.model, self._forward, mine, config) if late else {}
            if found:  # momentum alone must not move the weights
                norms.append(
                    descend(self._optimizer, found["loss"], rate=rate, max_norm=most, step=step)
                )
                merge_sums(sums, found)
            # The policy's gradient is gone before the critic's is computed.
            before, wanted = ([x[i] for i in part] for x in (values, returns))
            budget, clip = config.tokens_per_batch, config.value_clip
            loss = value_gradient(self.critic, mine, before, wanted, clip=clip, budget=budget)
            speed = config.critic_learning_rate
            norm = descend(self._critic_optimizer, loss, rate=speed, max_norm=most, step=step)
            merge_sums(learnt, {"loss": loss, "grad_norm": norm, "updates": 1.0})
        earned = {r for group in groups for r in group.rewards if r is not None}
        return {
            "step": step,
            "reward": score.reward,
            "accuracy": score.pass_at_1,
            "truncated": score.truncated,
            "masked": score.masked,
            # What teaches nothing here is a rollout, not a group, whose rewards are all equal.
            "zero_variance": float(len(earned) < 2),
            **_explained(values, returns, rows),
            **{f"value/{n}": learnt[n] / learnt["updates"] for n in ("loss", "grad_norm")},
            **update_metrics(sums, norms, rate),
        }

    def _minibatches(self, rows: Sequence[Row], step: int) -> Iterator[list[int]]:
        """Yield the rows of each optimizer step: passes, each cut into parts of whole groups."""
        prompts = list(dict.fromkeys(row.prompt for row in rows))
        parts = min(self.config.minibatches, len(prompts))
        for iteration in range(self.config.num_iterations):
            seed = derive_seed(self.config.seed, step, iteration)
            order = torch.randperm(len(prompts), generator=torch.Generator().manual_seed(seed))
            for chosen in order.tensor_split(parts):
                mine = {prompts[i] for i in chosen.tolist()}
                yield [i for i, row in enumerate(rows) if row.prompt in mine]

    def _policy(self, seed: int) -> ModelPolicy:
        return ModelPolicy(
            self.model,
            self.tokenizer,
            max_new_tokens=self.config.max_new_tokens,
            temperature=self.config.temperature,
            rows_per_batch=self.config.rows_per_batch,
            seed=seed,
        )

    def _evaluate(self, step: int) -> Metrics:
        every = self.config.eval_every
        if self.held_out is None or not every or (step % every and step != self.config.steps):
            return {}
        policy, samples = self._policy(derive_seed(self.config.seed)), self.config.eval_samples
        return {**evaluate(policy, self.held_out, step=step, samples=samples).to_metrics()}

    def _write(self, row: Metrics, *, save: bool) -> None:
        self._run.write(row, save=save)
        if self._on_step is not None:
            self._on_step(row)


def token_rewards(groups: Sequence[EpisodeGroup], rows: Sequence[Row], config: PPOConfig) -> Tensor:
    """Return the reward of each token: [B, T] of float64.

    An episode's total at its last token, or with ``turn_rewards`` each turn's at its end; less
    ``beta`` times the KL estimate of each token if ``kl_in="reward"`` (Ziegler et al., arXiv
    1909.08593, eq. 2; DeepSeekMath, arXiv 2402.03300, eq. 2).

    Raises:
        ValueError: rewards of turns are asked for, and an episode has none.
    """
    mask = table([row.written for row in rows]).bool()
    rewards = torch.zeros(mask.shape, dtype=torch.float64)
    scored = [e for group in groups for e in group.episodes if e.reward is not None]  # as rows
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
        logprobs, reference = table([r.logprobs for r in rows]), table([r.reference for r in rows])
        rewards -= config.beta * kl_estimate(logprobs, reference, config.kl).masked_fill(~mask, 0.0)
    return rewards


def _explained(
    values: Sequence[tuple[float, ...]], returns: Sequence[tuple[float, ...]], rows: Sequence[Row]
) -> Metrics:
    """Return the mean value, and how well values predicted returns."""
    mask = table([row.written for row in rows]).bool()
    expected, found = table(values)[mask], table(returns)[mask]
    variance = float(found.var(correction=0))
    missed = float((found - expected).var(correction=0))
    return {
        "value/mean": float(expected.mean()),
        "value/explained_variance": 1 - missed / variance if variance > 0 else float("nan"),
    }
