"""The same environment for clients of OpenEnv: its messages, at ``/openenv``.

A client of ``openenv.core`` is given ``http://HOST:PORT/openenv``. Its WebSocket is one episode
at a time: ``reset`` (with ``seed``, or ``task``), ``step`` with ``{"reply": ...}``, ``state``,
``close``.
"""

from __future__ import annotations

import logging
import secrets
import time
from typing import Any

from fastapi import FastAPI, WebSocket
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from . import messages
from .refused import Refused
from .service import EnvironmentService
from .sessions import SessionStore
from .websocket import encode, faults, opened, receive

_log = logging.getLogger("assay.service")


class OpenEnvAction(BaseModel):
    """The policy's turn, as OpenEnv calls it."""

    model_config = ConfigDict(extra="forbid")
    reply: messages.Text
    metadata: dict[str, Any] = Field(default_factory=dict)


class OpenEnvObservation(BaseModel):
    """An OpenEnv observation; ``reward`` is null before the end, and if there is no score."""

    text: str
    messages: list[dict[str, Any]]
    task: str
    status: str | None = None
    rewards: dict[str, float | None] = Field(default_factory=dict)
    truncated: bool = False
    metadata: dict[str, Any] = Field(default_factory=dict)


class _Reset(BaseModel):
    """Arguments of ``reset``; additional ones, which OpenEnv allows, are ignored."""

    seed: messages.Index | None = None
    episode_id: str | None = Field(None, max_length=255)
    task: messages.TaskKey | None = None


class _State(BaseModel):
    episode_id: str | None = None
    step_count: int = 0


class _Message(BaseModel):
    type: str = Field(max_length=100)
    data: dict[str, Any] = Field(default_factory=dict)


_MESSAGE = TypeAdapter(_Message)


def add_openenv(app: FastAPI, service: EnvironmentService) -> None:
    """Add OpenEnv's routes below ``/openenv``."""

    @app.get("/openenv/health")
    async def health() -> JSONResponse:
        """Serve OpenEnv's health check, which needs no token."""
        return JSONResponse({"status": "healthy"})

    @app.get("/openenv/metadata")
    async def metadata() -> JSONResponse:
        """Serve OpenEnv's metadata."""
        served = service.describe()
        about = f"{served['name']}: {served['max_turns']} turns at most, played as text"
        return JSONResponse(
            {"name": served["name"], "description": about, "version": served["version"]}
        )

    @app.get("/openenv/schema")
    async def schema() -> JSONResponse:
        """Serve OpenEnv's schemas of actions, observations and state."""
        return JSONResponse(
            {
                "action": OpenEnvAction.model_json_schema(),
                "observation": OpenEnvObservation.model_json_schema(),
                "state": _State.model_json_schema(),
            }
        )

    @app.websocket("/openenv/ws")
    async def session(websocket: WebSocket) -> None:
        async with opened(websocket, service) as store:
            client = _Client(service, store)
            while True:
                text, held = await receive(websocket, service)
                with held:
                    answer = await client.answer(text)
                    if answer is None:
                        return
                    await websocket.send_text(encode(answer))


class _Client:
    """One client of OpenEnv's: an episode at a time, a message at a time."""

    def __init__(self, service: EnvironmentService, store: SessionStore) -> None:
        self.service, self.store = service, store
        self.episode: str | None = None
        self.task = ""
        self.text = ""
        self.shown = _State()

    async def answer(self, text: str | bytes) -> dict[str, Any] | None:
        """Answer a message, or return ``None`` if the client closes."""
        started, route, status = time.perf_counter(), "openenv:invalid", 200
        try:
            asked = messages.read(_MESSAGE, text)
            if asked.type == "close":
                return None
            if asked.type not in ("reset", "step", "state"):
                return _error("UNKNOWN_TYPE", "type must be reset, step, state or close")
            route = f"openenv:{asked.type}"
            if asked.type == "reset":
                data = await self._reset(_Reset.model_validate(asked.data))
            elif asked.type == "step":
                data = await self._step(OpenEnvAction.model_validate(asked.data))
            else:
                return {"type": "state", "data": self.shown.model_dump()}
            return {"type": "observation", "data": data}
        except ValidationError as error:
            status = 422
            if any(e["type"] == "json_invalid" for e in error.errors(include_url=False)):
                return _error("INVALID_JSON", "the message is not JSON")
            return _error("VALIDATION_ERROR", faults(error.errors(include_url=False), 1))
        except Refused as refused:
            status = refused.status
            self.service.metrics.refused(refused)
            code = "CAPACITY_REACHED" if status == 503 else "EXECUTION_ERROR"
            return _error(code, refused.message)
        except Exception as error:  # the session goes on: its episode is the client's
            status = 500
            _log.exception("%s raised %s", route, type(error).__name__)
            return _error("EXECUTION_ERROR", "a fault of the server's")
        finally:
            self.service.metrics.answered(route, status, time.perf_counter() - started)

    async def _reset(self, asked: _Reset) -> dict[str, Any]:
        tasks = None if asked.task is None else [asked.task]
        begun = await self.service.reset(
            messages.Reset(tasks=tasks, count=1, seed=asked.seed), self.store
        )
        if self.episode is not None:
            self.store.forget(self.episode)
        first = begun["episodes"][0]
        self.episode, task = first["episode"], first["task"]
        self.task = task["id"]
        self.text = "\n\n".join(m["content"] for m in task["messages"])
        self.shown = _State(episode_id=asked.episode_id or secrets.token_hex(16))
        seen = OpenEnvObservation(
            text=self.text,
            messages=task["messages"],
            task=self.task,
            metadata=task["metadata"],
        )
        return _dump(seen, None, done=False)

    async def _step(self, action: OpenEnvAction) -> dict[str, Any]:
        if self.episode is None:
            raise Refused(409, "episode", "step needs an episode: send reset first")
        step = messages.Step(episode=self.episode, reply=action.reply, turn=None, truncated=False)
        outcome = (await self.service.step([step], self.store))[0]
        if "error" in outcome:
            raise Refused(409, outcome["error"]["code"], outcome["error"]["message"])
        self.shown.step_count += 1
        verdict = outcome["verdict"]
        said = "\n\n".join(m["content"] for m in outcome["messages"])
        seen = OpenEnvObservation(
            text=said or self.text,
            messages=outcome["messages"],
            task=self.task,
            truncated=outcome["truncated"],
        )
        reward = outcome["reward"]
        if verdict is not None:
            seen.status, seen.rewards = verdict["status"], verdict["parts"]
            score = verdict["score"]
            reward = None if score is None else score + (reward or 0.0)
        return _dump(seen, reward, done=verdict is not None)


def _dump(seen: OpenEnvObservation, reward: float | None, *, done: bool) -> dict[str, Any]:
    """Serialise for OpenEnv's clients."""
    data: dict[str, Any] = {"observation": seen.model_dump(), "reward": reward, "done": done}
    if seen.metadata:
        data["metadata"] = seen.metadata
    return data


def _error(code: str, message: str) -> dict[str, Any]:
    return {"type": "error", "data": {"code": code, "message": message}}
