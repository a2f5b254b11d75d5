"""Actions in an environment that can be cloned: several are tried in each state.

Shapes: P prompts, G episodes of each, B = P * G; T states of the longest episode, N actions tried
in each, U = T * N units, A actions that there are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from .units import Units


class CloningEnv(Protocol):
    """A Gymnasium environment that can be put back to where it was."""

    np_random: np.random.Generator

    def reset(self, *, seed: int | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode."""
        ...

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Act."""
        ...

    def clone(self) -> Any:
        """Everything about the episode so far."""
        ...

    def restore(self, clone: Any) -> None:
        """Go back to where it was cloned; as often as one likes."""
        ...


class BranchingPolicy(nn.Module):
    """A policy over a few actions that tries several in each state, and goes on from the first.

    A prompt is the seed of an environment's reset, so a group shares its start; what happens by
    chance is drawn anew for each action that is tried. The first of them is carried on, so each
    state costs ``branches`` calls of ``step``, and :attr:`calls` counts all.

    What it samples are :class:`Units` with the episode's sum of rewards as output, and with this
    trace: ``observations`` [B, T, ...]; ``visited`` [B, T], True on states that there were;
    ``actions``, ``rewards``, ``ended`` (whether the action ended the episode, so that nothing
    comes after it) [B, T, N] and ``next_observations`` [B, T, N, ...]; with ``to_end`` also
    ``returns`` [B, T, N].

    Args:
        logits: maps observations [..., *] to [..., A].
        make: an environment.
        horizon: states after which an episode is cut off.
        branches: N; 1 tries only what is done.
        to_end: play each action that is tried to the end of its episode, by this policy. That
            costs calls too.

    Raises:
        ValueError: ``horizon`` or ``branches`` is below 1.
    """

    def __init__(
        self,
        logits: nn.Module,
        make: Callable[[], CloningEnv],
        *,
        horizon: int,
        branches: int = 1,
        to_end: bool = False,
    ) -> None:
        super().__init__()
        for name, value in (("horizon", horizon), ("branches", branches)):
            if value < 1:
                raise ValueError(f"{name} must be at least 1, got {value}")
        self.logits, self.make = logits, make
        self.horizon, self.branches, self.to_end = horizon, branches, to_end
        self.calls = 0

    def sample(self, prompts: Tensor, group_size: int, generator: torch.Generator) -> Units:
        """Play a group of episodes for each prompt."""
        seeds = prompts.repeat_interleave(group_size).tolist()
        envs = [self.make() for _ in seeds]
        now = [env.reset(seed=seed)[0] for env, seed in zip(envs, seeds, strict=True)]
        trace = self._empty(len(envs), torch.as_tensor(now[0]))
        logprobs = torch.zeros(len(envs), self.horizon, self.branches)
        total = torch.zeros(len(envs), dtype=torch.float64)
        alive = list(range(len(envs)))
        for t in range(self.horizon):
            if not alive:
                break
            seen = torch.stack([torch.as_tensor(now[b]) for b in alive])
            known = self.logits(seen).log_softmax(-1)
            actions = torch.multinomial(
                known.exp(), self.branches, replacement=True, generator=generator
            )
            trace["observations"][alive, t], trace["visited"][alive, t] = seen, True
            trace["actions"][alive, t] = actions
            logprobs[alive, t] = known.gather(1, actions)
            for b, tried in zip(tuple(alive), actions.tolist(), strict=True):
                now[b], over = self._try(envs[b], tried, trace, (b, t), generator)
                total[b] += trace["rewards"][b, t, 0]
                if over:
                    alive.remove(b)
        mask = trace["visited"][:, :, None].expand(logprobs.shape).flatten(1)
        return Units(prompts, group_size, total, trace, logprobs.flatten(1), mask)

    def read(self, units: Units) -> Tensor:
        """Log-probabilities of all actions that were tried."""
        known = self.logits(units.trace["observations"]).log_softmax(-1)  # [B, T, A]
        found: Tensor = known.gather(2, units.trace["actions"]).flatten(1)
        return found

    def _empty(self, rows: int, observation: Tensor) -> dict[str, Tensor]:
        states, tried = (rows, self.horizon), (rows, self.horizon, self.branches)
        seen = observation.shape, observation.dtype
        trace = {
            "observations": torch.zeros(*states, *seen[0], dtype=seen[1]),
            "visited": torch.zeros(states, dtype=torch.bool),
            "actions": torch.zeros(tried, dtype=torch.long),
            "rewards": torch.zeros(tried, dtype=torch.float64),
            "ended": torch.zeros(tried, dtype=torch.bool),
            "next_observations": torch.zeros(*tried, *seen[0], dtype=seen[1]),
        }
        if self.to_end:
            trace["returns"] = torch.zeros(tried, dtype=torch.float64)
        return trace

    def _try(
        self,
        env: CloningEnv,
        actions: list[int],
        trace: dict[str, Tensor],
        at: tuple[int, int],
        generator: torch.Generator,
    ) -> tuple[Any, bool]:
        """Try actions, the first one last: the environment goes on from there."""
        alone = len(actions) == 1 and not self.to_end
        before = None if alone else env.clone()
        for k in reversed(range(len(actions))):
            if before is not None:
                env.restore(before)
            env.np_random = _fresh(generator)  # or all that is tried would meet the same chance
            observation, reward, ended, cut, _ = env.step(actions[k])
            self.calls += 1
            place = (*at, k)
            trace["rewards"][place], trace["ended"][place] = reward, ended
            trace["next_observations"][place] = torch.as_tensor(observation)
            if self.to_end:
                after = env.clone()
                rest = 0.0 if ended or cut else self._rest(env, observation, at[1] + 1, generator)
                trace["returns"][place] = reward + rest
                env.restore(after)
        return observation, ended or cut

    def _rest(
        self, env: CloningEnv, observation: Any, since: int, generator: torch.Generator
    ) -> float:
        """Return the reward from here to the end."""
        total = 0.0
        for _ in range(since, self.horizon):
            chances = self.logits(torch.as_tensor(observation)).softmax(-1)
            action = int(torch.multinomial(chances, 1, generator=generator))
            observation, reward, ended, cut, _ = env.step(action)
            self.calls += 1
            total += reward
            if ended or cut:
                break
        return total


def _fresh(generator: torch.Generator) -> np.random.Generator:
    return np.random.default_rng(int(torch.randint(2**62, (), generator=generator)))
