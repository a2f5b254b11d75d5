"""Container images: the host's own Python, or one from a registry."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import sysconfig
import tarfile
from collections.abc import Iterable

from .docker import DEFAULT_IMAGE, connect
from .errors import ImageUnavailable, SandboxError

_LEFT_OUT = """
__phello__ ensurepip idlelib lib2to3 site-packages dist-packages test tests tkinter turtledemo venv
"""
_EMPTY = ("dev", "etc", "proc", "sys", "tmp")

PINNED = "python:3.12-slim@sha256:78387bc3881b8273120a12ebe6c1ab22b018ccc2c9adf565ae1ac9b536e184ea"
"""What is pulled where a registry answers: the same Python on every machine."""


def registry_fault(reference: str, timeout_s: int = 15) -> str | None:
    """Why an image cannot be pulled now, or ``None`` where its registry has it.

    Raises:
        SandboxUnavailable: no Docker daemon answers.
    """
    import docker.errors
    import requests

    client = connect(timeout_s)
    try:
        client.inspect_distribution(reference)
    except (docker.errors.DockerException, requests.RequestException) as error:
        return str(getattr(error, "explanation", None) or error)
    finally:
        client.close()
    return None


def build_image(tag: str = DEFAULT_IMAGE, *, pull: str | None = None) -> str:
    """Make the image that programs run in, and return its digest.

    Args:
        tag: what to call it; a Sandbox without an image uses the default.
        pull: a reference such as ``python:3.12-slim@sha256:...`` to pull and tag. Default: an
            image of this machine's own Python: its standard library and shared libraries, no
            shell, no packages. That needs no registry and no network.

    Raises:
        SandboxUnavailable: no Docker daemon answers.
        ImageUnavailable: the reference cannot be pulled.
        SandboxError: the daemon does not import the image.
    """
    import docker.errors
    import requests

    client = connect(600)
    try:
        if pull is not None:
            client.pull(pull)
            repository, _, name = tag.partition(":")
            client.tag(pull, repository, name or "latest")
        else:
            client.import_image_from_data(
                image_tar(), repository=tag.partition(":")[0], tag=tag.partition(":")[2] or "latest"
            )
        digest: str = client.inspect_image(tag)["Id"]
    except (docker.errors.DockerException, requests.RequestException) as error:
        if pull is not None:
            raise ImageUnavailable(f"cannot pull {pull!r}: {error}") from error
        raise SandboxError(f"Docker does not import the image: {error}") from error
    finally:
        client.close()
    return digest


def image_tar() -> bytes:
    """A root file system with this Python: same files, same bytes."""
    python = os.path.realpath(sys.executable)
    stdlib = os.path.realpath(sysconfig.get_path("stdlib"))
    files = {python, *_standard_library(stdlib), *_locale()}
    binaries = [python, *(f for f in files if re.search(r"\.so(\.|$)", f))]
    files |= _shared_libraries(binaries)
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name in _EMPTY:
            _add_folder(tar, name, 0o1777 if name == "tmp" else 0o755)
        for folder in sorted({p for f in files for p in _parents(f)}):
            _add_folder(tar, folder.lstrip("/"), 0o755)
        for path in sorted(files):
            _add_file(tar, path)
        if "/usr/bin/python3" not in files:
            _add_link(tar, "usr/bin/python3", python)
    return buffer.getvalue()


def _standard_library(stdlib: str) -> set[str]:
    """Sources, compiled files and extension modules. Compiled ones halve a slot's start."""
    tag = sys.implementation.cache_tag
    found = set()
    for folder, inner, names in os.walk(stdlib):
        inner[:] = [d for d in inner if d not in _LEFT_OUT.split() and not d.startswith("config-")]
        for name in names:
            if name.endswith((".py", ".so", f".{tag}.pyc")) or ".so." in name:
                found.add(os.path.join(folder, name))
    return found


def _locale() -> set[str]:
    """C.UTF-8, which programs run under: without its files setlocale fails."""
    found = os.walk("/usr/lib/locale/C.utf8")
    return {os.path.join(folder, name) for folder, _, names in found for name in names}


def _shared_libraries(binaries: Iterable[str]) -> set[str]:
    """Every library that these need, by the paths under which the loader looks for them."""
    # These are our own interpreter's files: ldd runs their loader.
    listed = subprocess.run(["ldd", *binaries], capture_output=True, text=True, check=False)
    found = {w for w in listed.stdout.split() if w.startswith("/") and os.path.isfile(w)}
    for folder in {os.path.dirname(path) for path in found}:
        # Loaded only when a thread is cancelled or C++ comes along, so ldd does not say.
        for name in ("libgcc_s.so.1", "libstdc++.so.6"):
            if os.path.isfile(path := os.path.join(folder, name)):
                found.add(path)
    return found


def _parents(path: str) -> list[str]:
    """The folders that lead to a file, without the root."""
    found = []
    while (path := os.path.dirname(path)) != "/":
        found.append(path)
    return found


def _entry(name: str, kind: bytes, mode: int) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type = kind
    info.mode = mode
    return info


def _add_folder(tar: tarfile.TarFile, name: str, mode: int) -> None:
    tar.addfile(_entry(name, tarfile.DIRTYPE, mode))


def _add_link(tar: tarfile.TarFile, name: str, target: str) -> None:
    info = _entry(name, tarfile.SYMTYPE, 0o777)
    info.linkname = target
    tar.addfile(info)


def _add_file(tar: tarfile.TarFile, path: str) -> None:
    """A link's content goes under the link's name. Compiled files name their source's time."""
    status = os.stat(path)
    info = _entry(path.lstrip("/"), tarfile.REGTYPE, 0o755 if status.st_mode & 0o111 else 0o644)
    info.size = status.st_size
    info.mtime = int(status.st_mtime)
    with open(path, "rb") as file:
        tar.addfile(info, file)
