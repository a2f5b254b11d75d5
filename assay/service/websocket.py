"""One WebSocket: many episodes, and many messages that are answered as they are ready."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import logging
import time
from collections.abc import Coroutine
from functools import partial
from typing import Any

from fastapi import WebSocket, WebSocketDisconnect
from pydantic import ValidationError
from starlette.types import Message

from . import messages
from .patience import Patience
from .rate import Rates
from .refused import Refused
from .service import EnvironmentService
from .sessions import SessionStore

_log = logging.getLogger("assay.service")
encoded = json.JSONEncoder(allow_nan=False, separators=(",", ":")).encode


async def talk(websocket: WebSocket, service: EnvironmentService, rates: Rates) -> None:
    """Answer messages until the client leaves; its episodes go with it.

    A client that asks too often, or has as many messages under way as it may, is not read from
    until that has changed: it waits, and no message of its is lost.
    """
    names, patience = itertools.count(1), Patience(service.limits.idle_s)
    store = SessionStore(service.budget, lambda: str(next(names)), keep=False)
    owner = websocket.scope["assay.owner"]
    room = asyncio.Semaphore(service.limits.in_flight)
    answering: set[asyncio.Task[None]] = set()

    def at_once(text: str) -> str | None:
        if answering:  # it may be for an episode of which a step is being taken
            return None
        started, asked = time.perf_counter(), _read(text)
        if isinstance(asked, Refused) or not service.at_once.answers(asked) or rates.wait_s(owner):
            return None
        patience.heard()
        store.forget_idle()
        answer = _finished(_answer(service, store, asked, started))
        websocket.scope["assay.told"] += len(answer)
        return answer

    def over(size: int, task: asyncio.Task[None]) -> None:
        answering.discard(task)
        room.release()
        if connection is not None:
            connection.answered(size)

    connection = websocket.scope.get("assay.connection")  # of our own server, not of others
    service.metrics.sockets += 1
    try:
        await websocket.accept()
        if connection is not None:
            connection.at_once, connection.share = at_once, service.under_way.share()
        while True:
            message = await _next(websocket, patience, store)
            while wait := rates.wait_s(owner):
                await asyncio.sleep(wait)
            await room.acquire()
            task = asyncio.create_task(_tell(websocket, service, store, message))
            answering.add(task)
            task.add_done_callback(partial(over, message.get("assay.bytes", 0)))
    except (WebSocketDisconnect, TimeoutError):
        pass
    finally:
        if connection is not None:
            connection.at_once = None
            service.metrics.closed(connection.refused)
        patience.end()
        service.metrics.sockets -= 1
        for task in answering:
            task.cancel()  # what has begun ends in its thread; nobody is told
        store.end()
        with contextlib.suppress(RuntimeError, WebSocketDisconnect):
            await websocket.close()


async def _next(websocket: WebSocket, patience: Patience, store: SessionStore) -> Message:
    """The next message; a socket on which nothing comes for too long is closed.

    Raises:
        TimeoutError: nothing came.
        WebSocketDisconnect: the client left.
    """
    message = await patience.till(websocket.receive())
    if message["type"] == "websocket.disconnect":
        raise WebSocketDisconnect(message.get("code", 1000))
    store.forget_idle()
    return message


def _read(text: str | bytes) -> messages.SocketMessage | Refused:
    """What a message asks for, or why it is none."""
    try:
        return messages.SOCKET.validate_json(text)
    except ValidationError as error:
        where = "; ".join(
            f"{'.'.join(str(part)[:50] for part in e['loc'])}: {e['msg'][:200]}"
            for e in error.errors(include_url=False, include_input=False)[:5]
        )
        return Refused(422, "invalid", where)


async def _tell(
    websocket: WebSocket, service: EnvironmentService, store: SessionStore, message: Message
) -> None:
    """Answer one message; a client that has left is not told."""
    started = time.perf_counter()
    text: str | None = message.get("text")
    answer = await _answer(
        service, store, _read(message["bytes"] if text is None else text), started
    )
    with contextlib.suppress(WebSocketDisconnect, RuntimeError):
        await websocket.send_text(answer)


def _finished(answer: Coroutine[Any, Any, str]) -> str:
    """What needs not wait for anything."""
    try:
        answer.send(None)
    except StopIteration as done:
        return str(done.value)
    answer.close()
    raise RuntimeError("an answer at once had to wait")


async def _answer(
    service: EnvironmentService,
    store: SessionStore,
    asked: messages.SocketMessage | Refused,
    started: float,
) -> str:
    """The answer to one message."""
    route, status = "ws:invalid", 200
    id_: int | str | None = None
    try:
        if isinstance(asked, Refused):
            raise asked
        id_, route = asked.id, f"ws:{asked.op}"
        answer = encoded({"id": id_, **await _done(asked, service, store)})
    except Refused as refused:
        status = refused.status
        service.metrics.refused[refused.code] += 1
        answer = encoded({"id": id_, **refused.to_json()})
    except Exception as error:  # else the client would wait for its answer for ever
        _log.exception("%s raised %s", route, type(error).__name__)
        status = 500
        answer = encoded({"id": id_, **Refused(500, "fault", "a fault of the server's").to_json()})
    service.metrics.answered(route, status, time.perf_counter() - started)
    return answer


async def _done(
    asked: messages.SocketMessage, service: EnvironmentService, store: SessionStore
) -> dict[str, Any]:
    if isinstance(asked, messages.SocketScore):
        return await service.score(asked)
    if isinstance(asked, messages.SocketReset):
        return await service.reset(asked, store)
    if isinstance(asked, messages.SocketSteps):
        return await service.step_and_reset(asked, store)
    if isinstance(asked, messages.SocketTasks):
        return await service.tasks(asked)
    if isinstance(asked, messages.SocketGroups):
        return await service.groups(asked)
    return service.close(asked, store)
