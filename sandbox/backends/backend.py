"""What every backend is, and what a sandbox asks of one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from ..limits import Limits
from .slot import Slot


class Backend(Protocol):
    """Starts slots.

    Attributes:
        name: as results show it.
        image: digest of the container image; empty without one.
        limits: of every slot.
        tools: whether a slot shows the programs that other languages need.
    """

    name: str
    image: str
    limits: Limits
    tools: bool

    def start(self) -> Slot:
        """Start one slot, or raise SlotBroken."""
        ...

    def close(self) -> None:
        """Give back what the slots do not own."""
        ...


@dataclass(frozen=True, slots=True)
class Options:
    """What a sandbox asks of its backend; those without a daemon are never asked for the last four.

    Attributes:
        limits: of every slot.
        preload: modules that slots import once.
        tools: show the programs that other languages need.
        image: tag or digest of a container image. Default: the backend's own.
        hosts: addresses of daemons. Default: one daemon, the local one or DOCKER_HOST's.
        runtime: the daemon's runtime for containers. Default: the daemon's own.
        slots: how many all hosts together have. Default: by their cores.
    """

    limits: Limits
    preload: tuple[str, ...] = ()
    tools: bool = False
    image: str | None = None
    hosts: tuple[str, ...] | None = None
    runtime: str | None = None
    slots: int | None = None
