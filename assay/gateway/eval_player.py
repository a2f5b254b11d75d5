"""Evaluation of a program: whole episodes for ``assay eval``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..envs import EpisodeGroup, Task
from .agent_env import AgentEnv
from .engine import ChatEngine, Engine
from .episodes import GatewayConfig


class AgentEvalPlayer:
    """Play tasks by a program, and judge them.

    Args:
        agent: the tasks and the program.
        engine: what samples.
        config: of the gateway.
        about: result of :meth:`describe`.
    """

    def __init__(
        self,
        agent: AgentEnv,
        engine: Engine | ChatEngine,
        config: GatewayConfig,
        about: Mapping[str, Any],
    ) -> None:
        self.agent, self.engine, self.config, self.about = agent, engine, config, dict(about)

    def play(self, tasks: Sequence[Task], count: int, seed: int, /) -> list[EpisodeGroup]:
        """Return a group of ``count`` episodes for each task."""
        return self.agent.play(self.engine, tasks, count, config=self.config, seed=seed)

    def describe(self) -> dict[str, Any]:
        """Return the program and the policy as plain JSON values."""
        return self.about
