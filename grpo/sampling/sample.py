"""Sample replies from any transformers causal LM, a batch at a time.

Each distinct prompt is computed once; its key-value cache is then copied to its replies. Rows
that are done leave the batch.

Shapes: Q distinct prompts, B rows, S prompt tokens, V vocabulary.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor
from transformers import DynamicCache

from ..model.wrapped import causal_lm
from .random_numbers import uniforms


@dataclass(slots=True)
class Sample:
    """One sampled reply.

    Attributes:
        ids: the tokens, the end-of-sequence token included where it came.
        logprobs: of each token under the distribution it was drawn from, in float32.
        finish: ``stop`` where an end-of-sequence token came, ``length`` where there was no room.
    """

    ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    finish: Literal["stop", "length"] = "length"


@torch.no_grad()
def sample(
    model: Any,
    prompts: Sequence[Sequence[int]],
    *,
    max_new_tokens: int,
    eos_ids: Sequence[int] = (),
    temperature: float = 1.0,
    top_p: float = 1.0,
    seed: int = 0,
    first_row: int = 0,
) -> list[Sample]:
    """Sample one reply to each prompt.

    Token t of row i is chosen by a random number that depends on ``(seed, first_row + i, t)``
    alone. A batch that is split into several calls, each with its own ``first_row``, therefore
    draws the same replies, up to the rounding of matrix products of another shape: that moves
    a log-probability by some 1e-6, and once in a long while a token that lies on the edge.

    Args:
        model: a causal LM whose cache is one of keys and values.
        prompts: token ids of each row, none empty. Equal neighbours are computed once.
        max_new_tokens: tokens after which a reply is cut off.
        eos_ids: tokens that end a reply.
        temperature: divides the logits; 0 takes the most likely token, with log-probability 0.
        top_p: keep the most likely tokens that together reach this probability. Below 1 the
            log-probabilities are those of what was kept, which is no policy that a gradient
            can be taken of: for evaluation only.
        seed: see above.
        first_row: number of the first row.

    Returns:
        One sample for each prompt, in order.

    Raises:
        ValueError: a prompt has no tokens, or the model's logits are not finite.
    """
    if not all(prompts):
        raise ValueError("a prompt needs at least one token, got an empty one")
    if not prompts:
        return []
    device = model.device
    samples = [Sample() for _ in prompts]
    rows = np.arange(first_row, first_row + len(prompts))
    chances = torch.from_numpy(uniforms(seed, rows, max_new_tokens)).to(device)  # [B, T]
    decoder = _Decoder(model, prompts)
    ends = torch.tensor(list(eos_ids), dtype=torch.long, device=device)
    live = torch.arange(len(prompts), device=device)
    for t in range(max_new_tokens):
        tokens, logprobs = draw(decoder.logits, chances[live, t], temperature, top_p)
        done = torch.isin(tokens, ends)
        columns = live.tolist(), tokens.tolist(), logprobs.tolist(), done.tolist()
        for row, token, logprob, end in zip(*columns, strict=True):
            samples[row].ids.append(token)
            samples[row].logprobs.append(logprob)
            if end:
                samples[row].finish = "stop"
        keep = (~done).nonzero()[:, 0]
        if t + 1 == max_new_tokens or not keep.numel():
            break
        if keep.numel() < live.numel():
            live, tokens = live[keep], tokens[keep]
            decoder.keep(keep)
        decoder.feed(tokens)
    return samples


def draw(
    logits: Tensor, chances: Tensor, temperature: float = 1.0, top_p: float = 1.0
) -> tuple[Tensor, Tensor]:
    """Choose a token for each row by inverting its cumulative distribution.

    Args:
        logits: [B, V].
        chances: [B] in [0, 1), float64.
        temperature: divides the logits; 0 takes the most likely.
        top_p: see :func:`sample`.

    Returns:
        Tokens [B], and their log-probabilities [B] in float32.
    """
    if temperature == 0:
        tokens = logits.argmax(-1)
        return tokens, torch.zeros(len(tokens), device=logits.device)
    logprobs = (logits.float() / temperature).log_softmax(-1)
    if top_p < 1:
        logprobs = _nucleus(logprobs, top_p)
    # In float64 a token of probability 1e-12 still widens the sum, and one of 0 never does.
    cumulative = logprobs.double().exp().cumsum(-1)  # [B, V]
    if not cumulative[:, -1].isfinite().all():
        raise ValueError(
            "the model's logits are not finite, so there is nothing to draw from: its weights are "
            "broken. Go back to an earlier checkpoint, and lower learning_rate"
        )
    threshold = chances[:, None] * cumulative[:, -1:]
    tokens = torch.searchsorted(cumulative, threshold, right=True)  # [B, 1]
    return tokens[:, 0], logprobs.gather(1, tokens)[:, 0]


def _nucleus(logprobs: Tensor, top_p: float) -> Tensor:
    """Renormalise over the smallest set of likeliest tokens that reaches ``top_p``."""
    ordered, order = logprobs.sort(dim=-1, descending=True)
    before = ordered.exp().cumsum(-1) - ordered.exp()
    ordered = ordered.masked_fill(before >= top_p, -torch.inf).log_softmax(-1)
    return torch.full_like(logprobs, -torch.inf).scatter(1, order, ordered)


class _Decoder:
    """The model's state after what each row has so far: cache, mask, and the next logits."""

    def __init__(self, model: Any, prompts: Sequence[Sequence[int]]) -> None:
        model = self._model = causal_lm(model)
        runs = [(prompt, len(list(copies))) for prompt, copies in groupby(prompts)]
        width = max(len(prompt) for prompt, _ in runs)
        # Padding on the left: the next token of every row then lies in the same column.
        ids = torch.tensor([[0] * (width - len(p)) + list(p) for p, _ in runs])  # [Q, S]
        there = torch.tensor([[0] * (width - len(p)) + [1] * len(p) for p, _ in runs])
        self._mask = there.to(model.device)
        self._positions = self._mask.sum(1)  # [Q], where the next token goes
        self._cache = DynamicCache(config=model.config)
        accepted = inspect.signature(model.forward).parameters
        self._takes_positions = "position_ids" in accepted
        last = {"logits_to_keep": 1} if "logits_to_keep" in accepted else {}
        positions = (self._mask.cumsum(1) - 1).clamp(min=0)
        self.logits = self._forward(ids.to(model.device), positions, **last)  # [Q, V]
        copies = torch.tensor([n for _, n in runs])
        self.keep(torch.arange(len(runs)).repeat_interleave(copies).to(model.device))

    def keep(self, rows: Tensor) -> None:
        """Go on with these rows, in this order; a row may be named more than once."""
        self._cache.batch_select_indices(rows)
        self._mask, self._positions = self._mask[rows], self._positions[rows]
        self.logits = self.logits[rows]

    def feed(self, tokens: Tensor) -> None:
        """Append one token [B] to each row."""
        self._mask = torch.cat([self._mask, self._mask.new_ones(len(tokens), 1)], dim=1)
        self.logits = self._forward(tokens[:, None], self._positions[:, None])
        self._positions = self._positions + 1

    def _forward(self, ids: Tensor, positions: Tensor, **options: Any) -> Tensor:
        if self._takes_positions:
            options["position_ids"] = positions
        output = self._model(
            input_ids=ids,
            attention_mask=self._mask,
            past_key_values=self._cache,
            use_cache=True,
            **options,
        )
        logits: Tensor = output.logits[:, -1]
        return logits
