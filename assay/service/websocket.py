"""One WebSocket: many episodes, and many messages that are answered as they are ready."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import logging
import time
from collections.abc import AsyncIterator
from typing import Any

from fastapi import WebSocket, WebSocketDisconnect
from pydantic import ValidationError

from . import messages
from .in_flight import Reservation
from .refused import Refused
from .service import EnvironmentService
from .sessions import SessionStore

_log = logging.getLogger("assay.service")
encode = json.JSONEncoder(allow_nan=False, separators=(",", ":")).encode


@contextlib.asynccontextmanager
async def opened(websocket: WebSocket, service: EnvironmentService) -> AsyncIterator[SessionStore]:
    """Accept a WebSocket until its client leaves; its episodes go with it."""
    ids = itertools.count(1)
    owner = websocket.scope["assay.owner"]
    store = SessionStore(service.budget, owner, lambda: str(next(ids)), keep=False)
    try:
        await websocket.accept()
        yield store
    except (WebSocketDisconnect, TimeoutError):
        pass
    finally:
        store.end()
        with contextlib.suppress(RuntimeError, WebSocketDisconnect):
            await websocket.close()


async def receive(
    websocket: WebSocket, service: EnvironmentService
) -> tuple[str | bytes, Reservation]:
    """Return the next message and its bytes in flight, to be released when it is answered.

    Raises:
        TimeoutError: nothing came for too long.
        WebSocketDisconnect: the client left, or there is no room for the message.
    """
    async with asyncio.timeout(service.limits.idle_s):
        message = await websocket.receive()
    if message["type"] == "websocket.disconnect":
        raise WebSocketDisconnect(message.get("code", 1000))
    text: str | bytes = message.get("text") or message.get("bytes") or ""
    held = Reservation(service.in_flight)
    try:
        held.resize(len(text))
    except Refused as refused:
        service.metrics.refused(refused)
        await websocket.close(1013, refused.code)
        raise WebSocketDisconnect(1013) from refused
    return text, held


async def talk(websocket: WebSocket, service: EnvironmentService) -> None:
    """Answer messages until the client leaves.

    One that has as many messages in progress as it may is not read from until that has changed.
    """
    room = asyncio.Semaphore(service.limits.in_flight)
    answering: set[asyncio.Task[None]] = set()
    async with opened(websocket, service) as store:
        try:
            while True:
                text, held = await receive(websocket, service)
                await room.acquire()
                task = asyncio.create_task(_reply(websocket, service, store, text, held, room))
                answering.add(task)
                task.add_done_callback(answering.discard)
        finally:
            for task in answering:
                task.cancel()  # running work ends in its thread


async def _reply(
    websocket: WebSocket,
    service: EnvironmentService,
    store: SessionStore,
    text: str | bytes,
    held: Reservation,
    room: asyncio.Semaphore,
) -> None:
    """Answer one message, if its client is still there."""
    try:
        with held, contextlib.suppress(WebSocketDisconnect, RuntimeError):
            await websocket.send_text(await _answer(service, store, text))
    finally:
        room.release()


async def _answer(service: EnvironmentService, store: SessionStore, text: str | bytes) -> str:
    """Return the answer to one message."""
    started, route, status = time.perf_counter(), "ws:invalid", 200
    id_: int | str | None = None
    try:
        asked = _parse(text)
        id_, route = asked.id, f"ws:{asked.op}"
        return encode({"id": id_, **await _dispatch(asked, service, store)})
    except Refused as refused:
        status = refused.status
        service.metrics.refused(refused)
        return encode({"id": id_, **refused.to_json()})
    except Exception as error:  # else the client would wait forever
        _log.exception("%s raised %s", route, type(error).__name__)
        status = 500
        return encode({"id": id_, **Refused(500, "fault", "a fault of the server's").to_json()})
    finally:
        service.metrics.answered(route, status, time.perf_counter() - started)


def _parse(text: str | bytes) -> messages.SocketMessage:
    try:
        return messages.read(messages.SOCKET, text)
    except ValidationError as error:
        raise Refused(422, "invalid", faults(error.errors(include_url=False))) from None


def faults(errors: Any, shown: int = 5) -> str:
    """Describe what is invalid in a message, without quoting its values."""
    found = []
    for error in list(errors)[:shown]:
        place = ".".join(str(part)[:50] for part in error["loc"])
        found.append(f"{place}: {error['msg'][:200]}")
    return "; ".join(found).encode("utf-8", "replace").decode()


async def _dispatch(
    asked: messages.SocketMessage, service: EnvironmentService, store: SessionStore
) -> dict[str, Any]:
    if isinstance(asked, messages.SocketScore):
        return await service.score(asked)
    if isinstance(asked, messages.SocketReset):
        return await service.reset(asked, store)
    if isinstance(asked, messages.SocketSteps):
        service.allow("steps", len(asked.steps))
        outcomes = await service.step(asked.steps, store)
        return {"outcomes": outcomes} | await service.begin_next(asked.reset, store)
    if isinstance(asked, messages.SocketTasks):
        return await service.tasks(asked)
    if isinstance(asked, messages.SocketGroups):
        return await service.groups(asked)
    service.allow("episodes", len(asked.episodes))
    return {"closed": service.close(asked.episodes, store)}
