"""DPO: training on pairs of replies to one task, of which one is better.

Shapes: N pairs, B replies.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from assay.envs import EpisodeGroup
from assay.grpo import Row
from assay.grpo.logprobs import Forward, read_rows

from .fit import FitConfig, Metrics, fit
from .rows import forward_for, likelihood_gradient
from .supervised import episode_row


def dpo_loss(
    chosen: Tensor,
    rejected: Tensor,
    reference_chosen: Tensor,
    reference_rejected: Tensor,
    *,
    beta: float = 0.1,
) -> Tensor:
    """``-log sigmoid(beta (log p/q of the chosen - log p/q of the rejected))``, for each pair.

    Rafailov et al. (arXiv 2305.18290) eq. 7, with p under the policy and q under the reference.
    Its gradient is that of ``log p`` of the chosen less that of the rejected, times
    ``-beta sigmoid(-margin)``: the pairs that are ranked wrongly weigh most.

    Args:
        chosen: [N], log-probability of each preferred reply under the policy being trained,
            summed over its tokens (DeepSeekMath's eq. 12 has their mean); has a gradient.
        rejected: [N], the same of the other reply.
        reference_chosen: [N], under the reference.
        reference_rejected: [N].
        beta: how much it costs to leave the reference; the papers take 0.1.

    Returns:
        [N].

    Raises:
        ValueError: the shapes differ, or ``beta`` is not above 0.
    """
    _require_beta(beta)
    return -logsigmoid(_margin(chosen, rejected, reference_chosen, reference_rejected, beta=beta))


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
    """Return pairs from the rewards of groups; a group whose rewards are all equal gives none.

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
        n = len(ranked)
        places = _diagonals(n) if pairing == "all" else [(0, n - 1)] if n else []
        unequal = [(i, j) for i, j in places if ranked[i].reward != ranked[j].reward][:limit]
        used = sorted({i for pair in unequal for i in pair})
        rows = {i: episode_row(group, ranked[i], tokenizer) for i in used}
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
    **options: Any,
) -> list[Metrics]:
    """Direct preference optimisation (arXiv 2305.18290 eq. 7), from the model as its reference.

    The reference's log-probabilities are read once, before the first step, so no second model
    is held. Each step reads its replies without a gradient first, which gives the coefficient of
    each reply's log-probability. So a step may be cut anywhere, a reply that is in several pairs
    is computed once, and so is the prompt of all replies to a task.

    Args:
        model: trained in place. To resume, give the model that the run began with.
        tokenizer: the model's.
        pairs: from :func:`preference_pairs`.
        config: the settings; the defaults, with a learning rate of 5e-7, without it.
        beta: see :func:`dpo_loss`.
        length_mean: take the mean over a reply's tokens in place of their sum, as eq. 12 of
            DeepSeekMath (arXiv 2402.03300) does. ``beta`` then must be a reply's length
            times larger.
        temperature: divides the logits.
        options: ``out_dir``, ``resume`` and ``on_step`` of :func:`~.fit.fit`.

    Returns:
        Metrics of the steps: ``grad_norm``, ``lr``, and from before each step ``loss``, ``margin``
        (mean difference of ``beta log p/q``) and ``accuracy`` (share of pairs where it is above 0).

    Raises:
        ValueError: there is no pair, or ``beta`` is not above 0.
    """
    config = config or FitConfig(learning_rate=5e-7)
    if not pairs:
        raise ValueError("DPO needs at least one pair, got none: do all groups earn the same?")
    _require_beta(beta)
    every = _distinct(pairs)
    forward, budget = forward_for(model, every), config.tokens_per_batch
    read = read_rows(model.eval(), forward, every, temperature=temperature, budget=budget)
    rows = {id(row): replace(row, reference=x.logprobs) for row, x in zip(every, read, strict=True)}
    pairs = [PreferencePair(rows[id(p.chosen)], rows[id(p.rejected)]) for p in pairs]

    def gradient(numbers: Sequence[int]) -> Metrics:
        return pairs_gradient(
            model,
            forward,
            [pairs[i] for i in numbers],
            beta=beta,
            length_mean=length_mean,
            temperature=temperature,
            budget=budget,
        )

    return fit(model, tokenizer, len(pairs), gradient, config, **options)


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
    lengths = [row.length if length_mean else 1 for row in rows]

    def totals(logprobs: Sequence[Sequence[float]]) -> Tensor:  # [B]
        sums = [sum(x) / n for x, n in zip(logprobs, lengths, strict=True)]
        return torch.tensor(sums, dtype=torch.float64)

    read = read_rows(model, forward, rows, temperature=temperature, budget=budget)
    now = totals([x.logprobs for x in read]).requires_grad_()
    before = totals([row.reference for row in rows])
    margin = _margin(now[chosen], now[rejected], before[chosen], before[rejected], beta=beta)
    loss = -logsigmoid(margin).mean()
    # By the chain rule a reply's tokens all have the coefficient of the reply.
    (slopes,) = torch.autograd.grad(loss, now)
    weighed = [
        replace(row, advantages=(-slope / n,) * len(row.reply))
        for row, slope, n in zip(rows, slopes.tolist(), lengths, strict=True)
    ]
    likelihood_gradient(
        model, forward, weighed, denominator=1.0, budget=budget, temperature=temperature
    )
    return {
        "loss": float(loss.detach()),
        "margin": float(margin.detach().mean()),
        "accuracy": float((margin > 0).double().mean()),
    }


def _margin(
    chosen: Tensor,
    rejected: Tensor,
    reference_chosen: Tensor,
    reference_rejected: Tensor,
    *,
    beta: float,
) -> Tensor:
    """Return by how much the implicit reward ``beta log p/q`` of the chosen is higher. [N]."""
    others = (rejected, reference_chosen, reference_rejected)
    if any(x.shape != chosen.shape for x in others):
        raise ValueError(
            f"all four must be [N] = {list(chosen.shape)}, as chosen, "
            f"got {[list(x.shape) for x in others]}"
        )
    return beta * ((chosen - reference_chosen) - (rejected - reference_rejected))


def _require_beta(beta: float) -> None:
    if not beta > 0:
        raise ValueError(f"beta must be above 0, got {beta!r}: 0.1 is a good start")


def _distinct(pairs: Sequence[PreferencePair]) -> list[Row]:
    """Return each row once, even if it is in several pairs."""
    return list({id(row): row for p in pairs for row in (p.chosen, p.rejected)}.values())


def _diagonals(replies: int) -> list[tuple[int, int]]:
    """Return all pairs of places i < j, in an order whose every prefix uses all places alike."""
    half = replies // 2
    shifts = sorted(range(1, replies), key=lambda d: abs(d - half))
    turns = ((i, (i + d) % replies) for d in shifts for i in range(replies))
    return list(dict.fromkeys((min(p), max(p)) for p in turns))
