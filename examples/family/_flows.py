"""What the studies of flows share: base models fitted to noisy captions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import torch
from torch import Tensor, nn

from assay.family.units import matching_loss
from assay.study import Trial

Net = TypeVar("Net", bound=nn.Module)


def fit(
    net: nn.Module,
    data: Callable[[int, torch.Generator], tuple[Tensor, Tensor]],
    steps: int,
    *,
    seed: int,
    batch: int = 512,
) -> None:
    """Train a velocity by flow matching, the learning rate falling from 2e-3 to 0."""
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.AdamW(net.parameters(), lr=2e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for _ in range(steps):
        loss = matching_loss(net, *data(batch, generator), generator)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
        optimizer.step()
        schedule.step()


def save_base(net: nn.Module, trial: Trial) -> None:
    """Write the seed's base model where its arms find it."""
    torch.save(net.state_dict(), trial.start / "base.pt")


def load_base(net: Net, trial: Trial) -> Net:
    """Read the seed's base model into a network of its kind."""
    net.load_state_dict(torch.load(trial.start / "base.pt", weights_only=True))
    return net
