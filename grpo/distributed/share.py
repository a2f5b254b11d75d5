"""Who takes what: contiguous rows to sample, groups of rows to train on.

Any cut is right, since random numbers are addressed by row and gradients are sums; these are
quick as well: rows that share a prompt stay together where there are groups for everyone.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby, pairwise
from typing import Any

from ..model.batch import Row, by_prompt


def cuts(prompts: Sequence[Any], size: int) -> list[tuple[int, int]]:
    """Ranges of equal neighbours for each process, as even as whole groups allow.

    Args:
        prompts: of each row; equal neighbours are a group. Where there are fewer groups than
            processes, groups are cut as well.
        size: processes.

    Returns:
        For each process its first row and the one after its last; together all rows, in order.
    """
    starts = [0]
    for _, copies in groupby(prompts):
        starts.append(starts[-1] + len(list(copies)))
    if len(starts) - 1 < size:
        starts = list(range(len(prompts) + 1))
    groups = len(starts) - 1
    edges = [starts[groups * rank // size] for rank in range(size + 1)]
    return list(pairwise(edges))


def deal(rows: Sequence[Row], size: int) -> list[list[Row]]:
    """Shares of about equally many tokens.

    The longest group is dealt first, each to the process that has least; rows of one group stay
    together unless there are fewer groups than processes.

    Args:
        rows: in any order.
        size: processes; one that gets nothing has an empty list.
    """
    groups = by_prompt(rows)
    if len(groups) < size:
        groups = [[row] for row in rows]
    shares: list[list[Row]] = [[] for _ in range(size)]
    loads = [0] * size
    for group in sorted(groups, key=_tokens, reverse=True):  # stable: the same on every run
        least = loads.index(min(loads))
        shares[least].extend(group)
        loads[least] += _tokens(group)
    return shares


def _tokens(group: Sequence[Row]) -> int:
    return len(group[0].prompt) + sum(len(row.reply) for row in group)
