"""DPO: a loss of pairs of replies, of which one is preferred.

Shapes: N pairs.
"""

from __future__ import annotations

from torch import Tensor
from torch.nn.functional import logsigmoid


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
    if not beta > 0:
        raise ValueError(f"beta must be above 0, got {beta!r}: 0.1 is a good start")
    return -logsigmoid(
        dpo_margin(chosen, rejected, reference_chosen, reference_rejected, beta=beta)
    )


def dpo_margin(
    chosen: Tensor,
    rejected: Tensor,
    reference_chosen: Tensor,
    reference_rejected: Tensor,
    *,
    beta: float = 0.1,
) -> Tensor:
    """By how much the policy's implicit reward ``beta log p/q`` of the chosen is higher. [N].

    Args: see :func:`dpo_loss`.
    """
    others = (rejected, reference_chosen, reference_rejected)
    if any(x.shape != chosen.shape for x in others):
        raise ValueError(
            f"all four must be [N] = {list(chosen.shape)}, as chosen, "
            f"got {[list(x.shape) for x in others]}"
        )
    return beta * ((chosen - reference_chosen) - (rejected - reference_rejected))
