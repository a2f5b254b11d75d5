"""One optimizer step: the gradient of the loss over some rows, by all processes.

Shapes: B rows, P prompts, G replies to each, T reply tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

import torch

from .batch import Batch, Row, balance_rows, group_by_prompt, micro_batches
from .config import GRPOConfig
from .distributed import Shards, World, sum_gradients
from .draw import derive_seed
from .logprobs import Forward, TokenScores, read_rows
from .loss import BOUNDS, loss_denominator, merge_sums, policy_loss, policy_sums


def minibatches(rows: Sequence[Row], config: GRPOConfig, step: int) -> list[list[Row]]:
    """Cut mu passes over the rows into optimizer steps of whole groups.

    There are as many as the config says, or as there are groups of different prompts.
    """
    groups = group_by_prompt(rows)
    count = min(config.minibatches, len(groups))
    parts: list[list[Row]] = []
    for iteration in range(config.num_iterations):
        seed = derive_seed(config.seed, step, iteration)
        order = torch.randperm(len(groups), generator=torch.Generator().manual_seed(seed))
        for chosen in order.tensor_split(count):
            parts.append([row for i in sorted(chosen.tolist()) for row in groups[i]])
    return parts


def rows_with_gradient(rows: Sequence[Row], config: GRPOConfig) -> list[Row]:
    """Select rows with a gradient: they have an advantage, or the loss has a term without one.

    Leaving the others out is exact: their gradient is zero, whatever the weights.
    """
    always = config.penalised or config.entropy_bonus != 0
    return [row for row in rows if row.teaches or (always and any(row.written))]


def denominator_of(rows: Sequence[Row], config: GRPOConfig) -> float:
    """Count what the loss over all rows of an optimizer step is divided by."""
    lengths = torch.tensor([row.length for row in rows])
    return loss_denominator(lengths, average=config.loss, max_tokens=config.max_new_tokens)


def accumulate_gradient(
    model: Any,
    forward: Forward,
    rows: Sequence[Row],
    config: GRPOConfig,
    *,
    denominator: float | None = None,
) -> dict[str, float]:
    """Add the gradient of the loss over ``rows`` to the model's.

    Rows without a gradient are left out (:func:`rows_with_gradient`); the denominator counts them,
    and is given if these are not all rows of the optimizer step. With a KL penalty they hold their
    reference.

    Returns:
        ``loss`` (already a mean), ``entropy`` (its sum over the tokens that were computed), and
        what :func:`~assay.grpo.loss.policy_sums` gives.
    """
    if denominator is None:
        denominator = denominator_of(rows, config)
    sums: dict[str, float] = {}
    teaching = group_by_prompt(rows_with_gradient(rows, config))
    for groups in micro_batches(teaching, budget=config.tokens_per_batch):
        batch = Batch.of(groups, device=model.device)
        logprobs, entropy = forward(model, batch, config.temperature)
        reference = None if batch.reference is None else batch.reference.flatten(0, 1)
        given = logprobs, batch.old_logprobs, batch.advantages, batch.mask
        p, old, advantages, mask = (x.flatten(0, 1) for x in given)  # [P, G, T] to [B, T]
        loss = policy_loss(
            p,
            old,
            advantages,
            mask,
            config,
            denominator=denominator,
            reference_logprobs=reference,
            entropy=entropy.flatten(0, 1),
        )
        loss.backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
        found = policy_sums(p, old, advantages, mask, config, reference_logprobs=reference)
        own = {"loss": float(loss.detach()), "entropy": float(entropy.detach().sum())}
        merge_sums(sums, own | found)
    return sums


class Updater:
    """A model's optimizer and its gradient, over all processes; every method is a collective.

    From here on each process's model has the main process's weights. With ``shard`` trained
    weights, gradients and optimizer state are cut up between processes.

    Raises:
        ValueError: the model is on the GPU of another process.
    """

    def __init__(
        self,
        model: Any,
        forward: Forward,
        config: GRPOConfig,
        world: World,
        *,
        shard: bool = False,
    ) -> None:
        several = world.size > 1 and model.device.type == "cuda"
        if several and model.device.index != (mine := torch.cuda.current_device()):
            raise ValueError(
                f"process {world.rank} has cuda:{mine} for its own, and its model is on "
                f"{model.device}: call World.join() before load_model(..., device='cuda')"
            )
        self._model, self._forward, self._config, self._world = model, forward, config, world
        for parameter in model.parameters():
            world.copy_(parameter.data)
        self._shards = Shards(model, forward, world) if shard and world.size > 1 else None
        of = self._shards or model
        self._trained = [p for p in of.parameters() if p.requires_grad]
        self.optimizer: torch.optim.Optimizer = torch.optim.AdamW(
            self._trained, config.learning_rate, weight_decay=config.weight_decay, fused=True
        )

    def gradient(self, rows: Sequence[Row]) -> tuple[dict[str, float], float]:
        """Take the gradient of the loss over the rows of an optimizer step.

        Returns:
            The sums of :func:`accumulate_gradient` over all processes, and the gradient's length
            before it is cut to ``max_grad_norm``.
        """
        config, denominator = self._config, denominator_of(rows, self._config)
        shares = balance_rows(rows_with_gradient(rows, config), self._world.size)
        mine, model, forward = shares[self._world.rank], self._model, self._forward
        self.optimizer.zero_grad(set_to_none=True)
        if self._shards is not None:
            self._shards.release()
            forward = self._shards.forward
        sums = accumulate_gradient(model, forward, mine, config, denominator=denominator)
        if self._shards is not None:  # each pass is a collective: make up for the busiest's
            budget = config.tokens_per_batch
            passes = [len(micro_batches(group_by_prompt(part), budget=budget)) for part in shares]
            for _ in range(max(passes) - passes[self._world.rank]):
                logprobs, _ = forward(model, Batch.of([[_NOTHING]], device=model.device), 1.0)
                torch.autograd.backward(logprobs.sum() * 0.0)
        else:
            sum_gradients(self._trained, self._world)
        total: dict[str, float] = {}
        for found in self._world.gather(sums):
            merge_sums(total, found)
        norm: Any = torch.nn.utils.clip_grad_norm_(self._trained, config.max_grad_norm)
        return total, float(norm.full_tensor() if self._shards is not None else norm)

    def step(self, rate: float) -> None:
        """Let the optimizer take a step at this learning rate, and free the gradient."""
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)  # a rollout needs the memory
        self.restore()

    def restore(self) -> None:
        """Make the model's weights whole again, if a gradient has freed them."""
        if self._shards is not None:
            self._shards.gather()

    def split(self) -> None:
        """Train from the model's weights as they are now, in all processes alike."""
        if self._shards is not None:
            self._shards.split()

    def read(self, rows: Sequence[Row]) -> list[TokenScores]:
        """Read rows under the policy."""
        world, config = self._world, self._config
        shares = [list(chain(*group_by_prompt(rows)[i :: world.size])) for i in range(world.size)]
        mine = read_rows(
            self._model,
            self._forward,
            shares[world.rank],
            temperature=config.temperature,
            budget=config.tokens_per_batch,
        )
        pairs = zip(chain(*shares), chain(*world.gather(mine)), strict=True)
        found = {id(row): reading for row, reading in pairs}
        return [found[id(row)] for row in rows]


_NOTHING = Row((0,), (0,), (True,), (0.0,), (0.0,))


def update_metrics(sums: dict[str, float], norms: list[float], rate: float) -> dict[str, float]:
    """Return means over tokens and optimizer steps; NaN if no step was taken."""
    tokens, updates = sums.get("tokens", 0.0), len(norms)
    row = {"lr": rate, "updates": updates, "tokens/trained": tokens}
    means = ("loss", "grad_norm", "ratio", "entropy", "min_ratio", "max_ratio", "clip_fraction")
    row |= dict.fromkeys(means, float("nan"))
    if updates:
        row |= {"loss": sums["loss"] / updates, "grad_norm": sum(norms) / updates}
    if tokens:
        row |= {name: sums[name] for name in ("min_ratio", "max_ratio")}
        row |= {name: sums[name] / tokens for name in ("ratio", "entropy")}
        cut = {b: sums[f"clipped_{b}"] / tokens for b in BOUNDS}
        row |= {f"clip_fraction/{b}": share for b, share in cut.items()}
        row["clip_fraction"] = sum(cut.values())
        if "kl_k3" in sums:
            row |= {"kl": sums["kl_k3"] / tokens, "kl/k1": sums["kl_k1"] / tokens}
    return row
