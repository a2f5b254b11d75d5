"""Processes that train together: each runs the same loop on its share of the work (SPMD).

Each process plays its share of a step's tasks, and all then hold the groups of all. Each takes the
gradient of its share of the rows, gradients are added up, and every process takes the same
optimizer step. With ``shard`` the trained weights, gradients and optimizer state are cut up between
processes (FSDP2, ``fully_shard``).

Sampling calls a model once for each token and needs whole weights where it runs; training calls it
a few times a step. Hence a sharded model has two forms: the whole one, which everything but the
update sees, and a twin in shards, which is trained. The whole one holds no memory in an update.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from datetime import timedelta
from typing import Any, Self, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import distribute_tensor

from .batch import Batch
from .interrupt import Signals, Terminated
from .logprobs import Forward

T = TypeVar("T")
TIMEOUT = "ASSAY_TIMEOUT_S"
"""Environment variable: seconds that a process waits for another, 1800 by default."""


class ProcessLost(RuntimeError):
    """Another process has died, or has not answered in time."""


class ProcessFailed(RuntimeError):
    """Another process has raised; its own output has the traceback."""


class World:
    """This process among those that train together; made by :meth:`single` or :meth:`join`.

    Every method but :meth:`leave` is a collective: all processes call it, or they wait for each
    other. Tensors travel by torch's default process group, objects by gloo as pickles: between
    processes of one run, which trust each other.

    Attributes:
        rank: of this process, in 0..size - 1. Process 0 is the main one.
        size: how many there are.
        timeout_s: how long one waits for another.
        lost: a process did not answer; no collective can be called any more.
        signals: held back but in work that may be broken off.
    """

    def __init__(self, rank: int, size: int, timeout_s: float = 0.0, objects: Any = None) -> None:
        self.rank, self.size, self.timeout_s = rank, size, timeout_s
        self._objects = objects
        self.lost = False
        self.signals: Signals | None = None

    @classmethod
    def single(cls) -> Self:
        """Return a world of one process."""
        return cls(0, 1)

    @classmethod
    def join(cls) -> Self:
        """Join the processes that ``torchrun`` or ``accelerate launch`` has started; else be alone.

        One waits for another for as many seconds as the environment variable ``ASSAY_TIMEOUT_S``
        says, or 1800: longer than the slowest verifier makes a rollout wait. On a machine with
        GPUs ``cuda`` means the one of this process from here on: call it before a model is loaded.

        Raises:
            ValueError: the environment variable is no number above 0.
            ProcessLost: the others did not come.
        """
        if int(os.environ.get("WORLD_SIZE", "1")) == 1:
            return cls.single()
        from accelerate import PartialState

        text = os.environ.get(TIMEOUT, "1800")
        try:
            timeout_s = float(text)
        except ValueError:
            timeout_s = 0.0
        if not timeout_s > 0:
            raise ValueError(f"{TIMEOUT} must be a number of seconds above 0, got {text!r}")
        limit = timedelta(seconds=timeout_s)
        world = cls(int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), timeout_s)
        with world._waiting("start"):
            PartialState(cpu=not torch.cuda.is_available(), timeout=limit)
            world._objects = dist.new_group(backend="gloo", timeout=limit)
        return world

    def leave(self) -> None:
        """Close the connections; no collective can be called any more."""
        if self.size > 1 and dist.is_initialized():
            from accelerate import PartialState

            self._objects = None
            dist.destroy_process_group()
            PartialState._reset_state()  # else a later join would find this one

    @property
    def is_main(self) -> bool:
        """Whether this is process 0, which writes and shows."""
        return self.rank == 0

    def sum_(self, tensor: Tensor) -> None:
        """Put the sum over all processes in place of each one's tensor."""
        if self.size > 1:
            with self._waiting("add up tensors"):
                dist.all_reduce(tensor)

    def copy_(self, tensor: Tensor) -> None:
        """Put the main process's tensor in place of each one's."""
        if self.size > 1:
            with self._waiting("copy a tensor"):
                dist.broadcast(tensor, src=0)

    def gather(self, value: T) -> list[T]:
        """Return the values of all processes, in their order, in all of them."""
        if self.size == 1:
            return [value]
        found: list[Any] = [None] * self.size
        with self._waiting("exchange results"):
            dist.all_gather_object(found, value, group=self._objects)
        return found

    def on_all(self, work: Callable[[], T], *, breakable: bool = False) -> list[T]:
        """Run ``work`` in each process, without collectives; return all results in all of them.

        Ctrl-C and SIGTERM may break off what is ``breakable``.

        Raises:
            ProcessFailed: it raised in another process. Here the error itself is raised.
            KeyboardInterrupt, Terminated: another process was stopped.
        """
        open_to = self.signals.at_once if self.signals and breakable else nullcontext
        if self.size == 1:
            with open_to():
                return [work()]
        try:
            with open_to():
                mine: tuple[str, Any] = "done", work()
        except (ProcessLost, ProcessFailed):
            raise
        except BaseException as error:
            self.gather((type(error).__name__, f"{type(error).__name__}: {error}"))
            raise
        found = self.gather(mine)
        for kind in (KeyboardInterrupt, Terminated):
            if any(name == kind.__name__ for name, _ in found):
                raise kind
        for rank, (name, value) in enumerate(found):
            if name != "done":
                raise ProcessFailed(f"process {rank} of {self.size} failed: {value}")
        return [value for _, value in found]

    def on_main(self, work: Callable[[], T], *, breakable: bool = False) -> T:
        """Run ``work`` in the main process only; return its result in all."""
        found = self.on_all(lambda: [work()] if self.is_main else [], breakable=breakable)
        return found[0][0]

    @contextmanager
    def _waiting(self, what: str) -> Iterator[None]:
        try:
            yield
        except RuntimeError as error:  # what torch's backends raise
            self.lost = True
            raise ProcessLost(
                f"process {self.rank} of {self.size} waited for the others to {what}, and they did "
                f"not come: one has died, or was silent for {self.timeout_s:g} s ({TIMEOUT}). "
                f"Its own output says why; mend that and resume. "
                f"({str(error).splitlines()[0][:200]})"
            ) from error


@torch.no_grad()
def sum_gradients(parameters: Sequence[Tensor], world: World) -> None:
    """Put the sum over processes in place of each ``grad``.

    The sum and not the mean: the loss is divided by what all processes have together. A process
    that had no rows adds zeros; what has no gradient anywhere is left without one, so that
    weight decay does not move it.
    """
    trained = [p for p in parameters if p.requires_grad]
    if world.size == 1 or not trained:
        return
    held = [p.grad is not None for p in trained]
    used = torch.tensor(held, dtype=torch.int32, device=trained[0].device)
    world.sum_(used)
    for parameter, count in zip(trained, used.tolist(), strict=True):
        if count:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
            world.sum_(parameter.grad)


class Shards:
    """A model's twin in shards (FSDP2), which is trained in its place.

    Every method is a collective. The storage of the whole model's parameters, the same in every
    process, is managed here from now on.
    """

    def __init__(self, model: Any, forward: Forward, world: World) -> None:
        self._whole, self._released = model, False
        shells = {  # the twin's parameters begin on the meta device
            id(p): nn.Parameter(p.detach().to("meta"), requires_grad=p.requires_grad)
            for p in model.parameters()
        }
        self._trained = _Trained(copy.deepcopy(model, dict(shells)), forward)
        mesh = init_device_mesh(model.device.type, (world.size,))
        blocks = set(model._no_split_modules or ())
        parts = [m for m in self._trained.modules() if type(m).__name__ in blocks]
        for part in (*parts, self._trained):
            sharded: Any = fully_shard(part, mesh=mesh)
            sharded.set_gradient_divide_factor(1.0)  # the loss is divided by what all have
            sharded.set_force_sum_reduction_for_comms(True)
        self._trained.to_empty(device=model.device)  # of the weights, this process's part
        for mine, whole in zip(self._trained.model.buffers(), model.buffers(), strict=True):
            mine.copy_(whole)
        self.split()

    def forward(self, model: Any, batch: Batch, temperature: float) -> tuple[Tensor, Tensor]:
        """Run the forward on the twin; a :data:`~assay.grpo.logprobs.Forward`."""
        found: tuple[Tensor, Tensor] = self._trained(batch, temperature)
        return found

    def parameters(self) -> list[Any]:
        """Return the twin's parameters, in the order of the whole model's."""
        return list(self._trained.parameters())

    @torch.no_grad()
    def split(self) -> None:
        """Put the whole model's weights into the twin."""
        for mine, whole in zip(self.parameters(), self._whole.parameters(), strict=True):
            part = distribute_tensor(
                whole.detach(), mine.device_mesh, mine.placements, src_data_rank=None
            )
            mine.to_local().copy_(part.to_local())

    def release(self) -> None:
        """Free the whole model's weights, for an update."""
        self._released = True
        for whole in self._whole.parameters():
            whole.data = whole.data.new_empty(0)

    @torch.no_grad()
    def gather(self) -> None:
        """Put the twin's weights into the whole model, if an update has freed them."""
        if self._released:
            for mine, whole in zip(self.parameters(), self._whole.parameters(), strict=True):
                whole.data = mine.detach().full_tensor()
        self._released = False


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
