"""Several Docker daemons as one backend."""

from __future__ import annotations

import logging
import threading
import time
import warnings
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from math import ceil
from typing import Any

from ..errors import ImageUnavailable, SandboxUnavailable
from ..limits import Limits
from .docker import PATIENCE_S, POLL_S, DockerBackend
from .forks import call_after_fork
from .slot import Slot, SlotBroken, Unreachable

REST_S = 30.0
"""Seconds for which a host that starts no slots is left out."""

SUSPECT_S = 10.0
"""Seconds for which the other hosts go first after a slot of one broke."""

OVERLOAD = 2
"""Times its share of the slots that a host may take while others are lost. Wall limits are four
times the CPU limits: with much more, programs would time out for want of cores."""

_log = logging.getLogger(__name__)


class Host:
    """One daemon, its slots, and its circuit breaker.

    Attributes:
        address: as the user gave it.
        backend: its backend; ``None`` until it first answers.
        cores: of its machine.
        slots: one token for each slot that exists or is being started.
        rests_until: when it is tried again, by ``time.monotonic``.
        suspect_until: until when the others go first.
        cause: why it rests.
    """

    def __init__(self, address: str) -> None:
        self.address = address
        self.backend: DockerBackend | None = None
        self.cores = 1
        self.slots: set[object] = set()
        self.rests_until = 0.0
        self.suspect_until = 0.0
        self.cause = ""
        self.connecting = threading.Lock()

    def rest(self, cause: str) -> None:
        """Start nothing there for a while; slots that work serve on."""
        if cause != self.cause or not self.rests:
            _log.warning("no slot starts at %s for %g s: %s", self.address, REST_S, cause)
        self.cause = cause
        self.rests_until = time.monotonic() + REST_S

    def suspect(self) -> None:
        """Let the other hosts go first for a while, since a slot broke here."""
        self.suspect_until = time.monotonic() + SUSPECT_S

    @property
    def rests(self) -> bool:
        """Return True while it is left out."""
        return time.monotonic() < self.rests_until


class HostsBackend:
    """Starts each slot on the host with the fewest for its cores, and leaves out hosts that fail.

    Args:
        image: all hosts must have it, the same to the byte.
        hosts: addresses of their daemons.
        limits, preload, runtime: see :class:`DockerBackend`.
        slots: how many all hosts together have, by their cores. Default: one for each core.

    Raises:
        SandboxUnavailable: no host answers, or one does not have the runtime.
        ImageUnavailable: one lacks the image, or has another of that name.
    """

    name = "docker"
    tools = True

    def __init__(
        self,
        image: str,
        hosts: Sequence[str],
        limits: Limits,
        preload: tuple[str, ...] = (),
        *,
        runtime: str | None = None,
        slots: int | None = None,
    ) -> None:
        self.limits = limits
        self.hosts = [Host(address) for address in hosts]
        self._tag = image
        self._preload = preload
        self._runtime = runtime
        self._lock = threading.Lock()
        self._content: tuple[str, Any] | None = None
        self.image = ""
        call_after_fork(self, "forget")
        try:
            self._connect_all()
        except BaseException:
            self.close()
            raise
        self.slots = slots or self._cores()
        """Slots of all hosts together while none is lost."""

    @property
    def capacity(self) -> int:
        """Return how many slots the hosts that work may have now; at least one."""
        with self._lock:
            working = [host for host in self.hosts if not host.rests]
            return max(1, min(self.slots, sum(self._most(host) for host in working)))

    def start(self) -> Slot:
        """Start one slot on any host, waiting a while if one that may be restarting could.

        Raises:
            SlotBroken: no host starts one; the message says why not for each.
        """
        give_up = time.monotonic() + PATIENCE_S
        tried: list[Host] = []
        gone: list[Host] = []
        while True:
            with self._lock:
                host = self._next([*tried, *gone])
                slot = object()
                if host is not None:
                    host.slots.add(slot)
            if host is None:
                if not gone or time.monotonic() >= give_up:
                    causes = "; ".join(f"{host.address}: {host.cause}" for host in self.hosts)
                    raise SlotBroken(f"no host starts a container: {causes}")
                gone.clear()
                time.sleep(POLL_S)
                continue
            try:
                return self._start_on(host, slot)
            except SlotBroken as error:
                host.rest(str(error))
                host.slots.discard(slot)
                (gone if isinstance(error, Unreachable) else tried).append(host)
            except BaseException:
                host.slots.discard(slot)
                raise

    def close(self) -> None:
        """Close the connections. Containers are the slots' own."""
        for host in self.hosts:
            if host.backend is not None:
                host.backend.close()

    def forget(self) -> None:
        """Leave slots and locks, which may be held for ever, to the parent after a fork."""
        self._lock = threading.Lock()
        for host in self.hosts:
            host.connecting = threading.Lock()
            host.slots = set()

    def _start_on(self, host: Host, token: object) -> Slot:
        try:
            backend = self._connect(host)
        except SandboxUnavailable as error:
            raise Unreachable(str(error)) from error
        except ImageUnavailable as error:
            raise SlotBroken(str(error)) from error
        slot = backend.start(lambda: host.slots.discard(token), host.suspect)
        host.slots.add(token)  # failed attempts have removed it
        host.rests_until = 0.0
        return slot

    def _next(self, tried: list[Host]) -> Host | None:
        """Choose a host that works before one that is left out; among them the least loaded."""
        now = time.monotonic()
        left = [host for host in self.hosts if host not in tried]
        return min(
            left,
            key=lambda host: (host.rests, now < host.suspect_until, len(host.slots) / host.cores),
            default=None,
        )

    def _most(self, host: Host) -> int:
        return ceil(OVERLOAD * self.slots * host.cores / self._cores())

    def _cores(self) -> int:
        return sum(host.cores for host in self.hosts if host.backend is not None) or 1

    def _connect_all(self) -> None:
        with ThreadPoolExecutor(min(16, len(self.hosts)), "assay-host") as threads:
            futures = [threads.submit(self._connect, host) for host in self.hosts]
        failures: list[BaseException] = []
        for host, future in zip(self.hosts, futures, strict=True):
            error = future.exception()
            if isinstance(error, SandboxUnavailable):
                host.rest(str(error))
                failures.append(error)
            elif error is not None:
                raise error
        if len(failures) == len(self.hosts):
            causes = " ".join(str(error) for error in failures)
            raise SandboxUnavailable(f"none of {len(self.hosts)} hosts can be used: {causes}")
        if failures:
            causes = " ".join(str(error) for error in failures)
            warnings.warn(
                f"{len(failures)} of {len(self.hosts)} sandbox hosts are left out until they "
                f"answer: {causes}",
                RuntimeWarning,
                stacklevel=7,
            )

    def _connect(self, host: Host) -> DockerBackend:
        """Connect to a daemon, the first time only, and compare its image with the others'.

        Raises:
            SandboxUnavailable: it does not answer, or lacks the runtime.
            ImageUnavailable: it lacks the image, or has another.
        """
        with host.connecting:
            if host.backend is None:
                backend = DockerBackend(
                    self._tag,
                    self.limits,
                    self._preload,
                    host=host.address,
                    runtime=self._runtime,
                    patience_s=0.0,  # another host may be sooner
                )
                try:
                    self._compare(host, backend)
                except BaseException:
                    backend.close()
                    raise
                host.backend = backend
            return host.backend

    def _compare(self, host: Host, backend: DockerBackend) -> None:
        cores, content = backend.look()
        with self._lock:
            if self._content is None:
                self._content, self.image = (host.address, content), backend.image
            first, known = self._content
        if known != content:
            raise ImageUnavailable(
                f"image {self._tag!r} is {self.image} at {first} and {backend.image} at "
                f"{host.address}: the same programs would be paid differently. Bring one to the "
                f"other with `docker -H {first} save {self._tag} | docker -H {host.address} load`"
            )
        host.cores = cores
