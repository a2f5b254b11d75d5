"""Several reward functions as one, so that a reply without a score keeps none."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

RewardFunction = Callable[..., Sequence[float | None]]


class CombinedReward:
    """The weighted sum of several reward functions; ``None`` if any of them gives ``None``.

    TRL adds up what a trainer's reward functions give and counts a ``None`` as 0 as long as
    another one has a value, so that an infrastructure failure would be punished. Given as the only
    reward function, this leaves such a reply out of its group.

    Args:
        functions: as TRL calls them, such as a spec's and your own; not coroutine functions.
        weights: one for each; 1 each by default.

    Raises:
        ValueError: there is no function, or not one weight for each.
        TypeError: one is a coroutine function.
    """

    def __init__(self, *functions: RewardFunction, weights: Sequence[float] | None = None) -> None:
        self.functions = functions
        self.weights = tuple(weights) if weights is not None else (1.0,) * len(functions)
        if not functions or len(self.weights) != len(functions):
            raise ValueError(
                "CombinedReward needs one function or more and one weight for each, got "
                f"{len(functions)} functions and {len(self.weights)} weights"
            )
        for function in functions:
            call = function if inspect.isroutine(function) else type(function).__call__
            if inspect.iscoroutinefunction(call):
                raise TypeError(
                    f"{_name(function)} is a coroutine function: await it in a plain function, "
                    "or give it to TRL by itself"
                )
        self.__name__ = "+".join(map(_name, functions))

    def __call__(self, **arguments: Any) -> list[float | None]:
        """Score completions; arguments and metrics are those of TRL's reward functions."""
        log: Callable[[str, float], None] | None = arguments.get("log_metric")
        columns = [function(**arguments) for function in self.functions]
        for function, column in zip(self.functions, columns, strict=True):
            known = [score for score in column if score is not None]
            if log is not None and known:
                log(f"rewards/{_name(function)}", sum(known) / len(known))
        return [self._total(row) for row in zip(*columns, strict=True)]

    def _total(self, scores: Sequence[float | None]) -> float | None:
        if any(score is None for score in scores):
            return None
        return float(sum(w * s for w, s in zip(self.weights, scores, strict=True) if s is not None))


def _name(function: Any) -> str:
    return str(getattr(function, "__name__", type(function).__name__))
