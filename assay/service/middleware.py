"""Middleware: token, origin, body size and the access log."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import json
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from typing import Any
from urllib.parse import urlsplit

from .identity import HEADER
from .in_flight import Reservation
from .refused import Refused
from .service import EnvironmentService
from .tokens import Tokens

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

OPEN = frozenset({"/healthz", "/readyz", "/openapi.json", "/openenv/health"})
_PLACES = {"connections": "requests are under way", "sockets": "WebSockets are open"}
_access = logging.getLogger("assay.service.access")
_log = logging.getLogger("assay.service")


class ServiceMiddleware:
    """Refuse requests before the body is parsed.

    A request is let in that has a known token (if there are any), comes from no foreign web page,
    and whose body is complete in time and no larger than it may be, whether it has a length or
    comes in chunks. ``scope["assay.owner"]`` is the token's name, ``""`` without tokens.

    Args:
        app: what answers.
        service: whose limits and metrics these are.
        tokens: who may ask.
        routes: paths that are counted by their own name; the rest is ``other``.
    """

    def __init__(
        self, app: App, *, service: EnvironmentService, tokens: Tokens, routes: frozenset[str]
    ) -> None:
        self.app, self.service, self.tokens, self.routes = app, service, tokens, routes
        self.limits, self.metrics = service.limits, service.metrics
        self._serves = service.identity.encode()
        self._taken = {kind: Counter[str]() for kind in _PLACES}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, as ASGI has it."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        started, status, size = time.perf_counter(), 0, 0

        async def sent(message: MutableMapping[str, Any]) -> None:
            nonlocal status, size
            if message["type"] in ("http.response.start", "websocket.http.response.start"):
                status = message["status"]
            elif message["type"] == "websocket.accept":
                status = 101
            size += len(message.get("body", b"")) + len(message.get("text") or "")
            await send(message)

        try:
            await self._let_in(scope, receive, sent)
        except Refused as refused:
            self.metrics.refused(refused)
            await _refuse(scope, receive, sent, refused)
        except Exception as error:
            if status:
                raise
            _log.exception("a route raised %s", type(error).__name__)
            await _refuse(scope, receive, sent, Refused(500, "fault", "a fault of the server's"))
        finally:
            seconds = time.perf_counter() - started
            if scope["type"] == "http":
                self.metrics.answered(self._route(scope), status, seconds)
            self._note(scope, status, size, seconds)

    async def _let_in(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = _headers(scope)
        scope["assay.owner"] = ""
        self._refuse_foreign(headers, (scope.get("client") or ("",))[0])
        if scope["path"] in OPEN:  # no body is read: it may never come
            await self.app(scope, receive, send)
            return
        if self.tokens:
            name = self.tokens.name_of(headers.get(b"authorization"))
            if name is None:
                raise Refused(
                    401, "token", "expected 'Authorization: Bearer TOKEN' with a known token"
                )
            scope["assay.owner"] = name
        if headers.get(HEADER.encode(), self._serves) != self._serves:
            raise Refused(
                409,
                "environment",
                "another environment is served now than the client began with: its tasks, "
                "verifiers or version differ, and so may its scores. Begin anew with it",
            )
        kind = "connections" if scope["type"] == "http" else "sockets"
        with self._place(kind, scope["assay.owner"]):
            if scope["type"] == "websocket":
                await self.app(scope, receive, send)
                return
            with Reservation(self.service.in_flight) as reservation:
                whole = await self._whole_body(headers, receive, reservation)
                await self.app(scope, whole, send)

    @contextlib.contextmanager
    def _place(self, kind: str, owner: str) -> Iterator[None]:
        """Take one of the places that there are for requests, or for WebSockets.

        Raises:
            Refused: 503: they are taken.
        """
        taken, most = self._taken[kind], getattr(self.limits, kind)
        own = max(1, int(most * self.service.budget.share))
        if taken.total() >= most:
            raise Refused(503, kind, f"{most} {_PLACES[kind]} already: come back later", retry_s=1)
        if taken[owner] >= own:
            message = f"{own} {_PLACES[kind]} for this token already (token_share): come back later"
            raise Refused(503, "share", message, retry_s=1)
        taken[owner] += 1
        self.metrics.gauges[kind].inc()
        try:
            yield
        finally:
            taken[owner] -= 1
            self.metrics.gauges[kind].dec()

    def _refuse_foreign(self, headers: dict[bytes, bytes], client: str) -> None:
        """Refuse what a web page of another origin asks, or one whose name leads here.

        Without tokens a browser on this machine would be let in whatever page it shows; and other
        machines would be if somebody has an ASGI server of their own listen to the network.
        """
        host = headers.get(b"host", b"").decode("latin-1")
        if not self.tokens and not (_loopback(host) and _here(client)):
            raise Refused(
                403, "host", "without tokens only localhost is answered: start with --token-file"
            )
        origin = headers.get(b"origin", b"").decode("latin-1")
        try:
            same = not origin or urlsplit(origin).netloc == host
        except ValueError:
            same = False
        if not same:
            raise Refused(403, "origin", "requests of other web pages are not answered")

    async def _whole_body(
        self, headers: dict[bytes, bytes], receive: Receive, reservation: Reservation
    ) -> Receive:
        """Read the body; return what a route receives it by."""
        limit = self.limits.body_bytes
        too_large = Refused(
            413, "body", f"the body is larger than {limit} bytes: send it in several requests"
        )
        if headers.get(b"content-encoding", b"identity").lower() != b"identity":
            raise Refused(415, "encoding", "bodies are not unpacked: send them as they are")
        length = headers.get(b"content-length", b"0")
        if not length.isdigit() or len(length) > 18 or int(length) > limit:
            raise too_large
        body, more = bytearray(), True
        try:
            async with asyncio.timeout(self.limits.read_s):
                while more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise Refused(400, "gone", "the connection ended before the body did")
                    body += message.get("body", b"")
                    if len(body) > limit:
                        raise too_large
                    reservation.resize(len(body))
                    more = message.get("more_body", False)
        except TimeoutError as error:
            raise Refused(
                408, "slow", f"the body was not complete after {self.limits.read_s:g} s"
            ) from error
        rest = iter([{"type": "http.request", "body": bytes(body), "more_body": False}])

        async def again() -> MutableMapping[str, Any]:
            return next(rest, None) or await receive()

        return again

    def _route(self, scope: Scope) -> str:
        path = scope["path"]
        if scope.get("client") is None:  # over a Unix socket, counted by the other worker
            return "worker"
        if path in self.routes:
            return str(path)
        first = "/".join(path.split("/")[:3])
        return f"{first}/..." if first in self.routes else "other"

    def _note(self, scope: Scope, status: int, size: int, seconds: float) -> None:
        """Log a request as a JSON object; never a token, a body or a query."""
        if not _access.isEnabledFor(logging.INFO):
            return
        row = {
            "at": round(time.time(), 3),
            "client": (scope.get("client") or ("",))[0],
            "owner": scope.get("assay.owner", ""),
            "method": scope.get("method", "WEBSOCKET"),
            "path": scope["path"][:200],
            "status": status,
            "bytes": size,
            "ms": round(1000 * seconds, 3),
        }
        _access.info("%s", json.dumps(row))


def _headers(scope: Scope) -> dict[bytes, bytes]:
    """Return headers by name; a doubled one that decides something is refused, not chosen from."""
    found: dict[bytes, bytes] = {}
    for name, value in scope["headers"]:
        if name in found and name in (b"authorization", b"host", b"origin", b"content-length"):
            raise Refused(400, "header", f"more than one {name.decode()} header")
        found[name] = value
    return found


def _loopback(host: str) -> bool:
    try:
        name = urlsplit(f"//{host}").hostname or ""
        return name == "localhost" or ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def _here(client: str) -> bool:
    """Return whether an address is this machine's; of a Unix socket there is none."""
    try:
        return ipaddress.ip_address(client).is_loopback
    except ValueError:
        return client == ""


async def _refuse(scope: Scope, receive: Receive, send: Send, refused: Refused) -> None:
    """Answer with what is refused and why, and take no more of this connection's body."""
    kind = "http.response" if scope["type"] == "http" else "websocket.http.response"
    body = json.dumps(refused.to_json()).encode()
    headers = {
        "content-type": "application/json",
        "content-length": str(len(body)),
        "connection": "close",
        **refused.headers,
    }
    if refused.status == 401:
        headers["www-authenticate"] = "Bearer"
    if kind.startswith("websocket"):
        await receive()  # the connect event
    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    try:
        await send({"type": f"{kind}.start", "status": refused.status, "headers": raw})
        await send({"type": f"{kind}.body", "body": body})
    except OSError:  # the client has disconnected
        return
