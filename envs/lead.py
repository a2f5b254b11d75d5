"""GRPO-LEAD's reward: shorter right replies earn more, wrong ones pay a penalty."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from .episode import Episode
from .filters import outcome
from .group_rubric import GroupPart, written_lengths
from .task import Task


class LeadLength(GroupPart):
    r"""More for those right replies that are shorter than the others: GRPO-LEAD (arXiv 2504.09696).

    The paper's reward is ``exp(-alpha z)`` for a right reply, ``z`` being its length less the mean
    of the group's right replies, over their standard deviation (of a sample, plus 1e-6; 1 if
    only one is right), and ``-penalty`` for a wrong one. Here rewards are in [0, 1], and it is
    ``(R + penalty) / (bound + penalty)``, with the ``bound = exp(alpha (n - 1) / sqrt(n))`` that no
    reply of a group of n exceeds. Advantages that are divided by the group's standard deviation
    are the same for both. Lengths are as for :class:`ShortReplies`.

    It is the whole reward, so pay it alone, by ``weights={"rubric": 0.0}`` as below, and train with
    the preset ``lead``, which adds the weights by difficulty.

    Two of its settings do less than they seem to if rewards are standardised by group:

    - With ``alpha=0`` rewards are two-valued, and so advantages are the same for every
      ``penalty``. Beside a length reward a penalty widens the step from wrong to right, and so
      makes length count for *less* if some replies are wrong.
    - If all replies are right, ``alpha`` cancels to first order (if they have two lengths,
      exactly): ``exp(-alpha z)`` is about ``1 - alpha z``, and standardised that is ``-z``. However
      small ``alpha`` is, length is all that such a group teaches, at full strength.

    Args:
        alpha: how much length matters among right replies; 0 for not at all.
        penalty: of a wrong reply, in the paper's 1.

    Raises:
        ValueError: ``alpha`` is not in [0, 10], or ``penalty`` is negative or not finite.

    Example:
        >>> from assay.envs import GroupRubric, LeadLength, make
        >>> env = make("assay/Arithmetic-v1")
        >>> env.group_rubric = GroupRubric({"lead": LeadLength()}, weights={"rubric": 0.0})
    """

    def __init__(self, *, alpha: float = 0.05, penalty: float = 1.0) -> None:
        if not 0 <= alpha <= 10:
            raise ValueError(f"alpha must be in [0, 10], got {alpha!r}: the paper takes 0.05")
        if not (math.isfinite(penalty) and penalty >= 0):
            raise ValueError(f"penalty must be 0 or more, got {penalty!r}: it is taken off")
        self.alpha, self.penalty = alpha, penalty

    def rewards(self, task: Task, episodes: Sequence[Episode]) -> list[float | None]:
        """Return one reward for each episode; 0.0 for wrong ones."""
        found: list[float | None] = [0.0] * len(episodes)
        right = [k for k, episode in enumerate(episodes) if outcome(episode) == 1.0]
        if not right:
            return found
        every = written_lengths(episodes)
        lengths = [every[k] for k in right]
        mean = statistics.fmean(lengths)
        deviation = statistics.stdev(lengths) if len(lengths) > 1 else 1.0
        bound = math.exp(self.alpha * (len(episodes) - 1) / math.sqrt(len(episodes)))
        for k in right:
            reward = math.exp(-self.alpha * (every[k] - mean) / (deviation + 1e-6))
            found[k] = min(1.0, (reward + self.penalty) / (bound + self.penalty))
        return found

    def __repr__(self) -> str:
        return f"LeadLength(alpha={self.alpha}, penalty={self.penalty})"
