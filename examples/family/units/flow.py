"""A flow-matching model as a policy whose units are denoising steps: Flow-GRPO and DanceGRPO.

Trained and used apart: a few steps of an SDE explore and have a density, more steps of the ODE
draw what is shown (Flow-GRPO's denoising reduction).

Shapes: P prompts, G samples of each, B = P * G, T steps; ``...`` are the dimensions of a sample.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from .denoising import FlowNoise, Noise, gaussian_kl, gaussian_logprob, step_mean, time_grid
from .units import Units


class FlowPolicy(nn.Module):
    """Samples by an SDE with the marginals of the flow's ODE: each step but the last is a unit.

    The last step adds no noise, which nothing would take away again, so it has no density; it is
    off the mask. (DanceGRPO's code does the same; Flow-GRPO's adds the noise, and does not train
    on it either.) Where ``read`` sees all rows and steps that were sampled together, as
    before the first update, its log-probabilities are those of ``sample`` to the last bit.

    Attributes:
        calls: network evaluations so far, one for each sample and step, with a gradient or
            without (NFE).

    Args:
        net: the velocity: ``net(x [N, ...], t [N], prompts [N, ...])`` shaped like x, with t from
            1, noise, to 0, data. Trained in place.
        shape: of one sample.
        steps: T of training, at least 2.
        noise: the SDE's, see :mod:`~.denoising`: ``FlowNoise(0.7)`` for Flow-GRPO,
            ``ConstantNoise(0.3)`` for DanceGRPO.
        shared_noise: a group's samples begin with one and the same noise (DanceGRPO).
        trained_share: share of an episode's units that is trained on, drawn at random for each
            episode (DanceGRPO: 0.6); the others are off the mask, and cost no gradient.

    Raises:
        ValueError: a value is out of its range.
    """

    times: Tensor
    sigmas: Tensor

    def __init__(
        self,
        net: nn.Module,
        shape: Sequence[int],
        *,
        steps: int = 10,
        noise: Noise | None = None,
        shared_noise: bool = False,
        trained_share: float = 1.0,
    ) -> None:
        super().__init__()
        if steps < 2:
            raise ValueError(f"steps must be at least 2, as the last has no density, got {steps!r}")
        self.trained = int(trained_share * (steps - 1))  # rounded down, as in DanceGRPO's code
        if not 0 < trained_share <= 1 or not self.trained:
            raise ValueError(
                f"trained_share must be in (0, 1] and leave one of {steps - 1} units, "
                f"got {trained_share!r}"
            )
        times = time_grid(steps)
        sigmas = (FlowNoise() if noise is None else noise)(times)
        sigmas[-1] = 0.0
        self.register_buffer("times", times, persistent=False)
        self.register_buffer("sigmas", sigmas, persistent=False)
        self.net, self.shape = net, tuple(shape)
        self.steps, self.shared_noise, self.calls = steps, shared_noise, 0

    @torch.no_grad()
    def sample(self, prompts: Tensor, group_size: int, generator: torch.Generator) -> Units:
        """Sample a group for each prompt by the SDE.

        ``outputs`` are [B, ...], at t = 0; the trace is ``path`` [B, T + 1, ...], at every time.
        """
        asked = prompts.repeat_interleave(group_size, dim=0)
        if self.shared_noise:
            x = self._noise(len(prompts), generator).repeat_interleave(group_size, dim=0)
        else:
            x = self._noise(len(asked), generator)
        path, logprobs = [x], []
        for step in range(self.steps):
            mean, std = self._step(x, step, asked)
            if step < self.steps - 1:
                x = mean + std * self._noise(len(x), generator)
                logprobs.append(gaussian_logprob(x, mean, std))
            else:
                x = mean
                logprobs.append(torch.zeros_like(logprobs[0]))
            path.append(x)
        mask = self._mask(len(x), generator)
        trace = {"path": torch.stack(path, dim=1)}
        return Units(prompts, group_size, x, trace, torch.stack(logprobs, dim=1), mask)

    def read(self, units: Units) -> Tensor:
        """Return log-probabilities of the steps on the mask, with a gradient: [B, T], 0 off it."""
        return self._read(units, None)[0]

    def read_with_kl(self, units: Units, reference: FlowPolicy) -> tuple[Tensor, Tensor]:
        """:meth:`read`, and the steps' KL(self || reference) by its closed form: [B, T] each."""
        return self._read(units, reference)

    @torch.no_grad()
    def draw(self, prompts: Tensor, generator: torch.Generator, *, steps: int = 40) -> Tensor:
        """Draw a sample at t = 0 for each of N prompts by the ODE, in any number of steps.

        The generator decides the noise at t = 1, and so everything.
        """
        x, times = self._noise(len(prompts), generator), time_grid(steps)
        for t, following in itertools.pairwise(times):
            x = x + self._velocity(x, t.to(x.device), prompts) * (following - t).item()
        return x

    def _read(self, units: Units, reference: FlowPolicy | None) -> tuple[Tensor, Tensor]:
        asked = units.prompts.repeat_interleave(units.group_size, dim=0)
        path, none = units.trace["path"], units.logprobs.new_zeros(len(units.logprobs))
        logprobs, divergences = [], []
        for step in range(self.steps):
            own = divergence = none
            (rows,) = units.mask[:, step].nonzero(as_tuple=True)
            if len(rows):
                x = path[rows, step]
                mean, std = self._step(x, step, asked[rows])
                found = gaussian_logprob(path[rows, step + 1], mean, std)
                own = none.index_copy(0, rows, found)
                if reference is not None:
                    with torch.no_grad():
                        other, _ = reference._step(x, step, asked[rows])
                    divergence = none.index_copy(0, rows, gaussian_kl(mean, other, std))
            logprobs.append(own)
            divergences.append(divergence)
        return torch.stack(logprobs, dim=1), torch.stack(divergences, dim=1)

    def _step(self, x: Tensor, step: int, prompts: Tensor) -> tuple[Tensor, Tensor]:
        """Return mean [N, ...] and standard deviation [] of the state after a step of training."""
        t, sigma = self.times[step], self.sigmas[step]
        dt = self.times[step + 1] - t
        mean = step_mean(x, self._velocity(x, t, prompts), t, dt, sigma)
        return mean, sigma * (-dt).sqrt()

    def _velocity(self, x: Tensor, t: Tensor, prompts: Tensor) -> Tensor:
        self.calls += len(x)
        found: Tensor = self.net(x, t.expand(len(x)), prompts)
        return found

    def _noise(self, rows: int, generator: torch.Generator) -> Tensor:
        noise = torch.randn(rows, *self.shape, generator=generator, device=generator.device)
        return noise.to(self.times.device)

    def _mask(self, rows: int, generator: torch.Generator) -> Tensor:
        """Which steps are trained on: [B, T]."""
        places = torch.rand(rows, self.steps - 1, generator=generator, device=generator.device)
        chosen = places.argsort(dim=1).argsort(dim=1) < self.trained
        mask = torch.zeros(rows, self.steps, dtype=torch.bool)
        mask[:, :-1] = chosen.to(mask.device)
        return mask.to(self.times.device)
