"""Weights of prompts by how rarely they are answered right.

Shapes: P prompts, G replies to each.
"""

from __future__ import annotations

import torch
from torch import Tensor


def difficulty_weights(
    advantages: Tensor,
    correct: Tensor,
    *,
    easy: float = 0.4,
    hard: float = 1.5,
    middle: float = 0.75,
    slope: float = 10.0,
) -> Tensor:
    """What each advantage is multiplied by: GRPO-LEAD (arXiv 2504.09696).

    ``w(s) = easy + (hard - easy) / (1 + exp(slope (s - middle)))``, where s is the share of the
    group's replies that are right: ``w(s)`` for positive advantages, ``w(1 - s)`` for the others. A
    rare right reply counts for more than one of many, and so does a rare wrong one. The defaults
    are those of its authors' code.

    Args:
        advantages: [P, G].
        correct: [P, G], 1 where a reply is right, 0 where it is wrong; NaN where it was not judged,
            which is not in the share.
        easy: weight that is approached where all replies are right.
        hard: weight that is approached where none is.
        middle: share where the weight is halfway.
        slope: how fast it changes there.

    Returns:
        [P, G].

    Raises:
        ValueError: the shapes differ.

    Example:
        >>> half = difficulty_weights(torch.tensor([[1.0, -1.0]]), torch.tensor([[1.0, 0.0]]))
        >>> [round(w, 3) for w in half[0].tolist()]
        [1.417, 1.417]
    """
    if advantages.dim() != 2 or correct.shape != advantages.shape:
        raise ValueError(
            f"advantages and correct must be [P, G], got {list(advantages.shape)} and "
            f"{list(correct.shape)}"
        )
    share = correct.nanmean(dim=1, keepdim=True).nan_to_num(0.0)  # [P, 1]
    share = torch.where(advantages > 0, share, 1 - share).to(advantages.dtype)
    return easy + (hard - easy) * torch.sigmoid(slope * (middle - share))
