"""Control groups of one session under bubblewrap: memory, processes and cores."""

from __future__ import annotations

import contextlib
import functools
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ..backends.process_id import is_alive, process_id

_ROOT = Path("/sys/fs/cgroup")
_CONTROLLERS = ("memory", "pids", "cpu")
_PERIOD_US = 100_000
_REMOVE_S = 5.0
_PREFIX = "assay-"
_COUNTS = {
    "memory.oom_control": "/sys/fs/cgroup/memory/memory.oom_control",
    "memory.events": "/sys/fs/cgroup/memory.events",
}
"""Where each version counts what was killed for memory, here and in a session."""


@dataclass(frozen=True, slots=True)
class SessionGroup:
    """Groups that nothing is in yet: three folders of version 1, or one of version 2."""

    folders: tuple[Path, ...]

    def entering(self) -> list[str]:
        """Return the start of a command line that puts what follows into the groups."""
        enter = " && ".join(f'echo 0 >"{folder}/cgroup.procs"' for folder in self.folders)
        return ["/bin/sh", "-c", f'{enter} && exec "$@"', "sh"]

    def view(self) -> list[str]:
        """Return what bubblewrap shows of them: the count of what was killed for memory."""
        for name, seen in _COUNTS.items():
            if (self.folders[0] / name).exists():
                return ["--ro-bind", str(self.folders[0] / name), seen]
        return []

    def killed_for_memory(self) -> bool:
        """Return whether the kernel killed something in them for memory, as far as it can tell."""
        for name in _COUNTS:
            with contextlib.suppress(OSError):
                text = (self.folders[0] / name).read_text()
                return (
                    "oom_kill " not in text or re.search(r"^oom_kill [1-9]", text, re.M) is not None
                )
        return True

    def remove(self) -> None:
        """Delete them, as soon as the kernel has buried what was in them."""
        deadline = time.monotonic() + _REMOVE_S
        for folder in self.folders:
            while folder.exists() and time.monotonic() < deadline:
                with contextlib.suppress(OSError):
                    folder.rmdir()
                    break
                time.sleep(0.005)


def make_session_group(name: str, memory_bytes: int, pids: int, cpus: float) -> SessionGroup:
    """Make the groups of a session.

    Raises:
        OSError: this user may not.
    """
    homes = _homes()
    if homes is None:
        raise PermissionError("this user may make no control groups")
    folders = tuple(home / f"{_PREFIX}{name}" for home in homes)
    group = SessionGroup(folders)
    quota = int(cpus * _PERIOD_US)
    try:
        for folder in folders:
            folder.mkdir()
        if len(folders) == 1:
            for file, value in (
                ("memory.max", str(memory_bytes)),
                ("pids.max", str(pids)),
                ("cpu.max", f"{quota} {_PERIOD_US}"),
            ):
                (folders[0] / file).write_text(value)
            with contextlib.suppress(FileNotFoundError):  # a kernel without swap
                (folders[0] / "memory.swap.max").write_text("0")
        else:
            memory, processes, cores = folders
            (memory / "memory.limit_in_bytes").write_text(str(memory_bytes))
            with contextlib.suppress(FileNotFoundError):
                (memory / "memory.memsw.limit_in_bytes").write_text(str(memory_bytes))
            (processes / "pids.max").write_text(str(pids))
            (cores / "cpu.cfs_period_us").write_text(str(_PERIOD_US))
            (cores / "cpu.cfs_quota_us").write_text(str(quota))
    except OSError:
        group.remove()
        raise
    return group


def groups_fault() -> str | None:
    """Return why sessions cannot be bounded here, or ``None`` if they can."""
    if _homes() is None:
        return (
            "sessions under bubblewrap need control groups of memory, pids and cpu that this user "
            "may make: use Docker, or delegate them (systemd-run --property=Delegate=yes)"
        )
    return None


def sweep_session_groups() -> None:
    """Delete the empty groups of clients that are no more."""
    for home in _homes() or ():
        for path in home.glob(f"{_PREFIX}session-*-*-*"):
            pid, started = path.name.split("-")[2:4]
            if not is_alive(f"{pid}-{started}"):
                with contextlib.suppress(OSError):
                    path.rmdir()


@functools.cache
def _homes() -> tuple[Path, ...] | None:
    """Return the groups that ours go under: of version 1 one for each controller."""
    with contextlib.suppress(OSError):
        for homes in _candidates(Path("/proc/self/cgroup").read_text()):
            probes = [home / f"{_PREFIX}probe-{process_id()}" for home in homes]
            with contextlib.suppress(OSError):
                try:
                    for probe in probes:
                        probe.mkdir()
                    needed = ("memory.max", "pids.max", "cpu.max")
                    if len(homes) == 3 or all((probes[0] / file).exists() for file in needed):
                        return homes
                finally:
                    for probe in probes:
                        with contextlib.suppress(OSError):
                            probe.rmdir()
    return None


def _candidates(groups: str) -> Iterator[tuple[Path, ...]]:
    first: dict[str, Path] = {}
    for line in groups.splitlines():
        number, controllers, own = line.split(":", 2)
        for controller in controllers.split(","):
            first[controller] = _ROOT / controller / own.lstrip("/")
        if number == "0":
            second = _ROOT / own.lstrip("/")
    if all(controller in first for controller in _CONTROLLERS):
        yield tuple(first[controller] for controller in _CONTROLLERS)
    elif "" in first:
        for above in (second, *second.parents):
            if above == _ROOT or _ROOT in above.parents:
                yield (above,)
