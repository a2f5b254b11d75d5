"""The ways to start slots, and which of them a sandbox uses. A new backend is an entry here."""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..errors import ImageUnavailable, SandboxUnavailable
from .backend import Backend, Options
from .bwrap import BwrapBackend, bwrap_fault
from .cgroup import can_group
from .docker import DEFAULT_IMAGE, DockerBackend, daemon_fault
from .hosts import HostsBackend
from .process import ProcessBackend


@dataclass(frozen=True, slots=True)
class Entry:
    """One way to start slots.

    Attributes:
        open: makes the backend; raises SandboxUnavailable or ImageUnavailable.
        fault: returns why it cannot be used on this machine, ``None`` if it can.
        daemon: it runs containers: it takes an image, hosts and a runtime.
        safe: it isolates programs; one that does not needs ``unsafe=True``.
    """

    open: Callable[[Options], Backend]
    fault: Callable[[], str | None] = lambda: None
    daemon: bool = False
    safe: bool = True


def _open_docker(options: Options) -> Backend:
    tag, limits, preload = options.image or DEFAULT_IMAGE, options.limits, options.preload
    if options.hosts is None:
        return DockerBackend(tag, limits, preload, runtime=options.runtime)
    return HostsBackend(
        tag, options.hosts, limits, preload, runtime=options.runtime, slots=options.slots
    )


BACKENDS: dict[str, Entry] = {
    "docker": Entry(_open_docker, daemon_fault, daemon=True),
    "bwrap": Entry(
        lambda asked: BwrapBackend(asked.limits, asked.preload, tools=asked.tools), bwrap_fault
    ),
    "process": Entry(lambda asked: ProcessBackend(asked.limits, asked.preload), safe=False),
}


def wanted_backend(
    backend: str | None,
    *,
    image: str | None = None,
    hosts: Sequence[str] | None = None,
    runtime: str | None = None,
    unsafe: bool = False,
) -> str | None:
    """Return the backend that the arguments of a Sandbox, or else ASSAY_SANDBOX, ask for.

    Raises:
        ValueError: there is none of this name, it does not take an argument, or it is not safe.
    """
    chosen = backend or os.environ.get("ASSAY_SANDBOX") or None
    safe = [name for name, entry in BACKENDS.items() if entry.safe]
    if backend in BACKENDS.keys() - safe:
        if not unsafe:
            raise ValueError(
                f"backend={backend!r} runs programs on this machine with no isolation at all: they "
                "may read, change and send away whatever this user may. Use "
                f"{' or '.join(f'backend={name!r}' for name in safe)}; for programs that you "
                "trust, say unsafe=True as well"
            )
    elif unsafe:
        raise ValueError(f"unsafe=True is for backend='process' only, got backend={backend!r}")
    elif chosen not in (None, *safe):
        name = "backend" if backend else "the environment variable ASSAY_SANDBOX"
        raise ValueError(f"{name} must be {' or '.join(map(repr, safe))}, got {chosen!r}")
    if chosen is not None and not BACKENDS[chosen].daemon:
        if image is not None:
            raise ValueError(f"{chosen} shows the host's Python and has no image, got {image!r}")
        if hosts or runtime:
            value = f"hosts={hosts!r}" if hosts else f"runtime={runtime!r}"
            raise ValueError(f"{chosen} runs on this machine, without a daemon: leave out {value}")
    return chosen


def checked_preload(preload: Sequence[str]) -> tuple[str, ...]:
    """Check names of modules, and return them.

    Raises:
        ValueError: it is one text, or a name in it can be no module's.
    """
    if isinstance(preload, str):
        raise ValueError(f"preload takes a list of modules, got one text: give [{preload!r}]")
    for name in preload:
        if not isinstance(name, str) or not all(map(str.isidentifier, name.split("."))):
            raise ValueError(f"preload must hold names of modules, such as 'numpy', got {name!r}")
    return tuple(preload)


def choose_backend(wanted: str | None, options: Options) -> Backend:
    """Open the backend that was asked for; else Docker, else bubblewrap with one warning.

    Raises:
        SandboxUnavailable: it, or either, cannot be used.
        ImageUnavailable: the image asked for is missing.
    """
    try:
        return BACKENDS[wanted or "docker"].open(options)
    except (SandboxUnavailable, ImageUnavailable) as error:
        # Whoever names an image, hosts, a runtime or a backend wants no other isolation instead.
        if wanted or options.image or options.hosts or options.runtime:
            raise
        fault = bwrap_fault()
        if fault is not None:
            raise SandboxUnavailable(f"{error} And {fault}") from error
        _warn(error)
    return BACKENDS["bwrap"].open(options)


_warned = threading.Event()


def _weakness() -> str:
    return "" if can_group() else ", which here bounds memory for each process only"


def _warn(cause: Exception) -> None:
    if not _warned.is_set():
        _warned.set()
        warnings.warn(
            f"programs run under bubblewrap{_weakness()}: {cause}", RuntimeWarning, stacklevel=5
        )
