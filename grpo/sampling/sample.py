"""Sample replies from any transformers causal LM, a batch at a time.

Each distinct prompt is computed once, and where the model allows it, its keys and values are held
once for all replies to it. Rows that are done leave the batch.

Shapes: B rows, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..model.batch import require_positions
from ..model.wrapped import causal_lm
from .decoder import choose_decoder
from .draw import Distribution
from .random_numbers import uniforms
from .stop import StopStrings

# Tokens drawn before the host looks which rows are done. An accelerator would wait for it.
_STEPS_A_LOOK = {"cpu": 1, "cuda": 8}


@dataclass(slots=True)
class Sample:
    """One sampled reply.

    Attributes:
        ids: the tokens, those that ended it included.
        logprobs: of each token under the distribution it was drawn from, in float32.
        finish: ``stop`` where an end-of-sequence token or a stop string came, ``length`` where
            there was no room.
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
    stop: StopStrings | None = None,
    temperature: float = 1.0,
    top_k: int = 0,
    min_p: float = 0.0,
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
        stop: texts that end a reply.
        temperature: see :class:`~assay.grpo.sampling.draw.Distribution`, as for the next three.
        top_k: for evaluation only.
        min_p: for evaluation only.
        top_p: for evaluation only.
        seed: see above.
        first_row: number of the first row.

    Returns:
        One sample for each prompt, in order.

    Raises:
        ValueError: a prompt has no tokens, a setting is out of its range, or the model's logits
            are not finite.
    """
    distribution = Distribution(temperature=temperature, top_k=top_k, min_p=min_p, top_p=top_p)
    if not all(prompts):
        raise ValueError("a prompt needs at least one token, got an empty one")
    if not prompts:
        return []
    model = causal_lm(model)
    require_positions(model, max(map(len, prompts)), max_new_tokens)
    device = model.device
    steps_a_look = _STEPS_A_LOOK.get(device.type, 8)
    replies = _Replies(len(prompts), max_new_tokens, eos_ids, stop)
    numbers = np.arange(first_row, first_row + len(prompts))
    chances = torch.from_numpy(uniforms(seed, numbers, max_new_tokens)).to(device)  # [B, T]
    runs = [(prompt, len(list(copies))) for prompt, copies in groupby(prompts)]
    _, make = choose_decoder(model)
    decoder = make(model, [p for p, _ in runs], [n for _, n in runs], max_new_tokens - 1)
    live = np.arange(len(prompts))
    drawn: list[tuple[Tensor, Tensor]] = []
    for t in range(max_new_tokens):
        tokens, logprobs = distribution.draw(decoder.logits, chances[:, t])
        drawn.append((tokens, logprobs))
        if len(drawn) == steps_a_look or t + 1 == max_new_tokens:
            replies.add(live, drawn)
            drawn = []
            going = np.flatnonzero(~replies.done[live]).tolist()
            if t + 1 == max_new_tokens or not going:
                break
            if len(live) - len(going) > decoder.patience * len(live):
                order = _closed_up(len(live), going)
                rows = torch.tensor(order, device=device)
                live, chances, tokens = live[order], chances[rows], tokens[rows]
                decoder.keep(rows)
        decoder.feed(tokens.clamp(min=0))
    return replies.samples()


class _Replies:
    """What is written so far, and which rows are done.

    Args:
        rows: how many replies there are.
        room: most tokens of each.
        ends: tokens that end a reply.
        stop: texts that do.
    """

    def __init__(self, rows: int, room: int, ends: Sequence[int], stop: StopStrings | None) -> None:
        self.done = np.zeros(rows, dtype=np.bool_)
        self._ids = np.zeros((rows, room), dtype=np.int64)
        self._logprobs = np.zeros((rows, room), dtype=np.float32)
        self._lengths = np.zeros(rows, dtype=np.int64)
        self._ends, self._stop = np.array(sorted(ends), dtype=np.int64), stop
        self._step = 0

    def add(self, rows: NDArray[np.int64], drawn: Sequence[tuple[Tensor, Tensor]]) -> None:
        """Add the tokens of some steps to these rows, up to where each ends."""
        steps = zip(
            torch.stack([tokens for tokens, _ in drawn]).cpu().numpy(),
            torch.stack([logprobs for _, logprobs in drawn]).cpu().numpy(),
            strict=True,
        )
        for tokens, logprobs in steps:
            going = ~self.done[rows]
            to, tokens, t = rows[going], tokens[going], self._step
            if (tokens < 0).any():
                raise ValueError(
                    "the model's logits are not finite, so there is nothing to draw from: its "
                    "weights are broken. Go back to an earlier checkpoint, and lower learning_rate"
                )
            self._ids[to, t], self._logprobs[to, t] = tokens, logprobs[going]
            self._lengths[to] = self._step = t + 1
            self.done[to] = (tokens[:, None] == self._ends).any(1)
            if self._stop and len(to):
                late = self._ids[:, max(0, t + 1 - self._stop.window) : t + 1]
                self.done[to] |= [self._stop.complete(late[row].tolist()) for row in to]

    def samples(self) -> list[Sample]:
        """All replies, in order."""
        return [
            Sample(ids[:n].tolist(), logprobs[:n].tolist(), "stop" if done else "length")
            for ids, logprobs, n, done in zip(
                self._ids, self._logprobs, self._lengths, self.done, strict=True
            )
        ]


def _closed_up(rows: int, going: Sequence[int]) -> list[int]:
    """The rows that go on, as many as possible at their old places: the last fill the holes."""
    n = len(going)
    here = set(going)
    movers = iter(i for i in reversed(going) if i >= n)
    return [i if i in here else next(movers) for i in range(n)]
