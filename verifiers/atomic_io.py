"""Write files and directories that are there whole or not at all, even after a crash."""

from __future__ import annotations

import json
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from ..sandbox.redaction import redact

_PARTIAL, _REMOVED = ".partial", ".removed"


@contextmanager
def replacing(path: str | Path, *, sync: bool = True, mode: int = 0o666) -> Iterator[Path]:
    """Yield another name to write a file under, and rename it if nothing is raised.

    Args:
        path: of the file; its directory is made if it is missing.
        mode: its permissions, less the umask.
        sync: have it on disk before it is renamed, so that it also survives a power failure.
    """
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    own = f"{os.getpid()}-{threading.get_ident()}"  # others may write the same file
    partial = target.with_name(f".{target.name}.{own}{_PARTIAL}")
    try:
        partial.unlink(missing_ok=True)  # a crash may have left one, with wider permissions
        os.close(os.open(partial, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode))
        yield partial
        if sync:
            _sync(partial)
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)
    if sync:
        with suppress(OSError):  # not every file system syncs directories; the file is in place
            _sync(target.parent)


def write_text(path: str | Path, text: str, *, sync: bool = True, mode: int = 0o666) -> None:
    """Write a text file atomically."""
    with replacing(path, sync=sync, mode=mode) as partial:
        partial.write_text(text, encoding="utf-8")


def write_json(path: str | Path, value: Any, *, indent: int = 1, mode: int = 0o666) -> None:
    """Write a value as JSON atomically."""
    write_text(path, json.dumps(value, indent=indent) + "\n", mode=mode)


def write_settings(path: str | Path, value: Any, *, indent: int = 1) -> None:
    """Write settings as JSON without their secrets, readable by this user alone."""
    write_json(path, redact(value), indent=indent, mode=0o600)


def write_directory(path: Path, fill: Callable[[Path], None]) -> None:
    """Make a directory under another name, and rename it when it is filled and on disk.

    Args:
        path: must not exist yet.
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
    """Rename a directory once all that is in it is on disk.

    Raises:
        OSError: it cannot be renamed, for example because there is something of that name.
    """
    for folder, _, files in os.walk(temporary):
        for name in files:
            _sync(Path(folder) / name)
        _sync(Path(folder))
    os.replace(temporary, path)
    _sync(path.parent)


def remove_directory(path: Path) -> None:
    """Remove a directory, renaming it first so that nobody sees it half removed."""
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
    if os.name == "nt":  # directories and files that are open for reading cannot be synced there
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
