"""Who may ask: bearer tokens, and the middleware before the routes."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import hmac
import ipaddress
import json
import logging
import stat
import time
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .limits import Refused
from .schemas import HEADER
from .service import EnvironmentService

SHORTEST = 16
OPEN = frozenset({"/healthz", "/readyz", "/openapi.json", "/openenv/health"})
_PLACES = {"connections": "requests are under way", "sockets": "WebSockets are open"}
_access = logging.getLogger("assay.service.access")
_log = logging.getLogger("assay.service")


class Tokens:
    """The tokens that a server knows; none of them is ever shown.

    Only hashes are kept, and every one is compared each time, in constant time.

    Args:
        tokens: secrets of at least 16 characters. Without any, everybody is let in.

    Raises:
        ValueError: a token is shorter, or holds white space or characters outside ASCII.
    """

    def __init__(self, tokens: Iterable[str] = ()) -> None:
        self._known: list[tuple[bytes, str]] = []
        for place, token in enumerate(tokens, start=1):
            if len(token) < SHORTEST or not token.isascii() or len(token.split()) != 1:
                raise ValueError(
                    f"token {place} must be at least {SHORTEST} ASCII characters without white "
                    "space (it is not shown here); make one with: "
                    "python -c 'import secrets; print(secrets.token_urlsafe(32))'"
                )
            digest = hashlib.sha256(token.encode()).digest()
            self._known.append((digest, f"token-{hashlib.sha256(digest).hexdigest()[:8]}"))

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """Read one token per line, skipping empty lines and lines that begin with ``#``.

        Raises:
            ValueError: there is none, or one cannot be used.
            OSError: the file cannot be read.
        """
        mode = Path(path).stat().st_mode & 0o777
        if mode & stat.S_IROTH:
            warnings.warn(
                f"everybody on this machine can read the tokens in {path} (mode {mode:04o}): "
                f"chmod 600 {path}",
                stacklevel=2,
            )
        lines = (line.strip() for line in Path(path).read_text(encoding="utf-8").splitlines())
        found = [line for line in lines if line and not line.startswith("#")]
        if not found:
            raise ValueError(f"{path} holds no token: write one on a line of its own")
        return cls(found)

    def __len__(self) -> int:
        return len(self._known)

    def __repr__(self) -> str:
        return f"Tokens({len(self)})"

    def name_of(self, header: bytes | None) -> str | None:
        """Return a short name for the token of an ``Authorization`` header, for logs and limits.

        Returns:
            ``None`` if it holds none of the tokens.
        """
        kind, _, token = (header or b"").partition(b" ")
        given = hashlib.sha256(token.strip()).digest()
        names = [name for digest, name in self._known if hmac.compare_digest(digest, given)]
        return names[0] if names and kind.lower() == b"bearer" else None


def is_loopback(host: str) -> bool:
    """Return whether a name or address is this machine's own."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def check_exposure(host: str, tokens: Tokens) -> None:
    """Refuse to be open to a network without tokens.

    Raises:
        ValueError: the address is not this machine's own, and there are no tokens.
    """
    if not tokens and not is_loopback(host):
        raise ValueError(
            f"--host {host} is open to others, and there is no token: anybody could ask. Give "
            "--token-file FILE or set ASSAY_SERVE_TOKEN (python -c 'import secrets; "
            "print(secrets.token_urlsafe(32))' makes one), or listen on 127.0.0.1"
        )


class ServiceMiddleware:
    """Refuse requests before their bodies are parsed.

    A request is let in that has a known token (if there are any), comes from no foreign web page,
    finds a place, and whose body is complete in time and no larger than it may be.
    ``scope["assay.owner"]`` is the token's name, ``""`` without tokens.

    Args:
        app: what answers.
        service: whose limits and metrics these are.
        tokens: who may ask.
        routes: paths that are counted by their own name; the rest is ``other``.
    """

    def __init__(
        self, app: ASGIApp, service: EnvironmentService, tokens: Tokens, routes: frozenset[str]
    ) -> None:
        self.app, self.service, self.tokens, self.routes = app, service, tokens, routes
        self.limits, self.metrics = service.limits, service.metrics
        self._taken = {kind: Counter[str]() for kind in _PLACES}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, as ASGI has it."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        started, status, size = time.perf_counter(), 0, 0

        async def sent(message: Message) -> None:
            nonlocal status, size
            if message["type"].endswith("response.start"):
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
            if _access.isEnabledFor(logging.INFO):
                _access.info("%s", _line(scope, status, size, seconds))

    async def _let_in(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = dict(scope["headers"])  # h11 refuses a second Host or Content-Length
        scope["assay.owner"] = owner = ""
        self._refuse_foreign(headers, (scope.get("client") or ("",))[0])
        if scope["path"] in OPEN:  # no body is read: it may never come
            await self.app(scope, receive, send)
            return
        if self.tokens:
            owner = self.tokens.name_of(headers.get(b"authorization")) or ""
            if not owner:
                raise Refused(
                    401, "token", "expected 'Authorization: Bearer TOKEN' with a known token"
                )
            scope["assay.owner"] = owner
        serves = self.service.identity.encode()
        if headers.get(HEADER.encode(), serves) != serves:
            raise Refused(
                409,
                "environment",
                "another environment is served now than the client began with: its tasks, "
                "verifiers or version differ, and so may its scores. Begin anew with it",
            )
        if scope["type"] == "websocket":
            with self._place("sockets", owner):
                await self.app(scope, receive, send)
            return
        with self._place("connections", owner), contextlib.ExitStack() as ends:
            body = await self._body(headers, receive, ends)
            rest = iter([{"type": "http.request", "body": body, "more_body": False}])

            async def again() -> Message:
                return next(rest, None) or await receive()

            await self.app(scope, again, send)

    @contextlib.contextmanager
    def _place(self, kind: str, owner: str) -> Iterator[None]:
        """Take one of the places for requests, or for WebSockets; refuse if they are taken."""
        taken, most = self._taken[kind], getattr(self.limits, kind)
        own = max(1, int(most * self.service.sessions.share))
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
        """Refuse a web page of another origin, or one whose name resolves to this machine.

        Without tokens a browser on this machine would be let in whatever page it shows; and other
        machines would be if somebody has an ASGI server of their own listen to the network.
        """
        host = headers.get(b"host", b"").decode("latin-1")
        origin = headers.get(b"origin", b"").decode("latin-1")
        try:
            local = is_loopback(urlsplit(f"//{host}").hostname or "")
            same = not origin or urlsplit(origin).netloc == host
        except ValueError:
            local = same = False
        # Over a Unix socket, from another worker, there is no client address.
        if not self.tokens and not (local and (client == "" or is_loopback(client))):
            raise Refused(
                403, "host", "without tokens only localhost is answered: start with --token-file"
            )
        if not same:
            raise Refused(403, "origin", "requests of other web pages are not answered")

    async def _body(
        self, headers: dict[bytes, bytes], receive: Receive, ends: contextlib.ExitStack
    ) -> bytes:
        """Read the body; its bytes are in flight until ``ends`` does."""
        limit, held = self.limits.body_bytes, 0
        ends.callback(lambda: self.service.in_flight.resize(held, 0))
        too_large = Refused(
            413, "body", f"the body is larger than {limit} bytes: send it in several requests"
        )
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
                    held = self.service.in_flight.resize(held, len(body))
                    more = message.get("more_body", False)
        except TimeoutError as error:
            why = f"the body was not complete after {self.limits.read_s:g} s"
            raise Refused(408, "slow", why) from error
        return bytes(body)

    def _route(self, scope: Scope) -> str:
        """Return one of few names: never what a client made up."""
        path = scope["path"]
        if scope.get("client") is None:  # over a Unix socket, counted by the other worker
            return "worker"
        if path in self.routes:
            return str(path)
        first = "/".join(path.split("/")[:3])
        return f"{first}/..." if first in self.routes else "other"


def _line(scope: Scope, status: int, size: int, seconds: float) -> str:
    """Return a line of the access log; never a token, a body or a query."""
    row: dict[str, Any] = {
        "at": round(time.time(), 3),
        "client": (scope.get("client") or ("",))[0],
        "owner": scope.get("assay.owner", ""),
        "method": scope.get("method", "WEBSOCKET"),
        "path": scope["path"][:200],
        "status": status,
        "bytes": size,
        "ms": round(1000 * seconds, 3),
    }
    return json.dumps(row)


async def _refuse(scope: Scope, receive: Receive, send: Send, refused: Refused) -> None:
    """Answer with the reason, and take no more of this connection's body."""
    headers = {"connection": "close", **refused.headers}
    if refused.status == 401:
        headers["www-authenticate"] = "Bearer"
    if scope["type"] == "websocket":
        await receive()  # the connect event
    with contextlib.suppress(OSError):  # the client has disconnected
        await JSONResponse(refused.to_json(), refused.status, headers)(scope, receive, send)
