"""An environment that TRL may move between processes: its id and arguments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .registry import EnvSpec, UnknownEnvironment, make, register, spec
from .text_env import TextEnv


class Portable:
    """An environment by id, made on first use in each process.

    It pickles as id and arguments. Where the id's entry point is text, as ``"module:name"``, it
    takes that along too, so that a spawned process need not have registered the id before.

    Args:
        env_id: a registered id.
        kwargs: the environment's own arguments.
    """

    def __init__(self, env_id: str, kwargs: Mapping[str, Any]) -> None:
        self.env_id, self.kwargs = env_id, dict(kwargs)
        found = spec(env_id)
        self._spec: EnvSpec | None = found if isinstance(found.entry_point, str) else None
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
            self._made[key] = self._make(**{**self.kwargs, **more})
        return self._made[key]

    def _make(self, **kwargs: Any) -> TextEnv:
        try:
            return make(self.env_id, **kwargs)
        except UnknownEnvironment:
            known = self._spec
            if known is None:
                raise
            register(
                known.id,
                known.entry_point,
                kwargs=known.kwargs,
                needs=known.needs,
                summary=known.summary,
            )
            return make(self.env_id, **kwargs)
