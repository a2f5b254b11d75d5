"""Choose tokens: from logits, over what temperature and cut-offs leave of them, to ids.

Shapes: B rows, V vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

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

    Raises:
        ValueError: one is out of its range.
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
        """Choose a token for each row by inverting its cumulative distribution.

        Args:
            logits: [B, V].
            chances: [B] in [0, 1), float64.

        Returns:
            Tokens [B], -1 where the logits are not finite, so that there is nothing to draw from;
            and their log-probabilities [B] in float32.
        """
        if self.temperature == 0:
            tokens = logits.argmax(-1)
            bad = ~logits.amax(-1).isfinite()
            zeros = torch.zeros(len(tokens), device=logits.device)
            return tokens.masked_fill(bad, -1), zeros
        return self._invert(self._kept(logits.float() / self.temperature), chances)

    def _kept(self, logits: Tensor) -> Tensor:
        """The logits, -inf where a token is cut off."""
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
    """Tokens [B, 1] of weights [B, V] at the chances [B], and the sums [B, 1] of the weights."""
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
