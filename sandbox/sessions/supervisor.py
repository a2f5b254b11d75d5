"""The supervisor's binary: compiled once for a machine, and kept in the user's cache."""

from __future__ import annotations

import functools
import hashlib
import importlib.resources
import os
import platform
import shutil
import subprocess
import tempfile
from pathlib import Path

from ..errors import SandboxUnavailable

PATH = "/.assay-session"
"""Where it lies in a session."""


def supervisor_path() -> Path:
    """Return the binary, compiling it if this version of it is not in the cache.

    Raises:
        SandboxUnavailable: there is no C compiler, or it cannot link a static program.
    """
    return _built(os.environ.get("ASSAY_SUPERVISOR", ""))


def cache_folder() -> Path:
    """Return the folder of what sessions make once for this user."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "assay"


@functools.cache
def supervisor_binary() -> bytes:
    """Return the binary's bytes.

    Raises:
        SandboxUnavailable: as :func:`supervisor_path` does.
    """
    return supervisor_path().read_bytes()


@functools.cache
def _built(given: str) -> Path:
    if given:
        if not Path(given).is_file():
            raise SandboxUnavailable(f"ASSAY_SUPERVISOR names no file: {given}")
        return Path(given)
    folder = importlib.resources.files(__package__)
    source = (folder / "supervisor.c").read_bytes()
    digest = hashlib.sha256(source).hexdigest()[:16]
    cache = cache_folder()
    binary = cache / f"supervisor-{platform.machine()}-{digest}"
    if binary.is_file():
        return binary
    compiler = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
    if compiler is None:
        raise SandboxUnavailable(
            "sessions need a C compiler, once, to build their supervisor: apt-get install gcc "
            f"libc6-dev. Or copy {binary} from a machine that has it, or name it in "
            "ASSAY_SUPERVISOR"
        )
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache) as scratch:
        made = Path(scratch) / "supervisor"
        command = [compiler, "-static", "-O2", "-s", "-o", str(made), "-x", "c", "-"]
        done = subprocess.run(command, input=source, capture_output=True, check=False)
        if done.returncode:
            said = done.stderr.decode("utf-8", "replace").strip()[-500:]
            raise SandboxUnavailable(f"{compiler} does not build the supervisor: {said}")
        made.replace(binary)  # whole or not at all: two clients may build at one time
    return binary
