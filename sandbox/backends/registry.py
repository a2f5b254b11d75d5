"""What starts slots, and which of the ways to start them is used here."""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Sequence
from typing import Literal, Protocol

from ..errors import ImageUnavailable, SandboxUnavailable
from ..limits import Limits
from .bwrap import BwrapBackend, bwrap_fault
from .cgroup import can_group
from .docker import DEFAULT_IMAGE, DockerBackend
from .hosts import HostsBackend
from .process import ProcessBackend
from .slot import Slot

BackendName = Literal["docker", "bwrap", "process"]


class Backend(Protocol):
    """Something that starts slots."""

    name: str
    image: str
    limits: Limits

    def start(self) -> Slot:
        """Start one slot, or raise SlotBroken."""
        ...

    def close(self) -> None:
        """Give back what the slots do not own."""
        ...


def wanted_backend(backend: str | None, image: str | None, *, unsafe: bool) -> str | None:
    """The backend that the arguments of a Sandbox, or else the environment, ask for.

    Raises:
        ValueError: there is none of this name, it has no images, or it is not safe.
    """
    chosen = backend or os.environ.get("ASSAY_SANDBOX") or None
    if backend == "process":
        if not unsafe:
            raise ValueError(
                "backend='process' runs programs on this machine with no isolation at all: they "
                "may read, change and send away whatever this user may. Use backend='docker' or "
                "backend='bwrap'; for programs that you trust, say unsafe=True as well"
            )
    elif unsafe:
        raise ValueError(f"unsafe=True is for backend='process' only, got backend={backend!r}")
    elif chosen not in (None, "docker", "bwrap"):
        name = "backend" if backend else "the environment variable ASSAY_SANDBOX"
        raise ValueError(f"{name} must be 'docker' or 'bwrap', got {chosen!r}")
    if chosen in ("bwrap", "process") and image is not None:
        raise ValueError(f"{chosen} shows the host's Python and has no image, got {image!r}")
    return chosen


def checked_preload(preload: Sequence[str]) -> tuple[str, ...]:
    """Names of modules, as they can be imported.

    Raises:
        ValueError: it is one text, or a name in it can be no module's.
    """
    if isinstance(preload, str):
        raise ValueError(f"preload takes a list of modules, got one text: give [{preload!r}]")
    for name in preload:
        if not isinstance(name, str) or not all(map(str.isidentifier, name.split("."))):
            raise ValueError(f"preload must hold names of modules, such as 'numpy', got {name!r}")
    return tuple(preload)


def choose_backend(
    image: str | None,
    wanted: str | None,
    limits: Limits,
    preload: Sequence[str],
    *,
    hosts: Sequence[str] | None = None,
    runtime: str | None = None,
    slots: int | None = None,
    tools: bool = False,
) -> Backend:
    """The backend that was asked for; else Docker, else bubblewrap with one warning.

    ``tools`` are for programs in other languages: a container has those of its image.

    Raises:
        SandboxUnavailable: it, or either, cannot be used.
        ImageUnavailable: the image asked for is missing.
    """
    if wanted == "process":
        return ProcessBackend(limits, tuple(preload))
    if wanted == "bwrap":
        return BwrapBackend(limits, tuple(preload), tools=tools)
    tag = image or DEFAULT_IMAGE
    if hosts is not None:
        return HostsBackend(tag, hosts, limits, tuple(preload), runtime=runtime, slots=slots)
    try:
        return DockerBackend(tag, limits, tuple(preload), runtime=runtime)
    except (SandboxUnavailable, ImageUnavailable) as error:
        # Whoever names an image, a runtime or Docker wants no other isolation in its place.
        if wanted == "docker" or image is not None or runtime is not None:
            raise
        fault = bwrap_fault()
        if fault is not None:
            raise SandboxUnavailable(f"{error} And {fault}") from error
        _warn(error)
    return BwrapBackend(limits, tuple(preload))


_warned = threading.Event()


def _weakness() -> str:
    return "" if can_group() else ", which here bounds memory for each process only"


def _warn(cause: Exception) -> None:
    if not _warned.is_set():
        _warned.set()
        warnings.warn(
            f"programs run under bubblewrap{_weakness()}: {cause}",
            RuntimeWarning,
            stacklevel=5,
        )
