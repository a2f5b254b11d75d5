"""One process at a time in a run's directory: two would mix their rows and checkpoints."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .checkpoint import CheckpointError

LOCK = ".lock"
_held: set[Path] = set()  # by this process, which the kernel would let in again


@contextmanager
def alone_in(out_dir: Path) -> Iterator[None]:
    """Hold the directory. However the process ends, the kernel lets go of it.

    Raises:
        CheckpointError: another process, or another learner of this one, is training in it.
    """
    out_dir.mkdir(parents=True, exist_ok=True)
    held = out_dir.resolve()
    if held in _held:  # opening the file again and closing it would give up the lock
        raise _taken(out_dir)
    handle = os.open(out_dir / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        try:
            # Not flock: workers that were forked would hold on to it after this process is killed.
            fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            raise _taken(out_dir) from None
        except OSError:  # some network file systems have no locks
            pass
        _held.add(held)
        yield
    finally:
        _held.discard(held)
        os.close(handle)


def _taken(out_dir: Path) -> CheckpointError:
    return CheckpointError(
        f"another process is training in {str(out_dir)!r}: wait for it or stop it, or give "
        "another out_dir"
    )
