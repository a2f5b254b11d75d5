"""TRL's reward function: an environment's rubric, and its parts in TRL's log."""

from __future__ import annotations

import inspect
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from numbers import Real
from typing import Any

from ...verifiers import Verdict
from ...verifiers.verifier import same_length
from ..episode import Episode
from ..policy import Completion
from ..text_env import TextEnv
from .portable import Portable
from .tools import judged, named_tasks, reply_of


class EnvironmentReward:
    """A reward function for TRL, by an environment's rubric.

    It returns the rubric's total; the parts and statuses go to TRL's logs. After an infrastructure
    failure it returns ``None``, which TRL excludes from the group's statistics.

    It is pickled as the environment's id and arguments, so TRL may use it in another process.
    """

    def __init__(self, environment: Portable) -> None:
        self.environment = environment
        # TRL names its columns by this.
        self.__name__ = self.environment.name

    @property
    def env(self) -> TextEnv:
        """The environment, made on first use in each process."""
        return self.environment.at()

    def __call__(
        self,
        *,
        completions: Sequence[str | Sequence[Mapping[str, Any]]],
        assay_task: Sequence[int] | None = None,
        assay_split: Sequence[str | None] | None = None,
        assay_episode: Sequence[Episode] | None = None,
        environments: Sequence[Any] | None = None,
        log_metric: Callable[[str, float], None] | None = None,
        log_extra: Callable[[str, list[Any]], None] | None = None,
        **_: Any,
    ) -> list[float | None]:
        """Judge completions, standard or conversational.

        Args:
            completions: TRL's: texts, or lists of messages of which the policy's last is
                judged. A turn without text, such as a lone tool call, is an empty reply.
            assay_task: the data set's column of task indices.
            assay_split: the data set's column of splits, if it has one.
            assay_episode: what :class:`EnvironmentRollout` played and judged; nothing is
                judged twice.
            environments: TRL's, one for each completion, if there are tools.
            log_metric: TRL's; gets the mean of each part, the share of each status and, of
                episodes of several turns, how many they took and the share that was cut off.
            log_extra: TRL's; gets each status and reason.

        Returns:
            One total for each completion, ``None`` if there is none.
        """
        episodes: Sequence[Episode] = ()
        if assay_episode is not None:
            episodes = assay_episode
        elif environments is not None:
            episodes = judged(environments, completions)
        verdicts = [episode.verdict for episode in episodes] or self._judge(
            completions, named_tasks(assay_task), assay_split
        )
        if log_extra is not None:
            log_extra("status", [v.status.value for v in verdicts])
            log_extra("reason", [v.reason for v in verdicts])
        if log_metric is not None:
            for name, value in {**verdict_metrics(verdicts), **_of_episodes(episodes)}.items():
                log_metric(name, value)
        return [v.score for v in verdicts]

    def _judge(
        self,
        completions: Sequence[str | Sequence[Mapping[str, Any]]],
        tasks: Sequence[int],
        splits: Sequence[str | None] | None,
    ) -> list[Verdict]:
        """Let each split's environment take the replies as its episodes' only turns."""
        same_length(completions, tasks)
        found: dict[int, Verdict] = {}
        of_row = splits or [None] * len(tasks)
        for split in dict.fromkeys(of_row):
            rows = [row for row, its_split in enumerate(of_row) if its_split == split]
            env = self.environment.at(split)
            states = [env.begin(env.task(tasks[row])) for row in rows]
            env.advance(states, [Completion(reply_of(completions[row])) for row in rows])
            found |= zip(rows, env.verdicts(states), strict=True)
        return [found[row] for row in range(len(tasks))]


def verdict_metrics(verdicts: Sequence[Verdict]) -> dict[str, float]:
    """Return the mean of each part, over those that have it, and the share of each status."""
    found: dict[str, float] = {}
    for name in sorted({name for v in verdicts for name in v.parts}):
        scores = [s for v in verdicts if (s := v.parts.get(name)) is not None]
        if scores:
            found[f"parts/{name}"] = sum(scores) / len(scores)
    for status, times in sorted(Counter(v.status for v in verdicts).items()):
        found[f"status/{status.value}"] = times / len(verdicts)
    return found


def _of_episodes(episodes: Sequence[Episode]) -> dict[str, float]:
    """Return the mean number of the policy's turns and the share of truncated episodes."""
    if not episodes:
        return {}
    turns = [sum(m["role"] == "assistant" for m in e.turns) for e in episodes]
    return {
        "episode/turns": sum(turns) / len(turns),
        "episode/truncated": sum(e.truncated for e in episodes) / len(episodes),
    }


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
        TypeError: one is a coroutine function, or no function.
    """

    def __init__(self, *functions: RewardFunction, weights: Sequence[float] | None = None) -> None:
        self.functions = functions
        self.weights = tuple(weights) if weights is not None else (1.0,) * len(functions)
        if not functions or len(self.weights) != len(functions):
            raise ValueError(
                "CombinedReward needs one function or more and one weight for each, got "
                f"{len(functions)} functions and {len(self.weights)} weights"
            )
        if not all(isinstance(w, Real) and math.isfinite(w) for w in self.weights):
            raise ValueError(f"weights must be finite numbers, got {list(self.weights)!r:.80}")
        for function in functions:
            if not callable(function):
                raise TypeError(f"use CombinedReward(one, other), got {function!r:.80}")
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
        columns = [_scores(function, function(**arguments)) for function in self.functions]
        for function, column in zip(self.functions, columns, strict=True):
            known = [score for score in column if score is not None]
            if log is not None and known:
                log(f"rewards/{_name(function)}", sum(known) / len(known))
            if len(column) != len(columns[0]):
                raise ValueError(
                    f"{_name(function)} must give one reward for each completion, got "
                    f"{len(column)} where {_name(self.functions[0])} gave {len(columns[0])}"
                )
        return [self._total(row) for row in zip(*columns, strict=True)]

    def _total(self, scores: Sequence[float | None]) -> float | None:
        if any(score is None for score in scores):
            return None
        return float(sum(w * s for w, s in zip(self.weights, scores, strict=True) if s is not None))


def _scores(function: RewardFunction, column: Any) -> list[float | None]:
    """Return what a function gave as numbers; NaN is ``None``, as it is to TRL.

    An infinite reward would make every advantage of its group NaN.
    """
    try:
        found = [None if score is None else float(score) for score in column]
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"{_name(function)} must give a list of numbers or None, got {column!r:.80}"
        ) from error
    if any(score is not None and math.isinf(score) for score in found):
        raise ValueError(f"{_name(function)} must give finite rewards, got {column!r:.80}")
    return [None if score is None or math.isnan(score) else score for score in found]


def _name(function: Any) -> str:
    return str(getattr(function, "__name__", type(function).__name__))
