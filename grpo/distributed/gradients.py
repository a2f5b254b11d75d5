"""Gradients of copies of one model, added up over processes."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from .world import World

BUCKET = 1 << 23
"""Numbers that travel at a time: 32 MiB of float32."""


@torch.no_grad()
def sum_gradients(parameters: Sequence[Tensor], world: World, *, bucket: int = BUCKET) -> None:
    """Put the sum over processes in place of each ``grad``.

    The sum and not the mean: the loss is divided by what all processes have together. A process
    that had no rows adds zeros; what has no gradient anywhere is left without one, so that
    weight decay does not move it.

    Args:
        parameters: the same ones in every process.
        world: the processes.
        bucket: numbers that travel at a time.
    """
    if world.size == 1:
        return
    trained = [p for p in parameters if p.requires_grad]
    if not trained:
        return
    used = torch.tensor([p.grad is not None for p in trained], dtype=torch.int32)
    used = used.to(trained[0].device)
    world.sum_(used)
    waiting: list[Tensor] = []
    for parameter, count in zip(trained, used.tolist(), strict=True):
        if not count:
            continue
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
        gradient = parameter.grad
        if waiting and (
            waiting[0].dtype != gradient.dtype
            or sum(g.numel() for g in waiting) + gradient.numel() > bucket
        ):
            _sum(waiting, world)
            waiting = []
        waiting.append(gradient)
    if waiting:
        _sum(waiting, world)


def _sum(gradients: Sequence[Tensor], world: World) -> None:
    flat = torch.cat([g.flatten() for g in gradients])
    world.sum_(flat)
    start = 0
    for gradient in gradients:
        end = start + gradient.numel()
        gradient.copy_(flat[start:end].view_as(gradient))
        start = end
