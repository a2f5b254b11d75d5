"""What starts slots, and which of the ways to start them is used here."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Sequence
from typing import Literal, Protocol

from .bwrap import BwrapBackend, bwrap_fault
from .docker import DEFAULT_IMAGE, DockerBackend
from .errors import ImageUnavailable, SandboxUnavailable
from .hosts import HostsBackend
from .limits import Limits
from .slot import Slot

BackendName = Literal["docker", "bwrap"]


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


def choose_backend(
    image: str | None,
    wanted: str | None,
    limits: Limits,
    preload: Sequence[str],
    *,
    hosts: Sequence[str] | None = None,
    runtime: str | None = None,
    slots: int | None = None,
) -> Backend:
    """The backend that was asked for; else Docker, else bubblewrap with one warning.

    Raises:
        SandboxUnavailable: it, or either, cannot be used.
        ImageUnavailable: the image asked for is missing.
    """
    if wanted == "bwrap":
        return BwrapBackend(limits, tuple(preload))
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


def _warn(cause: Exception) -> None:
    if not _warned.is_set():
        _warned.set()
        warnings.warn(
            f"programs run under bubblewrap, which bounds memory for each process only: {cause}",
            RuntimeWarning,
            stacklevel=5,
        )
