"""How much a session may use."""

from __future__ import annotations

from dataclasses import dataclass

from ..limits import LONGEST_S


@dataclass(frozen=True, slots=True)
class SessionLimits:
    """Bounds on one session, that is on all of its processes together.

    Attributes:
        memory_mib: memory, MiB; with it files in memory (/dev/shm, under bwrap all files).
        cpus: cores, such as 0.5.
        pids: processes and threads at one time.
        disk_mib: bytes that it may write to its files, MiB.
        output_bytes: bytes kept of a command's stdout, and as many of its stderr. The rest is
            counted and dropped.
        idle_s: seconds without a command after which it ends; ``None`` for no such limit.
        wall_s: seconds after which it ends in any case, or ``None``.

    Raises:
        ValueError: a limit is not positive, a count is not whole, or a time is over a day.
    """

    memory_mib: int = 1024
    cpus: float = 1.0
    pids: int = 256
    disk_mib: int = 2048
    output_bytes: int = 1 << 20
    idle_s: float | None = 3600.0
    wall_s: float | None = None

    def __post_init__(self) -> None:
        for name in ("memory_mib", "pids", "disk_mib", "output_bytes"):
            value = getattr(self, name)
            if type(value) is not int or value <= 0:
                raise ValueError(f"{name} must be a positive whole number, got {value!r}")
        for name in ("idle_s", "wall_s"):
            value = getattr(self, name)
            if value is not None and not 0 < value <= LONGEST_S:  # nan too is refused
                raise ValueError(f"{name} must be positive and at most a day, got {value!r}")
        if not 0.01 <= self.cpus <= 1024:
            raise ValueError(f"cpus must be at least 0.01, got {self.cpus!r}")
