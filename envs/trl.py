"""Any environment in TRL's GRPOTrainer, as its data set and reward function."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .registry import make, spec
from .text_env import TextEnv

if TYPE_CHECKING:
    from datasets import Dataset


class EnvironmentReward:
    """A reward function of TRL's that asks an environment's rubric.

    It gives the rubric's total; the parts and statuses go to TRL's logs. Where a fault of ours
    leaves no score it gives ``None``, which TRL leaves out of the group's statistics.

    It pickles as the environment's id and arguments, so TRL may move it to another process.
    """

    def __init__(self, env_id: str, kwargs: Mapping[str, Any]) -> None:
        self.env_id, self.kwargs = env_id, dict(kwargs)
        # TRL names its columns by this.
        self.__name__ = env_id.replace("/", "_").replace("-", "_")
        self._env: TextEnv | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "env_id": spec(self.env_id).address, "_env": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        # The address has another process import what registers the id.
        self.__dict__.update({**state, "env_id": spec(state["env_id"]).id})

    @property
    def env(self) -> TextEnv:
        """The environment, made on first use in each process."""
        if self._env is None:
            self._env = make(self.env_id, **self.kwargs)
        return self._env

    def __call__(
        self,
        *,
        completions: Sequence[str | Sequence[Mapping[str, Any]]],
        assay_task: Sequence[int],
        log_metric: Callable[[str, float], None] | None = None,
        log_extra: Callable[[str, list[Any]], None] | None = None,
        **_: Any,
    ) -> list[float | None]:
        """Judge completions, standard or conversational.

        Args:
            completions: TRL's: texts, or lists of messages of which the policy's last is
                judged. A turn without text, such as a lone tool call, is an empty reply.
            assay_task: the data set's column of task indices.
            log_metric: TRL's; gets the mean of each part and the share of each status.
            log_extra: TRL's; gets each status and reason.

        Returns:
            One total for each completion, ``None`` where there is none.
        """
        replies = [c if isinstance(c, str) else _reply(c) for c in completions]
        references = [self.env.task(int(i)).reference for i in assay_task]
        verdicts = self.env.rubric.verify_many(replies, references)
        if log_extra is not None:
            log_extra("status", [v.status.value for v in verdicts])
            log_extra("reason", [v.reason for v in verdicts])
        if log_metric is not None:
            for name in sorted({name for v in verdicts for name in v.parts}):
                scores = [s for v in verdicts if (s := v.parts.get(name)) is not None]
                if scores:
                    log_metric(f"parts/{name}", sum(scores) / len(scores))
            for status, times in sorted(Counter(v.status for v in verdicts).items()):
                log_metric(f"status/{status.value}", times / len(verdicts))
        return [v.score for v in verdicts]


def _reply(messages: Sequence[Mapping[str, Any]]) -> str:
    """Text of the policy's last turn: what a tool or the environment said is not its answer."""
    turns = [m.get("content") for m in messages if m.get("role") == "assistant"]
    content = turns[-1] if turns else None
    if isinstance(content, list):
        content = "".join(part.get("text") or "" for part in content)
    return content or ""


@dataclass(frozen=True)
class TRLSpec:
    """What GRPOTrainer needs to train on an environment: ``GRPOTrainer(..., **spec.kwargs())``.

    Attributes:
        env_id: which environment.
        size: rows of the data set.
        seed: order of the tasks, as in :func:`assay.envs.rollout`.
        env_kwargs: the environment's own arguments.

    Raises:
        ValueError: ``size`` is below 1.
    """

    env_id: str
    size: int = 1000
    seed: int = 0
    env_kwargs: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.size < 1:
            raise ValueError(f"size must be at least 1, got {self.size}")

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "env_id": spec(self.env_id).address}

    def __setstate__(self, state: dict[str, Any]) -> None:
        # The address has another process import what registers the id.
        self.__dict__.update({**state, "env_id": spec(state["env_id"]).id})

    @property
    def train_dataset(self) -> Dataset:
        """Conversational prompts, and which task each is.

        Raises:
            ImportError: the datasets package is missing.
        """
        try:
            from datasets import Dataset
        except ImportError as error:
            raise ImportError("a data set for TRL needs: pip install 'assay[trl]'") from error
        source = make(self.env_id, **self.env_kwargs).source
        indices = [source.schedule(i, self.seed) for i in range(self.size)]
        return Dataset.from_dict(
            {
                "prompt": [[dict(m) for m in source.task(i).messages] for i in indices],
                "assay_task": indices,
            }
        )

    @property
    def reward_funcs(self) -> list[EnvironmentReward]:
        """One function: the rubric's total, gate and weights applied."""
        return [EnvironmentReward(self.env_id, self.env_kwargs)]

    def kwargs(self) -> dict[str, Any]:
        """Arguments of GRPOTrainer."""
        return {"train_dataset": self.train_dataset, "reward_funcs": self.reward_funcs}
