"""Credit for actions in an environment: from a critic, or from the others tried in a state.

They read the trace of :class:`~.branching.BranchingPolicy`. A critic learns beside the policy, from
the same rollout, each time that it is asked for credit. Shapes are those of that file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn

from assay.family.trainers.critic import gae, value_loss
from assay.grpo import Objective
from assay.grpo.advantage import group_advantages, whiten

from .units import Units

Estimate = Callable[[Mapping[str, Tensor], Tensor, Tensor], tuple[Tensor, Tensor]]
"""From a trace, values [B, T] and next values [B, T, N] (0 where the episode ended) to advantages
[B, T, N], NaN for those that teach nothing, and to what the values should have been, [B, T]."""


def hybrid_advantages(
    rewards: Tensor,
    values: Tensor,
    next_values: Tensor,
    *,
    each: bool = False,
    gamma: float = 1.0,
) -> Tensor:
    """Compute one-step advantages with the critic as baseline: Hybrid GRPO (arXiv 2502.01652).

    ``A = 1/N sum_n f(r(s, a_n)) + gamma V(s') - V(s)``, where s' is where the first action led,
    which the episode goes on from. The paper gives no code, and this equation is known to us at
    second hand. As it is written all tried actions share one average of rewards, so that only V(s')
    tells the taken one from the others: an action that ends the episode comes out ``gamma V(s)``
    below one that stays, whatever it pays. With ``each`` every tried action has its own,
    ``A_n = f(r(s, a_n)) + gamma V(s'_n) - V(s)``.

    ``f``, here tanh, bounds rewards, and so can change which policy is best: of rewards 1 and 1
    against 2.5 and 0, the second earns more, and under tanh the first does (1.52 to 0.99).

    Args:
        rewards: [B, T, N].
        values: [B, T], of the states.
        next_values: [B, T, N], of the states that the actions led to; 0 where they ended the
            episode.
        each: see above.
        gamma: discount of each step.

    Returns:
        [B, T] of the action taken, or with ``each`` [B, T, N] of all that were tried.

    Raises:
        ValueError: the shapes do not fit.
    """
    if (
        rewards.dim() != 3
        or next_values.shape != rewards.shape
        or values.shape != rewards.shape[:2]
    ):
        raise ValueError(
            f"rewards and next_values must be [B, T, N] and values [B, T], got "
            f"{list(rewards.shape)}, {list(next_values.shape)} and {list(values.shape)}"
        )
    bounded = rewards.tanh()
    if each:
        return bounded + gamma * next_values - values[:, :, None]
    return bounded.mean(dim=2) + gamma * next_values[:, :, 0] - values


class CriticCredit:
    """Advantages from a value function, which is then fitted to what was found.

    Args:
        critic: maps observations [..., *] to values [..., 1]; trained in place.
        estimate: :func:`gae_estimate` for PPO, :func:`hybrid_estimate` for Hybrid GRPO.
        learning_rate: of the critic's AdamW.
        passes: its optimizer steps on each rollout.
    """

    def __init__(
        self,
        critic: nn.Module,
        estimate: Estimate,
        *,
        learning_rate: float = 1e-3,
        passes: int = 4,
    ) -> None:
        self.critic, self.estimate, self.passes = critic, estimate, passes
        self.optimizer = torch.optim.AdamW(critic.parameters(), lr=learning_rate, weight_decay=0.0)

    def __call__(self, units: Units, named: Mapping[str, Tensor], objective: Objective) -> Tensor:
        """Whitened over what was tried and teaches, [B, U]; 0 elsewhere."""
        trace = units.trace
        with torch.no_grad():
            values = self.critic(trace["observations"]).squeeze(-1).double()
            ahead = self.critic(trace["next_observations"]).squeeze(-1).double()
            ahead = ahead.masked_fill(trace["ended"], 0.0)
            advantages, targets = self.estimate(trace, values, ahead)
        self._fit(trace, targets)
        there = trace["visited"][:, :, None] & ~advantages.isnan()
        return whiten(advantages.masked_fill(~there, 0.0), there).flatten(1)

    def _fit(self, trace: Mapping[str, Tensor], targets: Tensor) -> None:
        visited = trace["visited"]
        count = float(visited.sum())
        for _ in range(self.passes):
            with torch.enable_grad():
                values = self.critic(trace["observations"]).squeeze(-1)
                wanted = targets.to(values.dtype)
                loss = value_loss(values, values, wanted, visited, denominator=count, clip=None)
                self.optimizer.zero_grad(set_to_none=True)
                loss.backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
            self.optimizer.step()


def gae_estimate(*, gamma: float = 1.0, lam: float = 0.95) -> Estimate:
    """PPO's: ``gae`` of the actions taken; beyond a cut-off the critic's value."""

    def estimate(
        trace: Mapping[str, Tensor], values: Tensor, ahead: Tensor
    ) -> tuple[Tensor, Tensor]:
        visited = trace["visited"]
        later = torch.cat([visited[:, 1:], torch.zeros_like(visited[:, :1])], dim=1)
        last = visited & ~later
        rewards = trace["rewards"][:, :, 0] + last * gamma * ahead[:, :, 0]
        advantages, returns = gae(
            rewards.masked_fill(~visited, 0.0), values, visited, gamma=gamma, lam=lam
        )
        return _of_the_first(advantages, trace["rewards"]), returns

    return estimate


def hybrid_estimate(*, gamma: float = 1.0, each: bool = False) -> Estimate:
    """Hybrid GRPO's: :func:`hybrid_advantages`; what they add to the values is wanted.

    With ``each`` the critic learns the mean over the actions that were tried.
    """

    def estimate(
        trace: Mapping[str, Tensor], values: Tensor, ahead: Tensor
    ) -> tuple[Tensor, Tensor]:
        found = hybrid_advantages(trace["rewards"], values, ahead, gamma=gamma, each=each)
        if each:
            return found, values + found.mean(dim=2)
        return _of_the_first(found, trace["rewards"]), values + found

    return estimate


def state_credit(units: Units, named: Mapping[str, Tensor], objective: Objective) -> Tensor:
    """Compare an action's return with those of the others tried in its state: GRPO in each state.

    Raises:
        ValueError: there are no returns, as of ``BranchingPolicy(..., to_end=True)``.
    """
    if "returns" not in units.trace:
        raise ValueError("state_credit needs returns: sample with BranchingPolicy(to_end=True)")
    returns = units.trace["returns"]
    there = units.trace["visited"][:, :, None].expand(returns.shape)
    found = group_advantages(
        returns.masked_fill(~there, torch.nan).flatten(0, 1),
        std=objective.advantage_std,
        eps=objective.advantage_eps,
    )
    return found.view_as(returns).flatten(1)


def _of_the_first(advantages: Tensor, like: Tensor) -> Tensor:
    """[B, T] as those of the actions taken, among [B, T, N]."""
    found = torch.full_like(like, torch.nan)
    found[:, :, 0] = advantages
    return found
