"""The arithmetic of a denoising step: an ODE, SDEs with the same marginals, and their density.

A rectified flow goes from t = 1, noise, to t = 0, data: ``x_t = (1 - t) x_0 + t e`` with
e ~ N(0, I). Its velocity is ``v(x, t) = E[e - x_0 | x_t = x]``. Time falls, so dt is negative.

Shapes: N samples, T steps; ``...`` are the dimensions of a sample, D numbers in all.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

Velocity = Callable[[Tensor, Tensor, Tensor], Tensor]
"""``(x [N, ...], t [N], prompts [N, ...])`` to the velocity, shaped like x."""

Noise = Callable[[Tensor], Tensor]
"""From times [T + 1] to sigma [T], the noise of each step's SDE, per square root of time."""


@dataclass(frozen=True, slots=True)
class FlowNoise:
    """``sigma = level sqrt(t / (1 - t))``: Flow-GRPO (arXiv 2505.05470), where level is a.

    At t = 1, where it is infinite, 1 - t is that of the next step, as in the code. So the first of
    T even steps adds a variance of level^2 however large T is, and samples are spread a little
    wider than the ODE's, by less and less as t falls.
    """

    level: float = 0.7

    def __post_init__(self) -> None:
        _require_positive("level", self.level)

    def __call__(self, times: Tensor) -> Tensor:
        """From times [T + 1] to sigma [T]."""
        t = times[:-1]
        return self.level * (t / (1 - torch.where(t == 1, times[1], t))).sqrt()


@dataclass(frozen=True, slots=True)
class ConstantNoise:
    """``sigma = level`` at every step: DanceGRPO (arXiv 2505.07818), where level is eta."""

    level: float = 0.3

    def __post_init__(self) -> None:
        _require_positive("level", self.level)

    def __call__(self, times: Tensor) -> Tensor:
        """From times [T + 1] to sigma [T]."""
        return torch.full_like(times[:-1], self.level)


def time_grid(steps: int) -> Tensor:
    """Return the times of a sampler in T even steps, from 1 down to 0: [T + 1]."""
    if steps < 1:
        raise ValueError(f"steps must be at least 1, got {steps!r}")
    return torch.linspace(1, 0, steps + 1)


def step_mean(x: Tensor, velocity: Tensor, t: Tensor, dt: Tensor, sigma: Tensor) -> Tensor:
    """Return where a step leads before its noise, which is ``sigma sqrt(-dt)`` in each dimension.

    ``x + (v - sigma^2 / 2 score) dt`` with ``score = grad log p_t(x) = -(x + (1 - t) v) / t``.
    The score's part takes away as much spread as the noise brings, so that for every sigma the
    samples at each t are distributed as the ODE's (sigma = 0), up to the error of finite steps.
    Flow-GRPO's and DanceGRPO's steps are this one, each with its own sigma.

    The velocity is shaped like x; t, above 0, is the time before the step; sigma is 0 for the ODE.
    """
    score = -(x + (1 - t) * velocity) / t
    return x + (velocity - sigma**2 / 2 * score) * dt


def gaussian_logprob(x: Tensor, mean: Tensor, std: Tensor) -> Tensor:
    """Return the mean over dimensions of ``log N(x; mean, std^2)``: [N].

    The sum would be the step's log-probability. With the mean, as both sources have it, the
    ratio p / p_old is the D-th root of the true one, and ``clip`` bounds that root: a clip of 1 / D
    lets the true ratio move by a factor of about e. Theirs of 1e-4 is for images of some ten
    thousand numbers; with D = 2 a rollout's second update would find nearly all steps clipped.
    """
    z = (x - mean) / std
    return _dimension_mean(-0.5 * z**2 - std.log() - 0.5 * math.log(2 * math.pi))


def gaussian_kl(mean: Tensor, other: Tensor, std: Tensor) -> Tensor:
    """Return the mean over dimensions of ``KL(N(mean, std^2) || N(other, std^2))``: [N].

    ``(mean - other)^2 / (2 std^2)``, a mean to fit :func:`gaussian_logprob`. With
    ``std = sigma sqrt(-dt)`` and :func:`step_mean` it is Flow-GRPO's ``-dt / 2 (sigma (1 - t) /
    (2 t) + 1 / sigma)^2 (v - v_other)^2``. Its code leaves out -dt: a beta of 0.04 there with 10
    even steps is 0.004 here, and with 40 steps 0.001. Here beta means the same for any T.
    """
    return _dimension_mean((mean - other) ** 2 / (2 * std**2))


def matching_loss(
    net: Velocity | nn.Module, data: Tensor, prompts: Tensor, generator: torch.Generator
) -> Tensor:
    """Return the mean square error of a velocity on samples: flow matching (arXiv 2210.02747).

    ``|net(x_t, t, prompt) - (e - x_0)|^2`` at a random t of each sample; its minimum is the
    velocity of the module's head. ``data`` are x_0; the
    generator decides t and e.
    """
    e = torch.randn(data.shape, generator=generator)
    t = torch.rand(len(data), generator=generator)
    at = t.view(-1, *[1] * (data.dim() - 1))
    found: Tensor = net((1 - at) * data + at * e, t, prompts)
    return (found - (e - data)).square().mean()


def _dimension_mean(values: Tensor) -> Tensor:
    return values.flatten(1).mean(dim=1)


def _require_positive(name: str, value: float) -> None:
    if not 0 < value < math.inf:
        raise ValueError(f"{name} must be above 0 and finite, got {value!r}")
