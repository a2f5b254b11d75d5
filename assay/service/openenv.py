"""The same environment for clients of OpenEnv: its messages, at ``/openenv``.

A client of ``openenv.core`` is given ``http://HOST:PORT/openenv``. Its WebSocket is one episode
at a time: ``reset`` (with ``seed``, or ``task``), ``step`` with ``{"reply": ...}``, ``state``,
``close``.
"""

from __future__ import annotations

import secrets
import time
from typing import Any

from fastapi import FastAPI, WebSocket
from pydantic import BaseModel, ConfigDict, Field

from . import schemas
from .limits import Refused
from .service import EnvironmentService
from .sessions import Client
from .websocket import accept_socket, encode, parse_message, receive, refusal


class OpenEnvAction(BaseModel):
    """The policy's turn, as OpenEnv calls it."""

    model_config = ConfigDict(extra="forbid")
    reply: schemas.Text
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

    seed: schemas.Index | None = None
    episode_id: str | None = Field(None, max_length=255)
    task: schemas.TaskKey | None = None


class _State(BaseModel):
    episode_id: str | None = None
    step_count: int = 0


class _Message(BaseModel):
    type: str = Field(max_length=100)
    data: dict[str, Any] = Field(default_factory=dict)


def add_openenv(app: FastAPI, service: EnvironmentService) -> None:
    """Add OpenEnv's routes below ``/openenv``."""

    @app.get("/openenv/health")
    async def health() -> dict[str, str]:
        """Serve OpenEnv's health check, which needs no token."""
        return {"status": "healthy"}

    @app.get("/openenv/metadata")
    async def metadata() -> dict[str, str]:
        """Serve OpenEnv's metadata."""
        served = service.describe()
        about = f"{served['name']}: {served['max_turns']} turns at most, played as text"
        return {"name": served["name"], "description": about, "version": served["version"]}

    @app.get("/openenv/schema")
    async def schema() -> dict[str, Any]:
        """Serve OpenEnv's schemas of actions, observations and state."""
        return {
            "action": OpenEnvAction.model_json_schema(),
            "observation": OpenEnvObservation.model_json_schema(),
            "state": _State.model_json_schema(),
        }

    @app.websocket("/openenv/ws")
    async def session(websocket: WebSocket) -> None:
        async with accept_socket(websocket, service) as client:
            player = _Player(service, client)
            while True:
                text = await receive(websocket, service)
                try:
                    answer = await player.answer(text)
                    if answer is None:
                        return
                    await websocket.send_text(answer)
                finally:
                    service.in_flight.resize(len(text), 0)


class _Player:
    """One client of OpenEnv's: an episode at a time, a message at a time."""

    def __init__(self, service: EnvironmentService, client: Client) -> None:
        self.service, self.client = service, client
        self.episode: str | None = None
        self.task = self.text = ""
        self.state = _State()

    async def answer(self, text: str | bytes) -> str | None:
        """Answer a message, or return ``None`` if the client closes."""
        started, route, status = time.perf_counter(), "openenv:invalid", 200
        try:
            asked = _Message.model_validate(parse_message(text))
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
                return encode({"type": "state", "data": self.state.model_dump()})
            return encode({"type": "observation", "data": data})
        except Exception as error:  # the session goes on: its episode is the client's
            refused = refusal(error, route)
            status = refused.status
            self.service.metrics.refused(refused)
            codes = {"json": "INVALID_JSON", "invalid": "VALIDATION_ERROR"}
            code = "CAPACITY_REACHED" if status == 503 else "EXECUTION_ERROR"
            return _error(codes.get(refused.code, code), refused.message)
        finally:
            self.service.metrics.answered(route, status, time.perf_counter() - started)

    async def _reset(self, asked: _Reset) -> dict[str, Any]:
        tasks = None if asked.task is None else [asked.task]
        reset = schemas.Reset(tasks=tasks, count=1, seed=asked.seed)
        (begun,) = (await self.service.reset(reset, self.client))["episodes"]
        if self.episode is not None:
            self.service.sessions.forget(self.client, self.episode)
        self.episode, task = begun["episode"], begun["task"]
        self.task, self.text = task["id"], "\n\n".join(m["content"] for m in task["messages"])
        self.state = _State(episode_id=asked.episode_id or secrets.token_hex(16))
        more = {"metadata": task["metadata"]} if task["metadata"] else {}
        observation = self._observe(self.text, task["messages"], **more)
        return {"observation": observation, "reward": None, "done": False, **more}

    async def _step(self, action: OpenEnvAction) -> dict[str, Any]:
        if self.episode is None:
            raise Refused(409, "episode", "step needs an episode: send reset first")
        step = schemas.Step(episode=self.episode, reply=action.reply, turn=None, truncated=False)
        (outcome,) = await self.service.step([step], self.client)
        if "error" in outcome:
            raise Refused(409, outcome["error"]["code"], outcome["error"]["message"])
        self.state.step_count += 1
        verdict, reward, ended = outcome["verdict"], outcome["reward"], {}
        if verdict is not None:
            ended = {"status": verdict["status"], "rewards": verdict["parts"]}
            reward = None if verdict["score"] is None else verdict["score"] + (reward or 0.0)
        text = "\n\n".join(m["content"] for m in outcome["messages"]) or self.text
        observation = self._observe(
            text, outcome["messages"], truncated=outcome["truncated"], **ended
        )
        return {"observation": observation, "reward": reward, "done": verdict is not None}

    def _observe(self, text: str, messages: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
        seen = OpenEnvObservation(text=text, messages=messages, task=self.task, **more)
        return seen.model_dump()


def _error(code: str, message: str) -> str:
    return encode({"type": "error", "data": {"code": code, "message": message}})
