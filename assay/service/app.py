"""The server as an ASGI application: routes, schemas, and the middleware before them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Annotated, Any

from fastapi import FastAPI, Path, Request, WebSocket
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException

from ..envs import TextEnv
from . import schemas
from .auth import ServiceMiddleware, Tokens
from .limits import Refused, ServiceLimits
from .openenv import add_openenv
from .service import EnvironmentService
from .websocket import encode, faults, serve_socket
from .workers import Peers

_FAILURES: dict[int | str, dict[str, Any]] = {
    code: {"model": schemas.Failed, "description": why}
    for code, why in {
        401: "no known token",
        409: "another environment is served than Assay-Serves asks for",
        413: "too much for one request",
        422: "not the right fields",
        503: "busy: come back after Retry-After seconds",
    }.items()
}
_ABOUT = """Judging of replies, and episodes, for one environment.

A verdict whose `score` is null is a fault of the server's, never of the reply: leave it out, and
never take it for 0. Over WebSocket, at `/v1/ws`, a message is the body of the route of the same
name with two fields more: `op`, one of `score`, `reset`, `step`, `close`, `tasks`, `groups`, and
`id`, which comes back with the answer. Answers come as they are ready, and many may be awaited at
one time.
"""
_Id = Annotated[str, Path(max_length=100)]
_STATUS = {"episode": 404, "lost": 404, "busy": 409, "turn": 409, "over": 409}


class _Answer(JSONResponse):
    """JSON in ASCII: a reply's halves of surrogate pairs may come back, and UTF-8 has none."""

    def render(self, content: Any) -> bytes:
        """Return the body."""
        return encode(content).encode()


def create_app(
    env: TextEnv,
    limits: ServiceLimits | None = None,
    tokens: Tokens | None = None,
    *,
    references: bool = False,
    reasons: bool = False,
) -> FastAPI:
    """Make an ASGI application that serves an environment, and closes it when it ends.

    Args:
        env: what is served.
        limits: bounds.
        tokens: who may ask; without any everybody on this machine.
        references: judge replies against references that clients bring, too.
        reasons: return reasons of verdicts, which may quote the known answer.
    """
    from .. import __version__

    limits, tokens = limits or ServiceLimits(), tokens or Tokens()
    share = limits.token_share if len(tokens) > 1 else 1.0
    service = EnvironmentService(env, limits, references=references, reasons=reasons, share=share)
    peers = Peers(service)

    async def sweep() -> None:
        """Forget idle sessions, also if no new ones come."""
        while True:
            await asyncio.sleep(min(1.0, limits.idle_s))
            service.sessions.forget_idle()
            service.observe()

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        sweeping = asyncio.create_task(sweep())
        try:
            async with peers.listening(app):
                yield
        finally:
            sweeping.cancel()
            await asyncio.to_thread(service.shut)

    app = FastAPI(
        title=f"Assay: {env.name}",
        version=__version__,
        description=_ABOUT,
        lifespan=lifespan,
        docs_url=None,  # their pages load external scripts
        redoc_url=None,
    )
    app.state.service, app.state.peers = service, peers
    _add_errors(app, service)
    _add_v1(app, service, peers)
    _add_operations(app, service)
    add_openenv(app, service)
    paths = {getattr(route, "path", "{") for route in app.routes}
    app.add_middleware(
        ServiceMiddleware,
        service=service,
        tokens=tokens,
        routes=frozenset(path for path in paths if "{" not in path),
    )
    return app


def _add_v1(app: FastAPI, service: EnvironmentService, peers: Peers) -> None:
    """Add the routes that do the work."""

    def caller(request: Request) -> tuple[str, str | None]:
        return request.scope["assay.owner"], request.headers.get("authorization")

    @app.get("/v1/environment", response_model=schemas.Described, responses=_FAILURES)
    async def environment() -> Any:
        """Return what is served, and its limits."""
        return _Answer(service.describe())

    @app.post("/v1/score", response_model=schemas.Verdicts, responses=_FAILURES)
    async def score(asked: schemas.Score) -> Any:
        """Judge replies; verdicts come in their order."""
        return _Answer(await service.score(asked))

    @app.post("/v1/groups", response_model=schemas.GroupsBody, responses=_FAILURES)
    async def groups(asked: schemas.Groups) -> Any:
        """Add the rewards that depend on the group; each episode was judged by itself before."""
        return _Answer(await service.groups(asked))

    @app.get("/v1/tasks/{index}", response_model=schemas.TasksBody, responses=_FAILURES)
    async def task(index: Annotated[int, Path(ge=0, lt=2**63)]) -> Any:
        """Return one task: its prompt and id, never its reference."""
        return _Answer(await service.tasks(schemas.Tasks(tasks=[index])))

    @app.post("/v1/tasks", response_model=schemas.TasksBody, responses=_FAILURES)
    async def tasks(asked: schemas.Tasks) -> Any:
        """Return several tasks."""
        return _Answer(await service.tasks(asked))

    @app.post("/v1/episodes", response_model=schemas.Episodes, responses=_FAILURES)
    async def begin(asked: schemas.Reset, request: Request) -> Any:
        """Begin episodes."""
        return _Answer(await service.reset(asked, service.client_of(caller(request)[0])))

    @app.post("/v1/episodes/step", response_model=schemas.Outcomes, responses=_FAILURES)
    async def steps(asked: schemas.Steps, request: Request) -> Any:
        """Take a turn in each of several episodes."""
        outcomes = await peers.step(asked.steps, *caller(request))
        client = service.client_of(caller(request)[0])
        return _Answer({"outcomes": outcomes, **await service.begin_next(asked.reset, client)})

    @app.post("/v1/episodes/close", response_model=schemas.Closed, responses=_FAILURES)
    async def close_many(asked: schemas.Close, request: Request) -> Any:
        """Forget several episodes."""
        return _Answer({"closed": await peers.close(asked.episodes, *caller(request))})

    @app.post("/v1/episodes/{episode}/step", response_model=schemas.Outcome, responses=_FAILURES)
    async def step(asked: schemas.OneStep, request: Request, episode: _Id) -> Any:
        """Take a turn in one episode."""
        one = schemas.Step(episode=episode, **asked.model_dump())
        (outcome,) = await peers.step([one], *caller(request))
        error = outcome.get("error")
        return _Answer(outcome, _STATUS.get(error["code"], 200) if error else 200)

    @app.delete("/v1/episodes/{episode}", response_model=schemas.Closed, responses=_FAILURES)
    async def close(request: Request, episode: _Id) -> Any:
        """Forget one episode."""
        return _Answer({"closed": await peers.close([episode], *caller(request))})

    @app.websocket("/v1/ws")
    async def socket(websocket: WebSocket) -> None:
        await serve_socket(websocket, service)


def _add_operations(app: FastAPI, service: EnvironmentService) -> None:
    """Add the routes for those who run the server."""

    @app.get("/healthz")
    async def health() -> dict[str, str]:
        """Return that the process answers. Needs no token."""
        return {"status": "ok"}

    @app.get("/readyz", responses={503: {"description": "replies cannot be judged now"}})
    async def ready() -> Response:
        """Return whether replies can be judged, sandbox and all; tried every 15 s. No token."""
        found = await service.ready()
        return JSONResponse({"ready": found}, status_code=200 if found else 503)

    @app.get("/metrics")
    async def metrics() -> Response:
        """Return counters and gauges, for Prometheus."""
        service.observe()
        return Response(service.metrics.page(), media_type="text/plain; version=0.0.4")


def _add_errors(app: FastAPI, service: EnvironmentService) -> None:
    """Have every failure look alike, and none give back what the client sent."""

    async def refuse(_: Request, error: Exception) -> Response:
        if isinstance(error, RequestValidationError):
            error = Refused(422, "invalid", faults(error.errors()))
        elif isinstance(error, HTTPException):
            error = Refused(error.status_code, "http", str(error.detail))
        assert isinstance(error, Refused)  # noqa: S101  # what it is registered for
        service.metrics.refused(error)
        return JSONResponse(error.to_json(), error.status, error.headers)

    for kind in (Refused, RequestValidationError, HTTPException):
        app.add_exception_handler(kind, refuse)
