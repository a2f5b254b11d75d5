"""A model whose weights, gradients and optimizer state are cut up between processes (FSDP2).

Decoding calls a model once for each token, so it needs whole weights where it runs; training calls
it a few times a step. Hence two forms of one model: the whole one, which everything but the update
sees, and a twin in shards, which is trained. During an update the whole one holds no memory; after
it the weights are gathered into it, once for each optimizer step.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, distribute_tensor

from ..model.batch import Batch
from ..model.forward import Forward
from ..model.precision import copy_model
from .world import World


class Shards:
    """The twin in shards.

    Every method is a collective: all processes call it together, or they wait for each other.

    Args:
        model: the whole one, the same in every process. Its parameters' storage is managed here
            from now on.
        forward: how log-probabilities are computed.
        world: the processes.
    """

    def __init__(self, model: Any, forward: Forward, world: World) -> None:
        self._whole = model
        self._trained = _Trained(copy_model(model), forward)
        mesh = init_device_mesh(model.device.type, (world.size,))
        blocks = set(model._no_split_modules or ())
        parts = [m for m in self._trained.modules() if type(m).__name__ in blocks]
        for part in (*parts, self._trained):
            sharded: Any = fully_shard(part, mesh=mesh)
            sharded.set_gradient_divide_factor(1.0)  # the loss is divided by what all have
            sharded.set_force_sum_reduction_for_comms(True)

    def forward(self, model: Any, batch: Batch, temperature: float) -> tuple[Tensor, Tensor]:
        """A :data:`~assay.grpo.model.forward.Forward` of the twin, whatever model is given."""
        found: tuple[Tensor, Tensor] = self._trained(batch, temperature)
        return found

    def parameters(self) -> list[Any]:
        """Of the twin, in the order of the whole model's."""
        return list(self._trained.parameters())

    @torch.no_grad()
    def split(self) -> None:
        """Put the whole model's weights into the twin."""
        for mine, whole in zip(self.parameters(), self._whole.parameters(), strict=True):
            mine.to_local().copy_(_part(whole.detach(), mine))

    def release(self) -> None:
        """Free the whole model's weights."""
        for whole in self._whole.parameters():
            whole.data = whole.data.new_empty(0)

    @torch.no_grad()
    def gather(self) -> None:
        """Put the twin's weights into the whole model."""
        for mine, whole in zip(self.parameters(), self._whole.parameters(), strict=True):
            whole.data = mine.detach().full_tensor()


def whole_state(optimizer: torch.optim.Optimizer, *, keep: bool) -> dict[str, Any]:
    """An optimizer's state with whole tensors, as one process alone would have it.

    A collective.

    Args:
        optimizer: over a twin's parameters.
        keep: whether this process wants it; the others help, and hold one tensor at a time.
    """
    found = optimizer.state_dict()
    state: dict[Any, dict[str, Any]] = {}
    for index, values in found["state"].items():
        state[index] = {}
        for name, value in values.items():
            whole = value.full_tensor() if isinstance(value, DTensor) else value
            if keep:
                state[index][name] = whole.cpu() if isinstance(whole, Tensor) else whole
    return {**found, "state": state}


def load_whole_state(optimizer: torch.optim.Optimizer, saved: Mapping[str, Any]) -> None:
    """Load what :func:`whole_state` gave, in any number of processes: each takes its part."""
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    state = {
        index: {
            name: _like(value, parameters[index]) if isinstance(value, Tensor) else value
            for name, value in values.items()
        }
        for index, values in saved["state"].items()
    }
    optimizer.load_state_dict({**saved, "state": state})


class _Trained(nn.Module):
    """The twin and its forward as one module, so that FSDP's hooks see the whole computation.

    The forwards call parts of a model, its head's weight among them; inside this module's call
    the weights that belong to no block are whole.
    """

    def __init__(self, model: Any, forward: Forward) -> None:
        super().__init__()
        self.model, self._forward = model, forward

    def forward(self, batch: Batch, temperature: float) -> tuple[Tensor, Tensor]:
        return self._forward(self.model, batch, temperature)


def _like(value: Tensor, parameter: Any) -> Tensor:
    if value.shape != parameter.shape or not value.dim():  # such as a count of steps
        return value
    return distribute_tensor(
        value.to(parameter.device), parameter.device_mesh, parameter.placements, src_data_rank=None
    )


def _part(value: Tensor, parameter: Any) -> Tensor:
    """This process's part of a whole tensor."""
    return distribute_tensor(
        value, parameter.device_mesh, parameter.placements, src_data_rank=None
    ).to_local()
