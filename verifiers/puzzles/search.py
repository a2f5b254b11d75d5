"""Breadth-first search."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

State = TypeVar("State", bound=Hashable)
Move = TypeVar("Move")


def shortest_path(
    start: State,
    is_goal: Callable[[State], bool],
    moves: Callable[[State], Iterable[tuple[Move, State]]],
) -> list[tuple[Move, State]] | None:
    """Return the fewest moves from a state to a goal, with the state after each.

    Args:
        start: the start state.
        is_goal: whether a state is a goal.
        moves: the moves from a state, with their results; of shortest paths, that of the
            earliest moves is returned.

    Returns:
        ``None`` if no moves lead to a goal.
    """
    came: dict[State, tuple[State, Move] | None] = {start: None}
    queue, goal = deque([start]), start if is_goal(start) else None
    while queue and goal is None:
        at = queue.popleft()
        for move, after in moves(at):
            if after not in came:
                came[after] = at, move
                queue.append(after)
                if is_goal(after):
                    goal = after
                    break
    if goal is None:
        return None
    path, at = [], goal
    while (step := came[at]) is not None:
        path.append((step[1], at))
        at = step[0]
    return path[::-1]
