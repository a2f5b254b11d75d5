"""DPO: training on pairs of replies to one task, of which one is better."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from ...envs import EpisodeGroup
from ..arithmetic.dpo import dpo_loss, dpo_margin
from ..model.batch import Row
from ..model.forward import Forward
from ..model.passes import Reading, read_rows
from .fit import FitConfig, Metrics, fit, forward_for, likelihood_gradient
from .rejection import written_row


@dataclass(frozen=True, slots=True)
class PreferencePair:
    """Two replies to one task; the first is better."""

    chosen: Row
    rejected: Row


def preference_pairs(
    groups: Sequence[EpisodeGroup],
    tokenizer: Any = None,
    *,
    pairing: Literal["best_worst", "all"] = "best_worst",
    limit: int = 8,
) -> list[PreferencePair]:
    """Pairs from the rewards of groups; a group whose rewards are all equal gives none.

    Args:
        groups: judged episodes. Those without a reward are left out.
        tokenizer: of the model that is to learn; needed for episodes without tokens.
        pairing: ``best_worst`` for one pair of a group, ``all`` for each two replies whose rewards
            differ.
        limit: of ``all``: most pairs of a group, taken so that all replies are used alike.

    Raises:
        ValueError: a setting is out of its range, or an episode has no tokens.
    """
    if pairing not in ("best_worst", "all") or limit < 1:
        raise ValueError(
            f"pairing must be 'best_worst' or 'all' and limit at least 1, got {pairing!r}, {limit}"
        )
    found = []
    for group in groups:
        scored = [e for e in group.episodes if e.reward is not None]
        ranked = sorted(scored, key=lambda e: -(e.reward or 0.0))  # stable: the first of equals
        places = _best_worst(len(ranked)) if pairing == "best_worst" else _diagonals(len(ranked))
        unequal = [(i, j) for i, j in places if ranked[i].reward != ranked[j].reward][:limit]
        used = sorted({i for pair in unequal for i in pair})
        rows = {i: written_row(group, ranked[i], tokenizer) for i in used}
        found += [PreferencePair(rows[i], rows[j]) for i, j in unequal]
    return found


def dpo(
    model: Any,
    tokenizer: Any,
    pairs: Sequence[PreferencePair],
    config: FitConfig | None = None,
    *,
    beta: float = 0.1,
    length_mean: bool = False,
    temperature: float = 1.0,
    out_dir: str | Path | None = None,
    resume: bool = False,
    on_step: Callable[[Metrics], bool | None] | None = None,
) -> list[Metrics]:
    """Direct preference optimisation (arXiv 2305.18290 eq. 7), from the model as its reference.

    The reference's log-probabilities are read once, before the first step, so no second model
    is held. Each step reads its replies without a gradient first; the loss then tells the
    coefficient of each reply's log-probability. So a step may be cut anywhere, a reply that is in
    several pairs is computed once, and so is the prompt of all replies to a task.

    Args:
        model: trained in place. To resume, give the model that the run began with.
        tokenizer: the model's.
        pairs: from :func:`preference_pairs`.
        config: the settings; the defaults, with a learning rate of 5e-7, without it.
        beta: see :func:`~assay.grpo.arithmetic.dpo.dpo_loss`.
        length_mean: take the mean over a reply's tokens in place of their sum, as eq. 12 of
            DeepSeekMath (arXiv 2402.03300) does. ``beta`` then wants to be a reply's length
            times larger.
        temperature: divides the logits.
        out_dir: see :func:`fit`.
        resume: see :func:`fit`.
        on_step: see :func:`fit`.

    Returns:
        Metrics of the steps: ``grad_norm``, ``lr``, and from before each step ``loss``, ``margin``
        (mean difference of ``beta log p/q``) and ``accuracy`` (share of pairs where it is above 0).

    Raises:
        ValueError: there is no pair, or ``beta`` is not above 0.
    """
    config = FitConfig(learning_rate=5e-7) if config is None else config
    if not pairs:
        raise ValueError("DPO needs at least one pair, got none: do all groups earn the same?")
    if not beta > 0:
        raise ValueError(f"beta must be above 0, got {beta!r}: 0.1 is a good start")
    every = _distinct(pairs)
    forward = forward_for(model, every)
    heat, budget = temperature, config.tokens_per_batch
    read = read_rows(model.eval(), forward, every, temperature=heat, budget=budget)
    rows = {id(row): replace(row, reference=x.logprobs) for row, x in zip(every, read, strict=True)}
    pairs = [PreferencePair(rows[id(p.chosen)], rows[id(p.rejected)]) for p in pairs]

    def gradient(numbers: Sequence[int]) -> Metrics:
        return pairs_gradient(
            model,
            forward,
            [pairs[i] for i in numbers],
            beta=beta,
            length_mean=length_mean,
            temperature=heat,
            budget=budget,
        )

    return fit(
        model,
        tokenizer,
        len(pairs),
        gradient,
        config,
        out_dir=out_dir,
        resume=resume,
        on_step=on_step,
    )


def pairs_gradient(
    model: Any,
    forward: Forward,
    pairs: Sequence[PreferencePair],
    *,
    beta: float,
    length_mean: bool,
    temperature: float,
    budget: int,
) -> Metrics:
    """Add the gradient of the mean DPO loss over pairs, whose rows have their reference.

    Returns:
        ``loss``, ``margin`` and ``accuracy``, see :func:`dpo`.
    """
    rows = _distinct(pairs)
    place = {id(row): i for i, row in enumerate(rows)}
    chosen = torch.tensor([place[id(p.chosen)] for p in pairs])
    rejected = torch.tensor([place[id(p.rejected)] for p in pairs])
    read = read_rows(model, forward, rows, temperature=temperature, budget=budget)
    now = _totals(rows, read, mean=length_mean).requires_grad_()
    before = _totals(rows, [Reading(r.reference, ()) for r in rows], mean=length_mean)
    four = now[chosen], now[rejected], before[chosen], before[rejected]
    loss = dpo_loss(*four, beta=beta).mean()
    # By the chain rule a reply's tokens all have the coefficient of the reply.
    (slopes,) = torch.autograd.grad(loss, now)
    per_token = [
        -slope / (row.length if length_mean else 1)
        for slope, row in zip(slopes.tolist(), rows, strict=True)
    ]
    weighed = [
        replace(row, advantages=(weight,) * len(row.reply))
        for row, weight in zip(rows, per_token, strict=True)
    ]
    likelihood_gradient(
        model, forward, weighed, denominator=1.0, budget=budget, temperature=temperature
    )
    margin = dpo_margin(*four, beta=beta).detach()
    return {
        "loss": float(loss.detach()),
        "margin": float(margin.mean()),
        "accuracy": float((margin > 0).double().mean()),
    }


def _distinct(pairs: Sequence[PreferencePair]) -> list[Row]:
    """Each row once, though it be in several pairs."""
    return list({id(row): row for p in pairs for row in (p.chosen, p.rejected)}.values())


def _totals(rows: Sequence[Row], read: Sequence[Reading], *, mean: bool) -> Tensor:
    """[B] of float64: log-probabilities of the tokens that the policy wrote, summed."""
    lengths = [row.length if mean else 1 for row in rows]
    sums = [sum(x.logprobs) / n for x, n in zip(read, lengths, strict=True)]
    return torch.tensor(sums, dtype=torch.float64)


def _best_worst(replies: int) -> list[tuple[int, int]]:
    return [(0, replies - 1)] if replies > 1 else []


def _diagonals(replies: int) -> list[tuple[int, int]]:
    """All pairs of places i < j, in an order of which any beginning uses all places alike."""
    half = replies // 2
    shifts = sorted(range(1, replies), key=lambda d: abs(d - half))
    turns = ((i, (i + d) % replies) for d in shifts for i in range(replies))
    return list(dict.fromkeys((min(p), max(p)) for p in turns))
