"""Which tokens were decisions: those of high entropy."""

from __future__ import annotations

import math

import torch
from torch import Tensor


def top_entropy_mask(entropies: Tensor, mask: Tensor, share: float) -> Tensor:
    """Say which tokens are among the ``share`` of highest entropy.

    "Beyond the 80/20 Rule" (arXiv 2506.01939): training on the fifth of tokens where
    the policy was undecided is enough. Off this mask advantages become zero; denominators,
    KL penalty and entropy bonus stay over all tokens.

    Args:
        entropies: of any shape, in nats: of all tokens of an optimizer step. Of a micro-batch's
            alone the threshold would depend on how the step is cut.
        mask: of the same shape, of bool, True on the tokens the policy wrote.
        share: in (0, 1].

    Returns:
        Of the same shape, of bool; within ``mask``. Tokens tied at the threshold are all in.

    Raises:
        ValueError: ``share`` is out of its range.
    """
    if not 0 < share <= 1:
        raise ValueError(f"share must be in (0, 1], got {share!r}: 0.2 is the paper's")
    held = entropies[mask]
    if share == 1 or not held.numel():
        return mask.clone()
    # The (1 - share) quantile, where it falls between two tokens the upper one.
    below = math.ceil((held.numel() - 1) * (1 - share) - 1e-9)
    threshold = torch.kthvalue(held, below + 1).values
    return mask & (entropies >= threshold)
