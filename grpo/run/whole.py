"""Directories and files that are there whole or not at all, whenever the power goes."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

_PARTIAL, _REMOVED = ".partial", ".removed"


def write_directory(path: Path, fill: Callable[[Path], None]) -> None:
    """Make a directory under another name, and rename it when it is filled and on disk.

    Args:
        path: where there must be nothing yet.
        fill: called with an empty directory.

    Raises:
        Exception: what ``fill`` raises, such as for a full disk; nothing is left behind.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.parent / f".{path.name}{_PARTIAL}"
    shutil.rmtree(temporary, ignore_errors=True)  # a crash may have left one
    try:
        temporary.mkdir()
        fill(temporary)
        publish(temporary, path)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def publish(temporary: Path, path: Path) -> None:
    """Give a directory its name, once all that is in it is on disk.

    Raises:
        OSError: it cannot be renamed, such as where there is something of that name.
    """
    for folder, _, files in os.walk(temporary):
        for name in files:
            _sync(Path(folder) / name)
        _sync(Path(folder))
    os.replace(temporary, path)
    _sync(path.parent)


def write_file(path: Path, text: str, *, mode: int = 0o666) -> None:
    """Put a text in place of a file's; ``mode`` is what the umask leaves of the permissions."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.parent / f".{path.name}{_PARTIAL}"
    try:
        temporary.unlink(missing_ok=True)
        temporary.touch(mode)
        temporary.write_text(text, encoding="utf-8")
        _sync(temporary)
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sync(path.parent)


def remove_directory(path: Path) -> None:
    """Remove a directory; its name is gone before any of its files is."""
    doomed = path.parent / f".{path.name}{_REMOVED}"
    shutil.rmtree(doomed, ignore_errors=True)
    os.replace(path, doomed)
    shutil.rmtree(doomed)


def sweep(root: Path) -> None:
    """Remove what a killed process left half written or half removed."""
    for path in root.iterdir() if root.is_dir() else ():
        if path.name.startswith(".") and path.name.endswith((_PARTIAL, _REMOVED)):
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
