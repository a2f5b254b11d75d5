"""Where sampler and trainer disagree: weights that make up for it.

Shapes: B replies, T tokens.
"""

from __future__ import annotations

import torch
from torch import Tensor

from .kl import MAX_LOG_RATIO
from .objective import Correction


@torch.no_grad()
def mismatch_weights(
    trainer_logprobs: Tensor,
    sampler_logprobs: Tensor,
    mask: Tensor,
    how: Correction,
    cap: float = 3.0,
    *,
    floor: float = 0.0,
) -> Tensor:
    """Importance weights p_trainer / p_sampler, to be multiplied into the tokens' advantages.

    The same weights in another engine or precision give other probabilities, so what was
    sampled is not what is trained on. ``token``: of each token; ``sequence``: the product over
    the reply, for all of its tokens. ``truncate``: cut to [floor, cap] (truncated importance
    sampling: Yao et al., "Your Efficient RL Framework Secretly Brings You Off-Policy RL
    Training", 2025); ``mask``: zero outside of it (with a floor and single tokens: IcePop, Ling
    team, 2025).

    Args:
        trainer_logprobs: [B, T], by the trainer's forward, with the weights that sampled.
        sampler_logprobs: [B, T], by the sampler; NaN where unknown: the token's weight is 1.
        mask: [B, T] of bool, True on the tokens the policy wrote.
        how: one of the combinations, or ``none``: weights of 1.
        cap: at least 1. A sequence's product strays further than a token's weight.
        floor: at most 1.

    Returns:
        [B, T], no gradient; zero off the mask. Logarithms are cut at +-20.
    """
    if how == "none":
        return mask.to(trainer_logprobs.dtype)
    difference = (trainer_logprobs - sampler_logprobs).masked_fill(~mask, 0.0)
    difference = difference.nan_to_num(nan=0.0, posinf=torch.inf, neginf=-torch.inf)
    if how.startswith("sequence"):
        difference = difference.sum(dim=1, keepdim=True).expand_as(mask)
    weights = difference.clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO).exp()
    if how.endswith("truncate"):
        weights = weights.clamp(floor, cap)
    else:
        weights = weights.masked_fill((weights < floor) | (weights > cap), 0.0)
    return weights.masked_fill(~mask, 0.0)
