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
from . import messages
from .connections import Connections
from .limits import ServiceLimits
from .middleware import ServiceMiddleware
from .openenv import add_openenv
from .peers import Peers
from .refused import Refused
from .service import EnvironmentService
from .sessions import SessionStore
from .tokens import Tokens
from .websocket import encode, faults, talk

_FAILURES: dict[int | str, dict[str, Any]] = {
    code: {"model": messages.Failed, "description": why}
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
    limits, tokens = limits or ServiceLimits(), tokens or Tokens()
    share = limits.token_share if len(tokens) > 1 else 1.0
    service = EnvironmentService(env, limits, references=references, reasons=reasons, share=share)

    peers = Peers(service)

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        sweeping = asyncio.create_task(_sweep(service, app.state.connections))
        try:
            yield
        finally:
            sweeping.cancel()
            await peers.end()
            await asyncio.to_thread(service.shut)

    from .. import __version__

    app = FastAPI(
        title=f"Assay: {env.name}",
        version=__version__,
        description=_ABOUT,
        lifespan=lifespan,
        docs_url=None,  # their pages load external scripts
        redoc_url=None,
    )
    app.state.service, app.state.peers = service, peers
    app.state.connections = Connections(service.limits, service.metrics)
    _add_errors(app, service)
    _add_v1(app, service, peers)
    _add_operations(app, service)
    add_openenv(app, service)
    routes = frozenset(
        path for route in app.routes if "{" not in (path := getattr(route, "path", "{"))
    )
    app.add_middleware(ServiceMiddleware, service=service, tokens=tokens, routes=routes)
    return app


def _add_v1(app: FastAPI, service: EnvironmentService, peers: Peers) -> None:
    """Add the routes that do the work."""

    def store(request: Request) -> SessionStore:
        return service.store_of(request.scope["assay.owner"])

    def client(request: Request) -> tuple[str, str | None]:
        return request.scope["assay.owner"], request.headers.get("authorization")

    @app.get("/v1/environment", response_model=messages.Described, responses=_FAILURES)
    async def environment() -> Any:
        """Return what is served, and its limits."""
        return _Answer(service.describe())

    @app.post("/v1/score", response_model=messages.Verdicts, responses=_FAILURES)
    async def score(asked: messages.Score) -> Any:
        """Judge replies; verdicts come in their order."""
        return _Answer(await service.score(asked))

    @app.post("/v1/groups", response_model=messages.GroupsTold, responses=_FAILURES)
    async def groups(asked: messages.Groups) -> Any:
        """Add the rewards that depend on the group; each episode was judged by itself before."""
        return _Answer(await service.groups(asked))

    @app.get("/v1/tasks/{index}", response_model=messages.TasksTold, responses=_FAILURES)
    async def task(index: Annotated[int, Path(ge=0, lt=2**63)]) -> Any:
        """Return one task: its prompt and id, never its reference."""
        return _Answer(await service.tasks(messages.Tasks(tasks=[index])))

    @app.post("/v1/tasks", response_model=messages.TasksTold, responses=_FAILURES)
    async def tasks(asked: messages.Tasks) -> Any:
        """Return several tasks."""
        return _Answer(await service.tasks(asked))

    @app.post("/v1/episodes", response_model=messages.Episodes, responses=_FAILURES)
    async def begin(asked: messages.Reset, request: Request) -> Any:
        """Begin episodes."""
        return _Answer(await service.reset(asked, store(request)))

    @app.post("/v1/episodes/step", response_model=messages.Outcomes, responses=_FAILURES)
    async def steps(asked: messages.Steps, request: Request) -> Any:
        """Take a turn in each of several episodes."""
        outcomes = await peers.step(asked.steps, *client(request))
        return _Answer(
            {"outcomes": outcomes} | await service.begin_next(asked.reset, store(request))
        )

    @app.post("/v1/episodes/close", response_model=messages.Closed, responses=_FAILURES)
    async def close_many(asked: messages.Close, request: Request) -> Any:
        """Forget several episodes."""
        return _Answer({"closed": await peers.close(asked.episodes, *client(request))})

    @app.post("/v1/episodes/{episode}/step", response_model=messages.Outcome, responses=_FAILURES)
    async def step(asked: messages.OneStep, request: Request, episode: _Id) -> Any:
        """Take a turn in one episode."""
        one = messages.Step(episode=episode, **asked.model_dump())
        (outcome,) = await peers.step([one], *client(request))
        status = _STATUS.get(outcome.get("error", {}).get("code", ""), 200)
        return _Answer(outcome, status_code=status)

    @app.delete("/v1/episodes/{episode}", response_model=messages.Closed, responses=_FAILURES)
    async def close(request: Request, episode: _Id) -> Any:
        """Forget one episode."""
        return _Answer({"closed": await peers.close([episode], *client(request))})

    @app.websocket("/v1/ws")
    async def socket(websocket: WebSocket) -> None:
        await talk(websocket, service)


_STATUS = {"episode": 404, "lost": 404, "busy": 409, "turn": 409, "over": 409}


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

    async def refused(_: Request, error: Exception) -> Response:
        assert isinstance(error, Refused)  # noqa: S101  # what it is registered for
        service.metrics.refused(error)
        return JSONResponse(error.to_json(), status_code=error.status, headers=error.headers)

    async def invalid(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)  # noqa: S101  # as above
        return await refused(request, Refused(422, "invalid", faults(error.errors())))

    async def other(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)  # noqa: S101  # as above
        return await refused(request, Refused(error.status_code, "http", str(error.detail)))

    app.add_exception_handler(Refused, refused)
    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(HTTPException, other)


async def _sweep(service: EnvironmentService, connections: Connections) -> None:
    """Forget idle sessions and close late connections, also if no new ones come."""
    while True:
        await asyncio.sleep(min(1.0, service.limits.read_s, service.limits.idle_s))
        service.budget.forget_idle()
        service.observe()
        connections.close_late()
