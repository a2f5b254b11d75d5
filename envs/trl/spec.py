"""Any environment in TRL's trainers: its data set, and what plays and judges it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from numbers import Integral
from typing import TYPE_CHECKING, Any, Literal, get_args

from ...sandbox.extras import missing_package
from ...sandbox.redaction import redacted_repr
from ..datasets.splits import refuse_overlap, refuse_training
from ..group_rubric import refuse_group_rubric
from ..registry import arguments, spec
from ..task import Task
from ..text_env import TextEnv
from .portable import Portable
from .reward import EnvironmentReward
from .rollout import SPLIT, TASK, EnvironmentRollout
from .tools import ToolEnvironments

if TYPE_CHECKING:
    from datasets import Dataset

Mode = Literal["single", "tools", "turns"]


@dataclass(frozen=True)
class TRLSpec:
    """Arguments of TRL's trainers for an environment: ``GRPOTrainer(**spec.kwargs())``.

    Attributes:
        env_id: which environment.
        size: rows of the data set.
        seed: order of the tasks, as in :func:`assay.envs.rollout`.
        env_kwargs: the environment's own arguments. Training takes the split ``train``, unless
            they name another.
        mode: ``single`` for one reply, judged by a reward function; ``tools`` for the model's
            calls of tools, by an environment_factory; ``turns`` for several turns of plain text,
            by a rollout_func. By default what the environment is.
        eval_size: rows of a second data set, for evaluation, of the environment's ``test`` split.
        own_reward: in ``tools`` mode, let TRL's environments judge themselves by
            ``get_reward``, in place of a reward function: for AsyncGRPO, whose reward functions
            do not see the environments. Parts are not logged then, and the words of the last
            turn not judged.
        eval_kwargs: arguments of the environment that differ for evaluation, such as ``data``.
        allow_test_split: train on a split that is for evaluation.
        allow_overlap: train on prompts that ``eval_dataset`` has too.
        allow_sample: train on the few rows that the package ships.

    Raises:
        ValueError: ``size`` is below 1, ``eval_size`` below 0, ``seed`` is no whole number, or the
            mode is unknown.
    """

    env_id: str
    size: int = 1000
    seed: int = 0
    env_kwargs: Mapping[str, Any] = field(default_factory=dict)
    mode: Mode | None = None
    eval_size: int = 0
    own_reward: bool = False
    eval_kwargs: Mapping[str, Any] = field(default_factory=dict)
    allow_test_split: bool = False
    allow_overlap: bool = False
    allow_sample: bool = False

    def __post_init__(self) -> None:
        for name, least in (("size", 1), ("eval_size", 0), ("seed", None)):
            value = getattr(self, name)
            whole = isinstance(value, Integral) and not isinstance(value, bool)
            if not whole or (least is not None and value < least):
                range_ = "" if least is None else f" of at least {least}"
                raise ValueError(f"{name} must be a whole number{range_}, got {value!r}")
            object.__setattr__(self, name, int(value))  # seeds hash JSON, which lacks NumPy's
        if self.mode not in (None, *get_args(Mode)):
            known = ", ".join(get_args(Mode))
            raise ValueError(f"mode must be one of {known}, or None for any, got {self.mode!r}")

    __repr__ = redacted_repr

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "env_id": spec(self.env_id).address}

    def __setstate__(self, state: dict[str, Any]) -> None:
        # The address has another process import what registers the id.
        self.__dict__.update({**state, "env_id": spec(state["env_id"]).id})

    @property
    def train_dataset(self) -> Dataset:
        """Conversational prompts, with the task of each.

        Raises:
            ImportError: the datasets package is missing.
            ValueError: the rows are for evaluation, or the sample, and are not allowed by name; or
                the environment judges replies by the others of their group.
        """
        source = self._training().source
        indices = [source.schedule(i, self.seed) for i in range(self.size)]
        return self._dataset([source.task(i) for i in indices], indices, {})

    @property
    def eval_dataset(self) -> Dataset | None:
        """The first ``eval_size`` tasks of the test split; ``None`` for no rows.

        Raises:
            ImportError: the datasets package is missing.
            ValueError: the environment has no splits, or prompts are trained on as well.
        """
        if not self.eval_size:
            return None
        if "split" not in arguments(self.env_id) and not self.eval_kwargs:
            raise ValueError(
                f"{self.env_id} takes no 'split', so there is nothing to hold out: leave eval_size "
                "at 0, or give eval_kwargs with other data"
            )
        source = self._environment.at("test").source
        indices = range(min(self.eval_size, source.size or self.eval_size))
        tasks = [source.task(i) for i in indices]
        refuse_overlap(self._training().source, source, tasks, allow=self.allow_overlap)
        return self._dataset(tasks, indices, {SPLIT: "test"})

    @property
    def reward_funcs(self) -> list[EnvironmentReward]:
        """One function: the rubric's total, with gate and weights."""
        return [EnvironmentReward(self._environment)]

    @property
    def environment_factory(self) -> ToolEnvironments:
        """The factory of TRL's environments, for ``tools``."""
        return ToolEnvironments(self._environment, own_reward=self.own_reward)

    @property
    def rollout_func(self) -> EnvironmentRollout:
        """The function that plays episodes, for ``turns``."""
        return EnvironmentRollout(self._environment)

    def resolved(self) -> Mode:
        """Return the given mode, or the one that the environment implies."""
        if self.mode is not None:
            return self.mode
        env = self._environment.at()
        if getattr(env, "tools", None):
            return "tools"
        return "turns" if env.max_turns > 1 else "single"

    def kwargs(self) -> dict[str, Any]:
        """Return arguments of GRPOTrainer; those of ``single`` suit RLOOTrainer too."""
        mode = self.resolved()
        found: dict[str, Any] = {"train_dataset": self.train_dataset}
        if self.eval_size:
            found["eval_dataset"] = self.eval_dataset
        if mode == "tools":
            found["environment_factory"] = self.environment_factory
        if mode == "turns":
            found["rollout_func"] = self.rollout_func
        if mode != "tools" or not self.own_reward:
            found["reward_funcs"] = self.reward_funcs
        return found

    @cached_property
    def _environment(self) -> Portable:
        """The environment; if the chat template describes the tools, its prompts do not."""
        described = self.mode in (None, "tools") and "tell" in arguments(self.env_id)
        more = {"tell": "template"} if described else {}
        kwargs = {**more, **self.env_kwargs}
        return Portable(self.env_id, kwargs, self.eval_kwargs, any_split=self.allow_test_split)

    def _training(self) -> TextEnv:
        """Return the environment to train on, if that is allowed."""
        env = self._environment.at()
        refuse_group_rubric(env.name, env.group_rubric)
        refuse_training(env, allow_test_split=self.allow_test_split, allow_sample=self.allow_sample)
        return env

    def _dataset(
        self, tasks: Sequence[Task], indices: Sequence[int], more: Mapping[str, str]
    ) -> Dataset:
        try:
            from datasets import Dataset
        except ImportError as error:
            raise missing_package("a data set for TRL", "trl", error) from error
        # A rollout_func gets no columns, so each prompt says which task it is: chat templates
        # overlook keys that they do not know.
        marked = self.resolved() == "turns"
        prompts = []
        for task, index in zip(tasks, indices, strict=True):
            *before, last = (dict(m) for m in task.messages)
            prompts.append([*before, {**last, TASK: index, **more} if marked else last])
        columns = {name: [value] * len(prompts) for name, value in more.items()}
        return Dataset.from_dict({"prompt": prompts, TASK: list(indices), **columns})
