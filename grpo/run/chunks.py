"""The chunks in which a rollout is played."""

from __future__ import annotations

from ..config import GRPOConfig


def chunk_sizes(config: GRPOConfig, tasks: int) -> list[int]:
    """Return the number of tasks of each chunk of a rollout.

    Args:
        config: ``rollout_chunks`` of them, or as many as ``rows_per_batch`` asks for.
        tasks: of the rollout.
    """
    if config.rollout_chunks:
        count = min(config.rollout_chunks, tasks)
        return [tasks * (i + 1) // count - tasks * i // count for i in range(count)]
    most = max(1, config.rows_per_batch // config.group_size)
    return [min(most, tasks - start) for start in range(0, tasks, most)]
