"""Choose a reply's tokens: random numbers, the distribution they invert, texts that end a reply.

A random number is a hash of its address (seed, row, position), so a reply does not change with the
batch it is drawn in, and a resumed run draws what the unbroken one would have drawn.

Shapes: B rows, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_TURN = 1 << 40  # between the numbers of an episode's turns


def derive_seed(seed: int, *address: int) -> int:
    """Derive a seed in [0, 2**63) for a part of a run, such as ``derive_seed(seed, step)``."""
    state = _mix(np.array([seed % 2**64], dtype=np.uint64))
    for part in address:
        state = _mix(state ^ _mix(np.array([(part + int(_GAMMA)) % 2**64], dtype=np.uint64)))
    return int(state[0]) >> 1


def uniforms(seed: int, rows: NDArray[np.int64], positions: int) -> NDArray[np.float64]:
    """Return random numbers [B, positions] in [0, 1) for row numbers [B].

    Multiples of 2**-32: none is so close to 1 that rounding makes it 1.
    """
    streams = _mix(rows.astype(np.uint64) ^ _mix(np.array([seed % 2**64], dtype=np.uint64)))
    steps = np.arange(1, positions + 1, dtype=np.uint64) * _GAMMA
    bits = _mix(streams[:, None] + steps[None, :]) >> np.uint64(32)
    return bits.astype(np.float64) / 2.0**32


def _mix(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Finalizer of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: NDArray[np.uint64] = x ^ (x >> np.uint64(31))
    return mixed


class RowNumbers:
    """Numbers rows, which address their random numbers, over several calls.

    Episodes are numbered in the order of their first turns, from ``next`` on; each keeps its number
    in later turns, which are found by the tokens that they go on from.
    """

    def __init__(self) -> None:
        self.next = 0
        self._ended: dict[int, list[int]] = {}

    def of(self, prefixes: Sequence[Sequence[int]]) -> list[int]:
        """Number some rows, each going on from its prefix; an empty one begins an episode."""
        found = []
        for prefix in prefixes:
            if known := self._ended.get(hash(tuple(prefix))) if prefix else None:
                found.append(known.pop(0) + _TURN)
            else:
                found.append(self.next)
                self.next += 1
        return found

    def keep(self, number: int, tokens: Sequence[int]) -> None:
        """Remember the number of a row by all its tokens."""
        self._ended.setdefault(hash(tuple(tokens)), []).append(number)


class StopStrings:
    """Texts that end a reply, wherever they lie in its tokens.

    They are looked for in the reply's text as it is given back, so without special tokens; a
    special token that is to end replies belongs to ``eos_ids``. At most the last ``window`` tokens
    of a reply are read.
    """

    def __init__(self, tokenizer: Any, strings: Sequence[str]) -> None:
        if isinstance(strings, str) or not all(strings):
            raise ValueError(f"stop must be a list of texts, none empty, got {strings!r}")
        self.strings = tuple(strings)
        self._tokenizer = tokenizer
        self._last = {s[-1] for s in self.strings}
        self._may_complete: dict[int, bool] = {}
        # A token is at least a byte of text. A few more, as the first may lose its leading space.
        self.window = max((len(s.encode()) for s in self.strings), default=0) + 4

    def __bool__(self) -> bool:
        return bool(self.strings)

    def complete(self, ids: Sequence[int]) -> bool:
        """Return whether the last of these tokens, the only new one, completes a text."""
        return (
            bool(self.strings)
            and self._may(ids[-1])
            and any(s in self._decode(ids[-self.window :]) for s in self.strings)
        )

    def _may(self, token: int) -> bool:
        """Return whether the token's text has a last character of a string, or part of one."""
        if token not in self._may_complete:
            text = self._decode([token, token])  # alone, some tokenizers drop its leading space
            self._may_complete[token] = "\ufffd" in text or not self._last.isdisjoint(text)
        return self._may_complete[token]

    def _decode(self, ids: Sequence[int]) -> str:
        text: str = self._tokenizer.decode(list(ids), skip_special_tokens=True)
        return text


_BLOCK = 256  # tokens whose probabilities are summed before any single one is looked at


@dataclass(frozen=True, slots=True, kw_only=True)
class Distribution:
    """What a reply's tokens are drawn from, made of the model's logits in this order.

    Every cut but ``temperature`` gives some tokens the probability 0. The log-probabilities are
    then those of what was kept, which is no policy that a gradient can be taken of: cuts are for
    evaluation, and so is temperature 0.

    Attributes:
        temperature: divides the logits; 0 takes the most likely token, with log-probability 0.
        top_k: keep this many of the most likely tokens, and those as likely as the last of
            them; 0 keeps all.
        min_p: keep tokens at least this times as likely as the most likely one (Nguyen et al.,
            arXiv 2407.01082, section 3); 0 keeps all.
        top_p: of what is left keep the most likely tokens that together reach this probability
            (Holtzman et al., arXiv 1904.09751, equation 2); 1 keeps all.
    """

    temperature: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
    top_p: float = 1.0

    def __post_init__(self) -> None:
        for name, good, rule in (
            ("temperature", 0 <= self.temperature < float("inf"), "at least 0"),
            ("top_k", self.top_k >= 0, "at least 0 (0 keeps all tokens)"),
            ("min_p", 0 <= self.min_p <= 1, "in [0, 1] (0 keeps all tokens)"),
            ("top_p", 0 < self.top_p <= 1, "in (0, 1] (1 keeps all tokens)"),
        ):
            if not good:
                raise ValueError(f"{name} must be {rule}, got {getattr(self, name)}")

    def draw(self, logits: Tensor, chances: Tensor) -> tuple[Tensor, Tensor]:
        """Choose a token for each row of logits [B, V] by inverting its cumulative distribution.

        Returns:
            Tokens [B] at the ``chances`` [B] in [0, 1), float64, -1 if the logits are not finite,
            so that there is nothing to draw from; and log-probabilities [B] in float32.
        """
        if self.temperature == 0:
            tokens = logits.argmax(-1)
            bad = ~logits.amax(-1).isfinite()
            zeros = torch.zeros(len(tokens), device=logits.device)
            return tokens.masked_fill(bad, -1), zeros
        return self._invert(self._kept(logits.float() / self.temperature), chances)

    def _kept(self, logits: Tensor) -> Tensor:
        """Set the logits of tokens that are cut off to -inf."""
        if 0 < self.top_k < logits.shape[-1]:
            least = logits.topk(self.top_k, dim=-1).values[:, -1:]
            logits = logits.masked_fill(logits < least, -torch.inf)
        if self.min_p > 0:
            least = logits.amax(-1, keepdim=True) + torch.tensor(self.min_p).log().item()
            logits = logits.masked_fill(logits < least, -torch.inf)
        if self.top_p < 1:
            ordered, order = logits.sort(dim=-1, descending=True)
            p = ordered.softmax(-1)
            late = p.cumsum(-1) - p >= self.top_p
            cut = torch.zeros_like(late).scatter(1, order, late)
            logits = logits.masked_fill(cut, -torch.inf)
        return logits

    def _invert(self, logits: Tensor, chances: Tensor) -> tuple[Tensor, Tensor]:
        """Find each chance's block of tokens first, and then the token in its block.

        One pass over the vocabulary in float32 is left; sums are in float64, where a token of
        probability 1e-12 still widens them, and one of 0 never does.
        """
        top = logits.amax(-1, keepdim=True)  # [B, 1]
        p = (logits - top).exp_()
        if logits.shape[-1] <= _BLOCK:
            within = p.double().cumsum_(-1)
            total = within[:, -1:]
            tokens = torch.searchsorted(within, chances[:, None] * total, right=True)
        else:
            tokens, total = _by_blocks(p, chances)
        tokens.clamp_(max=logits.shape[-1] - 1)
        logprobs = (logits.gather(1, tokens) - top).double() - total.log()
        tokens = tokens.masked_fill(~total.isfinite(), -1)
        return tokens[:, 0], logprobs[:, 0].float()


def _by_blocks(p: Tensor, chances: Tensor) -> tuple[Tensor, Tensor]:
    """Return tokens [B, 1] of weights [B, V] at the chances [B], and the weights' sums [B, 1]."""
    rows, v = p.shape
    if v % _BLOCK:
        p = torch.nn.functional.pad(p, (0, -v % _BLOCK))
    blocks = p.view(rows, -1, _BLOCK)  # [B, N, W]
    until = blocks.sum(-1, dtype=torch.float64).cumsum(-1)  # [B, N]
    total = until[:, -1:]
    threshold = chances[:, None] * total  # [B, 1]
    block = torch.searchsorted(until, threshold, right=True).clamp_(max=blocks.shape[1] - 1)
    before = torch.where(block > 0, until.gather(1, (block - 1).clamp(min=0)), 0.0)
    inside = blocks.gather(1, block[:, :, None].expand(-1, -1, _BLOCK))[:, 0]  # [B, W]
    within = inside.double().cumsum(-1)
    token = torch.searchsorted(within, threshold - before, right=True)
    # Two sums of the same numbers may round differently: stay on a token that is possible.
    last = _BLOCK - 1 - (inside > 0).flip(-1).int().argmax(-1, keepdim=True)
    return block * _BLOCK + torch.minimum(token, last), total
