"""Control groups of one slot or session under bubblewrap, where this user may make some.

Bubblewrap makes none. With one of memory the kernel bounds programs as a whole, whatever they hold
their memory in: pages of many processes, files in /tmp, memory files, buffers of pipes and sockets.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from .process_id import is_alive, process_id

MEMORY = ("memory",)
ALL = ("memory", "pids", "cpu")

_ROOT = Path("/sys/fs/cgroup")
_COUNTS = {
    "memory.oom_control": "/sys/fs/cgroup/memory/memory.oom_control",
    "memory.events": "/sys/fs/cgroup/memory.events",
}
"""Where versions 1 and 2 count what was killed for memory, here and inside."""

_PERIOD_US = 100_000
_REMOVE_S = 5.0
_numbers = itertools.count()


@dataclass(frozen=True, slots=True)
class Group:
    """Control groups that nothing is in yet: a folder by controller, all the same in version 2."""

    folders: dict[str, Path]

    def entering(self) -> list[str]:
        """Return the start of a command line that puts what follows into them."""
        each = dict.fromkeys(self.folders.values())
        enter = " && ".join(f'echo 0 >"{folder}/cgroup.procs"' for folder in each)
        return ["/bin/sh", "-c", f'{enter} && exec "$@"', "sh"]

    def view(self, *more: str) -> list[str]:
        """Return what bubblewrap shows of them: the count of what was killed for memory.

        Args:
            more: further files of the controller of memory.
        """
        memory = self.folders["memory"]
        for name, seen in _COUNTS.items():
            if (memory / name).exists():
                shown = ["--ro-bind", str(memory / name), seen]
                for other in more:
                    seen_as = str(Path(seen).with_name(other))
                    shown += ["--ro-bind-try", str(memory / other), seen_as]
                return shown
        return []

    def killed_for_memory(self) -> bool:
        """Return whether the kernel killed something in them for memory, as far as it can tell."""
        for name in _COUNTS:
            with contextlib.suppress(OSError):
                text = (self.folders["memory"] / name).read_text()
                return "oom_kill " not in text or bool(re.search(r"^oom_kill [1-9]", text, re.M))
        return True

    def remove(self) -> None:
        """Delete them, as soon as the kernel has buried what was in them.

        What is left after some seconds the next client's sweep takes.
        """
        deadline = time.monotonic() + _REMOVE_S
        for folder in dict.fromkeys(self.folders.values()):
            while folder.exists() and time.monotonic() < deadline:
                with contextlib.suppress(OSError):
                    folder.rmdir()
                    break
                time.sleep(0.005)


def groups_fault() -> str | None:
    """Return why sessions cannot be bounded here, or ``None`` if they can."""
    if _homes(ALL) is None:
        return (
            "sessions under bubblewrap need control groups of memory, pids and cpu that this user "
            "may make: use Docker, or delegate them (systemd-run --property=Delegate=yes)"
        )
    return None


def can_group() -> bool:
    """Return whether this user may make groups of memory here."""
    return _homes(MEMORY) is not None


def make_group(kind: str, memory_bytes: int, pids: int = 0, cpus: float = 0.0) -> Group | None:
    """Make groups, or return ``None`` if this user may make none.

    Args:
        kind: what they are for; part of their name.
        memory_bytes: what they may hold.
        pids: processes and threads at one time; 0 for no group of them, nor of cores.
        cpus: cores.
    """
    homes = _homes(ALL if pids else MEMORY)
    name = f"assay-{kind}-{process_id()}-{next(_numbers)}"
    with contextlib.suppress(OSError):
        return None if homes is None else _made(homes, name, memory_bytes, pids, cpus)
    return None


def sweep_groups() -> None:
    """Delete the empty groups of clients that are no more."""
    homes = {**(_homes(ALL) or {}), **(_homes(MEMORY) or {})}
    for home in dict.fromkeys(homes.values()):
        for path in home.glob("assay-*-*-*-*"):
            pid, started = path.name.split("-")[2:4]
            if pid.isdigit() and not is_alive(f"{pid}-{started}"):
                with contextlib.suppress(OSError):
                    path.rmdir()


def _made(homes: dict[str, Path], name: str, memory_bytes: int, pids: int, cpus: float) -> Group:
    group = Group({controller: home / name for controller, home in homes.items()})
    try:
        for folder in dict.fromkeys(group.folders.values()):
            folder.mkdir()
        quota = int(cpus * _PERIOD_US)
        if (group.folders["memory"] / "memory.max").exists():
            bounds = {
                "memory.max": memory_bytes,
                "memory.swap.max": 0,
                "pids.max": pids,
                "cpu.max": f"{quota} {_PERIOD_US}",
            }
        else:
            bounds = {
                "memory.limit_in_bytes": memory_bytes,
                "memory.memsw.limit_in_bytes": memory_bytes,
                "pids.max": pids,
                "cpu.cfs_period_us": _PERIOD_US,
                "cpu.cfs_quota_us": quota,
            }
        for file, bound in bounds.items():
            bounded = group.folders.get(file.partition(".")[0])
            of_swap = ".swap." in file or ".memsw." in file  # which not every kernel has
            if bounded is not None and ((bounded / file).exists() or not of_swap):
                (bounded / file).write_text(str(bound))
    except OSError:
        group.remove()
        raise
    return group


@functools.cache
def _homes(controllers: tuple[str, ...]) -> dict[str, Path] | None:
    """Return the groups that ours go under, by controller: the nearest that may have some."""
    with contextlib.suppress(OSError):
        for homes in _candidates(Path("/proc/self/cgroup").read_text(), controllers, _ROOT):
            with contextlib.suppress(OSError):
                name = f"assay-probe-{process_id()}-{next(_numbers)}"  # another thread may look too
                _made(homes, name, 64 << 20, 8, 1.0).remove()
                return homes
    return None


def _candidates(groups: str, controllers: tuple[str, ...], root: Path) -> Iterator[dict[str, Path]]:
    """Return folders that may hold groups with these bounds.

    Args:
        groups: the text of ``/proc/self/cgroup``.
        controllers: of version 1, each of which has a group of its own.
        root: where control groups are mounted.
    """
    own: dict[str, str] = {}
    for line in groups.splitlines():
        _, names, path = line.split(":", 2)
        own |= dict.fromkeys(names.split(","), path.lstrip("/"))
    if all(controller in own for controller in controllers):
        yield {controller: root / controller / own[controller] for controller in controllers}
    elif "" in own:  # version 2: a group with processes hands on no controllers, but one above may
        folder = root / own[""]
        for above in (folder, *folder.parents):
            if above.is_relative_to(root):
                yield dict.fromkeys(controllers, above)
