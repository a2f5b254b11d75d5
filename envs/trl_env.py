"""An environment that TRL may move between processes: its id and arguments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .registry import make, spec
from .text_env import TextEnv


class Portable:
    """An environment by id, made on first use in each process.

    It pickles as its spec and arguments; another process imports what registers it.

    Args:
        env_id: a registered id.
        kwargs: the environment's own arguments.
    """

    def __init__(self, env_id: str, kwargs: Mapping[str, Any]) -> None:
        self._spec = spec(env_id)
        self.env_id, self.kwargs = self._spec.id, dict(kwargs)
        self._made: dict[str, TextEnv] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_made": {}}

    @property
    def name(self) -> str:
        """The id as an identifier; TRL names its columns by it."""
        return "".join(c if c.isalnum() else "_" for c in self.env_id)

    def at(self, split: str | None = None) -> TextEnv:
        """The environment, at another split than its arguments say where one is named."""
        key = split or ""
        if key not in self._made:
            more = {"split": split} if split else {}
            self._made[key] = make(self._spec, **{**self.kwargs, **more})
        return self._made[key]
