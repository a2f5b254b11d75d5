"""An environment that TRL may move between processes: its id and arguments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from ..datasets.splits import make_for
from ..registry import spec
from ..text_env import TextEnv


class Portable:
    """An environment by id, made on first use in each process.

    It pickles as its spec and arguments; another process imports what registers it.

    Args:
        env_id: a registered id.
        kwargs: the environment's own arguments.
        eval_kwargs: those that differ for evaluation.
        any_split: as for :func:`~assay.envs.datasets.splits.make_for`.
    """

    def __init__(
        self,
        env_id: str,
        kwargs: Mapping[str, Any],
        eval_kwargs: Mapping[str, Any] | None = None,
        *,
        any_split: bool = False,
    ) -> None:
        self._spec, self._any_split = spec(env_id), any_split
        self._eval_kwargs = dict(eval_kwargs or {})
        self.env_id, self.kwargs = self._spec.id, dict(kwargs)
        self._made: dict[str, TextEnv] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_made": {}}

    @property
    def name(self) -> str:
        """The id as an identifier; TRL names its columns by it."""
        return "".join(c if c.isalnum() else "_" for c in self.env_id)

    def at(self, split: str | None = None) -> TextEnv:
        """Return the environment to train on, or with ``"test"`` the one to evaluate on."""
        key = split or ""
        if key not in self._made:
            role: Literal["train", "test"] = "test" if split == "test" else "train"
            kwargs = self.kwargs
            if role == "test":
                kwargs = {k: v for k, v in kwargs.items() if k != "split"} | self._eval_kwargs
            self._made[key], _ = make_for(role, self._spec, kwargs, any_split=self._any_split)
        return self._made[key]
