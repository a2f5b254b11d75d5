"""The gateway as an ASGI application: routes, keys, errors, and a server in a thread."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import json
import logging
import threading
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import Any

import uvicorn
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response
from fastapi.security.utils import get_authorization_scheme_param
from pydantic_core import from_json
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from ..service.limits import ServiceLimits
from ..service.server import listen, url_of
from . import replies
from .episodes import Gateway, Refused, Session
from .requests import Body, ChatBody, CompletionBody, MessagesBody, ResponseBody

BODY_BYTES = 8 * 2**20
AT_ONCE = 64
"""Requests of one episode; what they hold is this machine's memory."""
_log = logging.getLogger("assay.gateway")
_Handler = Callable[[Session, Any, Request], Awaitable[Response]]


def create_app(gateway: Gateway, token: str | None = None) -> FastAPI:
    """Make an ASGI application.

    Programs ask at ``/v1/...`` with their episode's key, or at ``/e/KEY/v1/...``. With a token,
    ``POST /episodes`` opens an episode, ``GET /episodes/KEY`` shows its record, and
    ``DELETE /episodes/KEY`` ends it.

    Args:
        gateway: the episodes.
        token: of those who open and end them; without one they are opened in this process alone.
    """
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    routes: dict[str, tuple[type[Body], _Handler]] = {
        "/v1/chat/completions": (ChatBody, _completion),
        "/v1/completions": (CompletionBody, _completion),
        "/v1/responses": (ResponseBody, _responses),
        "/v1/messages": (MessagesBody, _messages),
    }
    for path, (body, handler) in routes.items():
        for prefix in ("", "/e/{key}"):
            app.post(prefix + path)(_route(gateway, body, handler))
    for prefix in ("", "/e/{key}"):
        app.get(f"{prefix}/v1/models")(_models(gateway))
        app.get(f"{prefix}/v1/models/{{model:path}}")(_models(gateway))
    if token is not None:
        _add_episodes(app, gateway, token)

    async def refuse(request: Request, error: Exception) -> Response:
        if isinstance(error, HTTPException):
            error = Refused(error.status_code, "not_found", str(error.detail))
        assert isinstance(error, Refused)  # noqa: S101  # what it is registered for
        anthropic = request.url.path.endswith("/v1/messages")
        return JSONResponse(error.to_anthropic() if anthropic else error.to_json(), error.status)

    app.add_exception_handler(Refused, refuse)
    app.add_exception_handler(HTTPException, refuse)
    return app


def _session(gateway: Gateway, request: Request) -> Session:
    """Return the episode whose key a request carries."""
    _, bearer = get_authorization_scheme_param(request.headers.get("authorization"))
    key = request.path_params.get("key") or request.headers.get("x-api-key") or bearer
    return gateway.find(key)


def _route(
    gateway: Gateway, body: type[Body], handler: _Handler
) -> Callable[[Request], Awaitable[Response]]:
    async def route(request: Request) -> Response:
        session = _session(gateway, request)
        if session.requests >= AT_ONCE:
            raise Refused(429, "rate_limit_exceeded", f"an episode has {AT_ONCE} requests at once")
        session.requests += 1
        try:
            raw = await _read(request)
            # In a thread: the schemas of strict tools take a while.
            return await handler(session, await asyncio.to_thread(_parse, body, raw), request)
        except Refused:
            raise
        except ClientDisconnect as error:
            raise Refused(499, "client_closed", "the program has hung up") from error
        except Exception as error:  # a bug of ours: the episode must not be judged by it
            _log.exception("a request failed")
            session.faults[b"gateway"] = why = f"{type(error).__name__}: {error}"
            raise Refused(500, "gateway_error", f"the gateway failed: {why}") from error
        finally:
            session.requests -= 1

    return route


async def _read(request: Request) -> bytes:
    """Read a body of bounded size."""
    raw = bytearray()
    async for part in request.stream():
        raw += part
        if len(raw) > BODY_BYTES:
            raise Refused(413, "too_large", f"a request has at most {BODY_BYTES} bytes")
    return bytes(raw)


def _parse(body: type[Body], raw: bytes) -> Any:
    try:
        # It refuses what has no tokens (halves of surrogate pairs), and deep nesting.
        given = from_json(raw, allow_inf_nan=False)
    except ValueError as error:
        raise Refused(400, "invalid_json", "the body is not valid JSON") from error
    return body.read(given)


async def _completion(
    session: Session, body: ChatBody | CompletionBody, request: Request
) -> Response:
    chat = body.chat()
    choices = await session.answer(chat, request.is_disconnected)
    made = replies.completion(
        choices,
        body.model or session.gateway.engine.name,
        chat=isinstance(body, ChatBody),
        logprobs=chat.logprobs,
        ids=body.return_token_ids,
    )
    usage = bool((body.stream_options or {}).get("include_usage"))
    return _send(made, body.stream and replies.completion_events(made, usage=usage))


async def _responses(session: Session, body: ResponseBody, request: Request) -> Response:
    previous = body.previous_response_id
    if previous is not None and previous not in session.responses:
        message = f"no response {previous!r:.80} in this episode"
        raise Refused(404, "not_found", message, "previous_response_id")
    chat = body.chat(session.responses.get(previous or "", ()))
    (choice,) = await session.answer(chat, request.is_disconnected)
    asked = {"previous_response_id": previous, "instructions": body.instructions}
    made = replies.response(choice, body.model or session.gateway.engine.name, asked)
    # Instructions are not carried over to the next response.
    said = [*chat.messages][bool(body.instructions) :]
    session.responses[made["id"]] = [*said, choice.turn.message]
    return _send(made, body.stream and replies.response_events(made))


async def _messages(session: Session, body: MessagesBody, request: Request) -> Response:
    (choice,) = await session.answer(body.chat(), request.is_disconnected)
    made = replies.message(choice, body.model or session.gateway.engine.name)
    return _send(made, body.stream and replies.message_events(made))


def _send(body: Any, events: Iterable[replies.Event] | bool) -> Response:
    """Send a body, or the events of a stream."""
    if isinstance(events, bool):
        return JSONResponse(body)
    lines = []
    for name, data in events:
        text = data if isinstance(data, str) else json.dumps(data)
        lines.append(f"{f'event: {name}' + chr(10) if name else ''}data: {text}\n\n")
    return Response("".join(lines), media_type="text/event-stream")


def _models(gateway: Gateway) -> Callable[[Request], Awaitable[Any]]:
    async def models(request: Request) -> Any:
        _session(gateway, request)
        about: dict[str, Any] = {"id": gateway.engine.name, "object": "model", "created": 0}
        about |= {"owned_by": "assay", "max_model_len": gateway.engine.longest}
        if (asked := request.path_params.get("model")) is not None:
            if asked != gateway.engine.name:
                raise Refused(404, "model_not_found", f"there is no model {asked!r:.80}", "model")
            return about
        return {"object": "list", "data": [about]}

    return models


def _add_episodes(app: FastAPI, gateway: Gateway, token: str) -> None:
    """Add the routes for those who open episodes."""

    def require(request: Request) -> None:
        _, given = get_authorization_scheme_param(request.headers.get("authorization"))
        if not hmac.compare_digest(given.encode(), token.encode()):
            raise Refused(401, "invalid_api_key", "the gateway's token is needed")

    @app.post("/episodes")
    async def begin(request: Request) -> Any:
        require(request)
        session = gateway.open()
        base = str(request.base_url).rstrip("/")
        return {"key": session.key, "base_url": f"{base}/v1", "own_url": f"{base}/e/{session.key}"}

    @app.get("/episodes/{key}")
    async def show(request: Request, key: str) -> Any:
        require(request)
        return gateway.find(key).to_json()

    @app.delete("/episodes/{key}")
    async def end(request: Request, key: str) -> Any:
        require(request)
        session = gateway.find(key)
        gateway.end(session)
        return session.to_json()


def uvicorn_server(app: FastAPI) -> uvicorn.Server:
    """Return a server; ``run([listener])`` serves until ``should_exit``."""
    config = uvicorn.Config(
        app,
        log_config=None,
        log_level="error",
        access_log=False,
        timeout_graceful_shutdown=1,
        lifespan="off",
    )
    return uvicorn.Server(config)


@contextlib.contextmanager
def served(gateway: Gateway) -> Iterator[str]:
    """Serve programs of this machine from a thread; yield the address."""
    with listen("127.0.0.1", 0, ServiceLimits()) as listener:
        server = uvicorn_server(create_app(gateway))
        thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
        thread.start()
        try:
            yield url_of(listener)
        finally:
            server.should_exit = True
            thread.join()
