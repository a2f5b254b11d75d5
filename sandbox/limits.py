"""How much a program may use."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

LONGEST_S = 86_400.0
"""Seconds. The kernel's calls do not take any number; no program here needs a day."""

NETWORK_SETTINGS = {
    # The kernel lets these buffers grow to tens of megabytes, which not every control group counts.
    "net.ipv4.tcp_rmem": "4096 131072 131072",
    "net.ipv4.tcp_wmem": "4096 16384 65536",
    # Else a port that one program closed is not free for the next one.
    "net.ipv4.tcp_max_tw_buckets": "0",
    # Else one program's connections set the times of later ones to the same addresses.
    "net.ipv4.tcp_no_metrics_save": "1",
}
"""Settings of the kernel (sysctl) for a slot's own network."""

_CEILING = 10.0  # times the wall limit; 5 was reached on a thirtieth of a core


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on one program.

    CPU time is the main limit, and wall time a backstop some times as long. Time for which a
    program waits for a core counts for neither: a loaded machine slows programs down without
    changing what they are paid.

    Attributes:
        cpu_s: CPU seconds of the program and its children.
        wall_s: wall-clock seconds, less those for which the program was ready to run and others
            had the cores, as Linux counts them; ``None`` means four times ``cpu_s``, and at
            least 5. Ten times as long ends it in any case.
        memory_mib: memory of the whole program, MiB.
        pids: processes and threads at one time.
        output_bytes: bytes kept of stdout, and as many of stderr; more ends the program.
        files: open files for each process, and sockets of the whole program.
        tmp_mib: bytes it may write, in /tmp and in any one file, MiB.

    Raises:
        ValueError: a limit is not positive, a count is not whole, or a time is over a day.
    """

    cpu_s: float = 5.0
    wall_s: float | None = None
    memory_mib: int = 256
    pids: int = 64
    output_bytes: int = 1 << 20
    files: int = 256
    tmp_mib: int = 64

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if name in ("cpu_s", "wall_s"):
                usable = isinstance(value, int | float) and 0 < value <= LONGEST_S  # nan is not
                if value is not None and not usable:
                    raise ValueError(f"{name} must be positive and at most a day, got {value!r}")
            elif type(value) is not int or value <= 0:
                raise ValueError(f"{name} must be a positive whole number, got {value!r}")

    @property
    def wall_seconds(self) -> float:
        """The wall-clock limit in force."""
        return self.wall_s if self.wall_s is not None else max(5.0, 4.0 * self.cpu_s)

    @property
    def ceiling_seconds(self) -> float:
        """Wall-clock seconds after which a program ends whatever it waited for."""
        return _CEILING * self.wall_seconds

    def to_json(self) -> dict[str, Any]:
        """Return a dict of plain JSON values."""
        return asdict(self)
