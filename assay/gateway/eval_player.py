"""Evaluation of a program: whole episodes for ``assay eval``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..envs import EpisodeGroup, Task
from .agent_env import AgentEnv
from .engine import ChatEngine, Engine
from .episodes import GatewayConfig


@dataclass(frozen=True)
class AgentEvalPlayer:
    """Play tasks by a program, and judge them; ``about`` is the result of :meth:`describe`."""

    agent: AgentEnv
    engine: Engine | ChatEngine
    config: GatewayConfig
    about: dict[str, Any]

    def play(self, tasks: Sequence[Task], count: int, seed: int, /) -> list[EpisodeGroup]:
        """Return a group of ``count`` episodes for each task."""
        return self.agent.play(self.engine, tasks, count, config=self.config, seed=seed)

    def describe(self) -> dict[str, Any]:
        """Return the program and the policy as plain JSON values."""
        return self.about
