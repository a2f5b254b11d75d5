"""One WebSocket: many episodes, and many messages that are answered as they are ready."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator
from typing import Any

from fastapi import WebSocket, WebSocketDisconnect
from pydantic import ValidationError

from .grading import log
from .limits import Refused
from .schemas import OPS, Envelope
from .service import EnvironmentService
from .sessions import Client

encode = json.JSONEncoder(allow_nan=False, separators=(",", ":")).encode


@contextlib.asynccontextmanager
async def accept_socket(websocket: WebSocket, service: EnvironmentService) -> AsyncIterator[Client]:
    """Accept a WebSocket until its client leaves, and forget its episodes then."""
    client = Client(websocket.scope["assay.owner"])
    try:
        await websocket.accept()
        yield client
    except (WebSocketDisconnect, TimeoutError):
        pass
    finally:
        service.sessions.end(client)
        with contextlib.suppress(RuntimeError, WebSocketDisconnect):
            await websocket.close()


async def receive(websocket: WebSocket, service: EnvironmentService) -> str | bytes:
    """Return the next message; its length is in flight, and to be released with the answer.

    Raises:
        TimeoutError: nothing came for too long.
        WebSocketDisconnect: the client left, or there is no room for the message.
    """
    async with asyncio.timeout(service.limits.idle_s):
        message = await websocket.receive()
    if message["type"] == "websocket.disconnect":
        raise WebSocketDisconnect(message.get("code", 1000))
    text: str | bytes = message.get("text") or message.get("bytes") or ""
    try:
        service.in_flight.resize(0, len(text))
    except Refused as refused:
        service.metrics.refused(refused)
        await websocket.close(1013, refused.code)
        raise WebSocketDisconnect(1013) from refused
    return text


async def serve_socket(websocket: WebSocket, service: EnvironmentService) -> None:
    """Answer messages until the client leaves.

    One that has as many messages in progress as it may is not read from until that has changed.
    """
    room = asyncio.Semaphore(service.limits.in_flight)
    answering: set[asyncio.Task[None]] = set()

    async def reply(client: Client, text: str | bytes) -> None:
        try:
            with contextlib.suppress(WebSocketDisconnect, RuntimeError):
                await websocket.send_text(await _answer(service, client, text))
        finally:
            service.in_flight.resize(len(text), 0)
            room.release()

    async with accept_socket(websocket, service) as client:
        try:
            while True:
                text = await receive(websocket, service)
                await room.acquire()
                task = asyncio.create_task(reply(client, text))
                answering.add(task)
                task.add_done_callback(answering.discard)
        finally:
            for task in answering:
                task.cancel()  # running work ends in its thread


async def _answer(service: EnvironmentService, client: Client, text: str | bytes) -> str:
    """Return the answer to one message."""
    started, route, status = time.perf_counter(), "ws:invalid", 200
    id_: int | str | None = None
    try:
        given = parse_message(text)
        envelope = Envelope.model_validate(given)
        id_, route = envelope.id, f"ws:{envelope.op}"
        fields = {name: value for name, value in given.items() if name not in ("op", "id")}
        asked = OPS[envelope.op].model_validate(fields)
        return encode({"id": id_, **await service.answer(asked, client)})
    except Exception as error:  # else the client would wait forever
        refused = refusal(error, route)
        status = refused.status
        service.metrics.refused(refused)
        return encode({"id": id_, **refused.to_json()})
    finally:
        service.metrics.answered(route, status, time.perf_counter() - started)


def parse_message(text: str | bytes) -> dict[str, Any]:
    """Parse a message, which may have halves of surrogate pairs: pydantic's parser refuses them.

    Raises:
        Refused: 422 if it is no JSON object.
    """
    try:
        given = json.loads(text)
    except (ValueError, RecursionError):
        raise Refused(422, "json", "the message is not JSON") from None
    if not isinstance(given, dict):
        raise Refused(422, "invalid", "the message must be a JSON object")
    return given


def refusal(error: Exception, route: str) -> Refused:
    """Return the refusal that answers an exception, which is logged if it is a fault of ours."""
    if isinstance(error, Refused):
        return error
    if isinstance(error, ValidationError):
        return Refused(422, "invalid", faults(error.errors(include_url=False)))
    log.error("%s raised %s", route, type(error).__name__, exc_info=error)
    return Refused(500, "fault", "a fault of the server's")


def faults(errors: Any, shown: int = 5) -> str:
    """Describe what is invalid in a message, without quoting its values."""
    found = []
    for error in list(errors)[:shown]:
        place = ".".join(str(part)[:50] for part in error["loc"])
        found.append(f"{place}: {error['msg'][:200]}")
    return "; ".join(found).encode("utf-8", "replace").decode()
