"""Opens the sessions of one sandbox."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Mapping
from typing import Literal

from ..cores import usable_cores
from ..errors import SandboxError, SandboxUnavailable
from .bwrap import BwrapSessions
from .channel import ChannelBroken
from .docker import DockerSessions, ImageFacts
from .limits import SessionLimits
from .network import ENVIRONMENT, PORT, Allowlist, Forward, Proxy
from .pool import WarmPool
from .session import Origin, Session, checked_environment


class SessionFactory:
    """Opens sessions of one backend, and ends with them.

    Args:
        backend: ``docker``, which is the default, or ``bwrap``.
        image: what sessions start from unless they name another.
        host: address of the daemon. Default: the local one, or DOCKER_HOST's.
        runtime: of the daemon's containers.

    Raises:
        ValueError: the backend has no sessions.
        SandboxUnavailable: it cannot be used here.
    """

    def __init__(
        self,
        backend: str | None = None,
        image: str | None = None,
        *,
        host: str | None = None,
        runtime: str | None = None,
    ) -> None:
        self._backend: DockerSessions | BwrapSessions
        if backend == "bwrap":
            self._backend = BwrapSessions()
        elif backend in (None, "docker"):
            self._backend = DockerSessions(host, runtime)
        else:
            raise ValueError(f"backend={backend!r} has no sessions: use 'docker' or 'bwrap'")
        self._image = image or self._backend.default_image
        self._pool = WarmPool(lambda key: self._backend.start(*key), max(2, usable_cores()))
        self._open: weakref.WeakSet[Session] = weakref.WeakSet()
        self._lock = threading.Lock()
        self._closed = False

    def open(
        self,
        image: str | None,
        limits: SessionLimits,
        workdir: str | None,
        env: Mapping[str, str] | None,
        user: str | int | None,
        network: Literal["none"] | Allowlist | Forward,
    ) -> Session:
        """Open a session: see :meth:`Sandbox.session`.

        Raises:
            SandboxUnavailable, ImageUnavailable, SandboxError: it cannot be had.
        """
        variables = checked_environment(env)
        if workdir is not None and not workdir.startswith("/"):
            raise ValueError(f"workdir must begin with /, got {workdir!r}")
        if network != "none" and not isinstance(network, Allowlist | Forward):
            raise ValueError(f"network must be 'none', an Allowlist or a Forward, got {network!r}")
        with self._lock:
            if self._closed:
                raise SandboxUnavailable("the sandbox is closed: make a new one")
        proxy = ENVIRONMENT if isinstance(network, Allowlist) else {}
        facts = self._facts(image)
        origin = Origin(
            limits,
            {**facts.environment, **proxy, **variables},
            workdir or facts.folder,
            facts.user if user is None else str(user),
        )
        return self._start(facts.digest, origin, network)

    def warm(self, count: int, image: str | None, limits: SessionLimits) -> None:
        """Keep sessions started ahead: see :meth:`Sandbox.warm_sessions`."""
        if count < 0:
            raise ValueError(f"count must be 0 or more, got {count}")
        self._pool.keep((self._facts(image), limits), count)

    def ready(self, image: str | None, limits: SessionLimits) -> int:
        """Count these: see :meth:`Sandbox.ready_sessions`."""
        return self._pool.ready((self._facts(image), limits))

    def _facts(self, image: str | None) -> ImageFacts:
        return self._backend.facts(self._image if image is None else image)

    def _start(
        self, image: str, origin: Origin, network: Literal["none"] | Allowlist | Forward
    ) -> Session:
        facts = self._backend.facts(image)
        place = self._pool.take((facts, origin.limits))
        limits = origin.limits
        watched = self._backend.watched_bytes(limits)
        port = 0 if network == "none" else PORT
        try:
            place.channel.configure(limits.idle_s, limits.wall_s, watched, port)
        except ChannelBroken as error:  # one that was started ahead, and is lost since
            place.end()
            raise SandboxError(f"a session did not start: {error}") from error
        if network != "none":
            Proxy(place.channel, network)

        def again(snapshot: str) -> Session:
            return self._start(snapshot, origin, network)

        def keep(name: str | None, snapshot: str) -> None:
            if name is None:
                self._backend.own_snapshot(snapshot, image)

        session = Session(place, origin, image, again, keep)
        with self._lock:
            if not self._closed:
                self._open.add(session)
                return session
        session.close()
        raise SandboxUnavailable("the sandbox is closed: make a new one")

    def close(self) -> None:
        """End every session that is open, and remove snapshots that have no name."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            sessions = list(self._open)
        for session in sessions:
            session.close()
        self._pool.close()
        self._backend.close()
