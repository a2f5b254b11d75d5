"""How many cores this process may really use: often fewer than the machine has."""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath

_GROUPS = Path("/proc/self/cgroup")
_MOUNT = Path("/sys/fs/cgroup")


def usable_cores(groups: Path = _GROUPS, mount: Path = _MOUNT) -> int:
    """Return the cores that this process may use at one time, at least 1.

    The smaller of its affinity (``taskset``, Slurm) and the CPU quotas of its cgroup and of those
    above it, versions 1 and 2 (``docker run --cpus``, Kubernetes limits, systemd), rounded up.

    Args:
        groups: the file that names this process's cgroups.
        mount: where cgroups are mounted.
    """
    quotas = [math.ceil(quota) for quota in _quotas(groups, mount)]
    known = hasattr(os, "sched_getaffinity")  # not on every system that verifiers run on
    cores = len(os.sched_getaffinity(0)) if known else os.cpu_count() or 1
    return max(1, min([cores, *quotas]))


def _quotas(groups: Path, mount: Path) -> Iterator[float]:
    """Return the quotas that bind this process, in cores."""
    try:
        lines = groups.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if not controllers:  # version 2
            yield from _each(mount, path, _quota_of_v2)
        elif "cpu" in controllers.split(","):
            for folder in (mount / controllers, mount / "cpu"):
                yield from _each(folder, path, _quota_of_v1)


def _each(mount: Path, path: str, read: Callable[[Path], tuple[str, str]]) -> Iterator[float]:
    """Return the quotas of a group and all above it.

    In a container the path may be the host's while the mount shows the container's own group as
    the root, so folders that are not there are skipped.
    """
    inside = PurePosixPath(path.lstrip("/"))
    for folder in dict.fromkeys([inside, *inside.parents]):
        with contextlib.suppress(OSError, ValueError):
            quota, period = (int(part) for part in read(mount / folder))
            if quota > 0 and period > 0:
                yield quota / period


def _quota_of_v2(folder: Path) -> tuple[str, str]:
    quota, period = (folder / "cpu.max").read_text().split()  # "max 100000" where there is none
    return quota, period


def _quota_of_v1(folder: Path) -> tuple[str, str]:
    quota = (folder / "cpu.cfs_quota_us").read_text()  # -1 where there is none
    return quota, (folder / "cpu.cfs_period_us").read_text()
