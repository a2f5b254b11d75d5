"""What starts slots, and which of the ways to start them is used here."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Sequence
from typing import Literal, Protocol

from .bwrap import BwrapBackend, bwrap_fault
from .cgroup import can_group
from .docker import DEFAULT_IMAGE, DockerBackend
from .errors import ImageUnavailable, SandboxUnavailable
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
    image: str | None, wanted: str | None, limits: Limits, preload: Sequence[str]
) -> Backend:
    """The backend that was asked for; else Docker, else bubblewrap with one warning.

    Raises:
        SandboxUnavailable: it, or either, cannot be used.
        ImageUnavailable: the image asked for is missing.
    """
    if wanted == "bwrap":
        return BwrapBackend(limits, tuple(preload))
    try:
        return DockerBackend(image or DEFAULT_IMAGE, limits, tuple(preload))
    except (SandboxUnavailable, ImageUnavailable) as error:
        # Whoever names an image or Docker wants no other isolation in its place.
        if wanted == "docker" or image is not None:
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
