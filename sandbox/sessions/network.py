"""The only way out of a session that has one: a proxy for the hosts of a list, or one server.

A session has no network device but its own loopback. Its supervisor listens there and hands each
connection over as a job, whose stdin and stdout are the connection's. So nothing else can leave,
and where it goes is decided here, outside of the session.
"""

from __future__ import annotations

import contextlib
import ipaddress
import re
import socket
import threading
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from urllib.parse import urlsplit

from .channel import Channel, ChannelBroken, Job

PORT = 3128
ENVIRONMENT = {
    **dict.fromkeys(
        ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), f"http://127.0.0.1:{PORT}"
    ),
    **dict.fromkeys(("no_proxy", "NO_PROXY"), "localhost,127.0.0.1"),
}
"""What makes programs use the proxy."""

_WAITING = 4  # connections that may come at one time
_LARGEST_HEAD = 1 << 16
_CONNECT_S = 15.0
_AGAIN_S = 0.1
_UNREAD_MS = 300_000
_QUEUED = 1024  # pieces of at most 64 KiB, of a session, that slow servers have not taken
_HOST = re.compile(r"(\*\.)?[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?")


@dataclass(frozen=True, slots=True)
class Allowlist:
    """Hosts that a session may reach, by HTTP and by HTTPS, through a proxy.

    Args:
        hosts: ``name`` for the ports 80 and 443, ``name:port``, or ``*.name`` for all below one.
            A name must lead to public addresses; one that is an address, or ``localhost``, says
            what it means.

    Raises:
        ValueError: one is malformed.
    """

    hosts: tuple[str, ...]

    def __init__(self, hosts: Sequence[str]) -> None:
        if isinstance(hosts, str):
            raise ValueError(f"hosts must be a list, got one text: give [{hosts!r}]")
        for host in hosts:
            name, _, port = host.partition(":")
            if not _HOST.fullmatch(name) or (port and not port.isdigit()):
                raise ValueError(f"a host is name, name:port or *.name, got {host!r}")
        object.__setattr__(self, "hosts", tuple(host.lower() for host in hosts))

    def allows(self, name: str, port: int) -> bool:
        """Return whether a connection may be made."""
        name = name.lower().rstrip(".")
        for host in self.hosts:
            wanted, _, only = host.partition(":")
            below = wanted.startswith("*.") and name.endswith(wanted[1:])
            if (name == wanted or below) and port in ((int(only),) if only else (80, 443)):
                return True
        return False


@dataclass(frozen=True, slots=True)
class Forward:
    """The one server that a session may reach: its own 127.0.0.1, port 3128, leads there.

    Args:
        host: of the server, as this machine sees it.
        port: likewise.
    """

    host: str
    port: int

    @property
    def inside(self) -> str:
        """The server's address in the session."""
        return f"http://127.0.0.1:{PORT}"


class Proxy:
    """Takes a session's connections, for as long as its channel lives.

    Args:
        channel: of the session; it listens already.
        allowed: where connections may go.
    """

    def __init__(self, channel: Channel, allowed: Allowlist | Forward) -> None:
        self._channel = channel
        self._allowed = allowed
        self._room = threading.Semaphore(_QUEUED)
        for _ in range(_WAITING):
            self._wait_for_one()

    def _wait_for_one(self) -> None:
        with contextlib.suppress(ChannelBroken):
            pipe = _Pipe(self._room)
            job = self._channel.start(
                "n",
                ["proxy"],
                {},
                user="65534:65534",
                folder="/",
                flags=0,
                timeout_s=None,
                output_bytes=1 << 62,
                file_bytes=1,
                into=pipe,
            )
            threading.Thread(target=self._serve, args=(job, pipe), daemon=True).start()

    def _serve(self, job: Job, pipe: _Pipe) -> None:
        """Serve one connection, once it has come."""
        first = pipe.get(job)
        if self._channel.ended:
            return
        if not first:
            time.sleep(_AGAIN_S)  # it was killed, or the session has no room for it
        self._wait_for_one()
        with contextlib.suppress(ChannelBroken, OSError, ValueError):
            upstream, greeting, rest = self._connect(job, pipe, first)
            with upstream:
                upstream.settimeout(None)  # an answer may take its time, but what is sent is read
                upstream.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _UNREAD_MS)
                if greeting:
                    self._channel.write(job, greeting, last=False)
                upstream.sendall(rest)
                back = threading.Thread(target=self._bring_back, args=(job, upstream), daemon=True)
                back.start()
                while piece := pipe.get(job):
                    upstream.sendall(piece)
                with contextlib.suppress(OSError):
                    upstream.shutdown(socket.SHUT_RDWR)  # nobody reads any more
                back.join()
        with contextlib.suppress(ChannelBroken):
            self._channel.kill(job)
        self._channel.forget(job)
        pipe.drop(job)

    def _connect(self, job: Job, pipe: _Pipe, head: bytes) -> tuple[socket.socket, bytes, bytes]:
        """Open the connection that a request asks for, or refuse it.

        Returns the connection, what to answer, and what to send on.

        Raises:
            ValueError: it is refused.
            OSError: it cannot be made.
        """
        if isinstance(self._allowed, Forward):
            server = (self._allowed.host, self._allowed.port)
            return socket.create_connection(server, _CONNECT_S), b"", head
        while b"\r\n\r\n" not in head:
            piece = pipe.get(job)
            if not piece or len(head) > _LARGEST_HEAD:
                raise ValueError("no request")
            head += piece
        head, _, body = head.partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        method, target, version = lines[0].split(" ")
        tunnel = method == "CONNECT"
        parts = urlsplit(f"//{target}" if tunnel else target)
        name, port = parts.hostname or "", parts.port or 80
        if (not tunnel and parts.scheme != "http") or not self._allowed.allows(name, port):
            self._answer(job, f"403 this session may not reach {name}:{port}")
            raise ValueError("refused")
        try:
            upstream = _open(name, port)
        except OSError as error:
            self._answer(job, f"502 {name}:{port} cannot be reached: {error}")
            raise
        if tunnel:
            return upstream, b"HTTP/1.1 200 OK\r\n\r\n", body
        # Another name in its Host would lead to another site of the same server.
        dropped = ("proxy-", "connection:", "host:")
        kept = [x for x in lines[1:] if not x.lower().startswith(dropped)]
        kept.insert(0, f"Host: {parts.netloc.rpartition('@')[2]}")
        path = parts.path or "/"
        path += f"?{parts.query}" if parts.query else ""
        request = "\r\n".join([f"{method} {path} {version}", *kept, "Connection: close", "", ""])
        return upstream, b"", request.encode("latin-1") + body

    def _answer(self, job: Job, status: str) -> None:
        line = re.sub(r"[\r\n]", " ", status)
        text = f"HTTP/1.1 {line}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
        self._channel.write(job, text.encode("latin-1", "replace"), last=True)
        job.wait(lambda job: bool(job.how), _CONNECT_S)  # it has read that, and hung up

    def _bring_back(self, job: Job, upstream: socket.socket) -> None:
        with contextlib.suppress(ChannelBroken, OSError):
            while piece := upstream.recv(1 << 16):
                self._channel.write(job, piece, last=False)
        with contextlib.suppress(ChannelBroken):
            self._channel.write(job, b"", last=True)


def _open(name: str, port: int) -> socket.socket:
    """Connect to a host; by name only to public addresses."""
    with contextlib.suppress(ValueError):
        return socket.create_connection((str(ipaddress.ip_address(name)), port), _CONNECT_S)
    found = socket.getaddrinfo(name, port, type=socket.SOCK_STREAM)
    for *_, address in found:
        number = str(address[0])
        if name == "localhost" or ipaddress.ip_address(number).is_global:
            # By the address that was looked at: the next answer to the name may be another.
            return socket.create_connection((number, port), _CONNECT_S)
    raise OSError("it leads to no public address")


class _Pipe(BytesIO):
    """Bytes on their way from a session's reading thread to a connection's.

    Args:
        room: for pieces, which all connections of a session share: it may open many.
    """

    def __init__(self, room: threading.Semaphore) -> None:
        super().__init__()
        self._pieces: deque[bytes] = deque()
        self._room = room
        self._over = False

    def write(self, data: bytes) -> int:  # type: ignore[override]
        """Hand on a piece. A connection that does not take what it gets is given up."""
        self._over = self._over or not self._room.acquire(blocking=False)
        if not self._over:
            self._pieces.append(bytes(data))
        return len(data)

    def get(self, job: Job) -> bytes:
        """Return the next piece; empty at the end."""
        job.wait(lambda job: bool(self._pieces or self._over or job.how), None)
        if not self._pieces:
            return b""
        self._room.release()
        return self._pieces.popleft()

    def drop(self, job: Job) -> None:
        """Take no more, and give back the room of what nobody gets."""
        with job.changed:
            self._over = True
        while self.get(job):
            pass
