"""Identify the process that started a slot, also once its number belongs to another process."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path


def process_id() -> str:
    """Return the number and the start time of this process."""
    return f"{os.getpid()}-{_started(os.getpid())}"


def is_alive(process: str) -> bool:
    """Return whether the process that :func:`process_id` names still runs."""
    pid, _, started = process.partition("-")
    return pid.isdigit() and _started(int(pid)) == started


def _started(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    return ""
