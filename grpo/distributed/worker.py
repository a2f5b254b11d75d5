"""What one process does of a step: sample its rows, read its rows, train on its rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import torch

from ...envs import Completion, Conversation
from ..config import GRPOConfig
from ..model.batch import Batch, Row, by_prompt, micro_batches
from ..model.forward import Forward
from ..model.passes import Reading, read_rows
from ..sampling.policy import ModelPolicy
from ..update import accumulate_gradient, teaching
from .gradients import sum_gradients
from .shards import Shards, load_whole_state, whole_state
from .world import World


class Worker:
    """One process's model, optimizer and share of the work.

    Args:
        model: a causal LM.
        tokenizer: its tokenizer.
        forward: how log-probabilities are computed.
        config: the settings.
        world: the processes.
        make_optimizer: makes the optimizer of the parameters that are trained.
        shard: whether weights, gradients and optimizer state are cut up between processes.

    Raises:
        ValueError: the model is on the GPU of another process.
    """

    DROPPABLE = ("sample", "read")

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        forward: Forward,
        config: GRPOConfig,
        world: World,
        *,
        make_optimizer: Callable[
            [Sequence[torch.nn.Parameter]], torch.optim.Optimizer
        ] = torch.optim.AdamW,
        shard: bool = False,
    ) -> None:
        _require_own_device(model, world)
        self.model, self._tokenizer, self._forward = model, tokenizer, forward
        self._config, self._world = config, world
        self.reference: Any = None
        self._released = False
        self._shards = Shards(model, forward, world) if shard and world.size > 1 else None
        of = model if self._shards is None else self._shards
        self._trained = [p for p in of.parameters() if p.requires_grad]
        self.optimizer = make_optimizer(self._trained)

    @property
    def tasks(self) -> dict[str, Callable[..., Any]]:
        """What a :class:`~assay.grpo.distributed.team.Team` can ask for."""
        return {
            "sample": self.sample,
            "read": self.read,
            "accumulate": self.accumulate,
            "reduce": self.reduce,
            "step": self.step,
            "be_whole": self.be_whole,
            "gather_optimizer": self.gather_optimizer,
            "refresh_reference": self.refresh_reference,
        }

    @property
    def sharded(self) -> bool:
        """Whether this process has but a part of the weights and of the optimizer's state."""
        return self._shards is not None

    def agree(self) -> None:
        """Start from the main process's weights. All processes call it together."""
        for parameter in self.model.parameters():
            self._world.copy_(parameter.data)
        if self._shards is not None:
            self._shards.split()

    def sample(
        self,
        settings: dict[str, Any],
        seed: int,
        first_row: int,
        conversations: Sequence[Conversation],
        prefixes: Sequence[Sequence[int]],
    ) -> list[Completion]:
        """Answer conversations, of which the first is row ``first_row`` of all."""
        if not conversations:
            return []
        policy = ModelPolicy(self.model, self._tokenizer, seed=seed, **settings)
        policy.reseed(seed, first_row)
        return policy.extend(conversations, prefixes)

    def read(self, rows: Sequence[Row], of_reference: bool) -> list[Reading]:
        """Read rows under the policy or the reference."""
        with self.reference.reading() if of_reference else nullcontext(self.model) as model:
            return read_rows(
                model,
                self._forward,
                rows,
                temperature=self._config.temperature,
                budget=self._config.tokens_per_batch,
            )

    def passes(self, rows: Sequence[Row]) -> int:
        """Forward and backward passes that :meth:`accumulate` needs for some rows."""
        groups = by_prompt(teaching(rows, self._config))
        return len(micro_batches(groups, budget=self._config.tokens_per_batch))

    def accumulate(self, rows: Sequence[Row], denominator: float, passes: int) -> dict[str, float]:
        """Take the gradient of the loss over some rows.

        Args:
            rows: of this process.
            denominator: of the loss, over the rows of all processes.
            passes: that the busiest process needs. In shards each pass is a collective, so the
                others make up for theirs.
        """
        self.optimizer.zero_grad(set_to_none=True)
        if self._shards is None:
            return accumulate_gradient(
                self.model, self._forward, rows, self._config, denominator=denominator
            )
        self._shards.release()
        self._released = True
        forward = self._shards.forward
        sums = accumulate_gradient(self.model, forward, rows, self._config, denominator=denominator)
        for _ in range(passes - self.passes(rows)):
            nothing = Batch.of([[_NOTHING]], device=self.model.device)
            logprobs, _ = forward(self.model, nothing, 1.0)
            torch.autograd.backward(logprobs.sum() * 0.0)
        return sums

    def reduce(self) -> float:
        """Add the gradients up over processes, and cut them to ``max_grad_norm``.

        Returns:
            Their length before.
        """
        if self._shards is None:
            sum_gradients(self._trained, self._world)
        norm: Any = torch.nn.utils.clip_grad_norm_(self._trained, self._config.max_grad_norm)
        return float(norm.full_tensor() if self._shards is not None else norm)

    def step(self, rate: float) -> None:
        """Let the optimizer take a step at this learning rate."""
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.optimizer.step()
        self.be_whole()

    def be_whole(self) -> None:
        """Have the model's weights in one piece; in shards a collective after an update."""
        if self._shards is not None and self._released:
            self._shards.gather()
            self._released = False

    def gather_optimizer(self) -> dict[str, Any] | None:
        """The optimizer's state in one piece, at the main process."""
        if self._shards is None:
            return self.optimizer.state_dict() if self._world.is_main else None
        found = whole_state(self.optimizer, keep=self._world.is_main)
        return found if self._world.is_main else None

    def load_optimizer(self, saved: dict[str, Any]) -> None:
        """Take up a state that was saved in one piece."""
        if self._shards is None:
            self.optimizer.load_state_dict(saved)
        else:
            load_whole_state(self.optimizer, saved)

    def refresh_reference(self) -> None:
        """Make the reference the policy as it is now."""
        self.reference.refresh(self.model)


def _require_own_device(model: Any, world: World) -> None:
    if world.size == 1 or model.device.type != "cuda":
        return
    mine = torch.cuda.current_device()
    if model.device.index != mine:
        raise ValueError(
            f"process {world.rank} has cuda:{mine} for its own, and its model is on "
            f"{model.device}: call World.join() before load_model(..., device='cuda')"
        )


_NOTHING = Row((0,), (0,), (True,), (0.0,), (0.0,))
