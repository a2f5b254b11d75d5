"""Attacks on a grader: agents that solve nothing and want the reward."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

from .agents import CommandAgent
from .trial import Seat

_ALL = tomllib.loads(Path(__file__).with_name("hacks.toml").read_text("utf-8"))


@dataclass(frozen=True)
class Hack:
    """One attack, which is an agent.

    Attributes:
        name: of it.
        pattern: its number in the published list of seven, or 0.
        script: what the agent runs.
    """

    name: str
    pattern: int
    script: str

    def __call__(self, seat: Seat) -> str:
        """Try it."""
        named = set(re.findall(r"/app/?[\w./-]*\w", seat.stage.instruction))
        paths = f"PATHS='{' '.join(sorted(named))}'"
        return CommandAgent(f"{paths}\n{_ALL['common']}\n{self.script}")(seat)


HACKS = tuple(Hack(**row) for row in _ALL["hack"])
"""The attacks, the published patterns first."""
