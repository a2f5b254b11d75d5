"""Several processes behind one address: each forwards steps to the one that holds the episode."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import multiprocessing
import os
import signal
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import httpx
from fastapi import FastAPI
from prometheus_client.multiprocess import mark_process_dead
from uvicorn import Config
from uvicorn.config import STARTUP_FAILURE
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from .limits import Refused
from .schemas import Outcome, Step
from .service import EnvironmentService

_log = logging.getLogger("assay.service")


class Peers:
    """The workers of a server, each with a Unix socket in a folder of this user's.

    The id of an episode begins with the mark of its worker. A single process forwards nothing.

    Attributes:
        folder: of the sockets, ``MARK.sock``; ``None`` for a single process.
    """

    def __init__(self, service: EnvironmentService) -> None:
        self.service = service
        self.folder: Path | None = None
        self._clients: dict[str, httpx.AsyncClient] = {}

    @contextlib.asynccontextmanager
    async def listening(self, app: FastAPI) -> AsyncIterator[None]:
        """Answer the requests that other workers forward."""
        if self.folder is None:
            yield
            return
        config = Config(
            app,
            lifespan="off",
            ws="none",
            log_config=None,
            access_log=False,
            timeout_keep_alive=60,  # httpx ends idle connections after 5 s
        )
        config.load()
        state, path = ServerState(), self._path(self.service.mark)
        server = await asyncio.get_running_loop().create_unix_server(
            lambda: H11Protocol(config, server_state=state, app_state={}), path, backlog=2048
        )
        try:
            yield
        finally:
            path.unlink(missing_ok=True)
            server.close()
            if state.tasks:
                await asyncio.wait(state.tasks, timeout=self.service.limits.request_s)
            for client in self._clients.values():
                await client.aclose()

    async def step(self, steps: Sequence[Step], owner: str, token: str | None) -> list[Outcome]:
        """Take steps in the processes of their sessions.

        Raises:
            Refused: by a worker; every step has its turn, so all can be repeated.
        """
        self.service.allow("steps", len(steps))

        async def here(places: list[int]) -> list[Outcome]:
            mine = [steps[place] for place in places]
            return await self.service.step(mine, self.service.client_of(owner))

        def body(places: list[int]) -> Any:
            return {"steps": [steps[place].model_dump() for place in places]}

        ids = [step.episode for step in steps]
        found = await self._ask("/v1/episodes/step", ids, token, "outcomes", body, here)
        outcomes: dict[int, Outcome] = {}
        for places, part in found:
            if isinstance(part, Refused):
                if len(found) == 1 or all(step.turn is not None for step in steps):
                    raise part
                error: Any = part.to_json()["error"]
                part = [{"episode": ids[place], "error": error} for place in places]
            outcomes.update(zip(places, part, strict=True))
        return [outcomes[place] for place in range(len(steps))]

    async def close(self, ids: Sequence[str], owner: str, token: str | None) -> int:
        """Close sessions in their processes; return how many existed."""
        self.service.allow("episodes", len(ids))

        async def here(places: list[int]) -> int:
            return self.service.close([ids[p] for p in places], self.service.client_of(owner))

        def body(places: list[int]) -> Any:
            return {"episodes": [ids[place] for place in places]}

        closed = 0
        for _, part in await self._ask("/v1/episodes/close", ids, token, "closed", body, here):
            if isinstance(part, Refused):
                raise part
            closed += part
        return closed

    async def _ask(
        self,
        path: str,
        ids: Sequence[str],
        token: str | None,
        field: str,
        body: Callable[[list[int]], Any],
        here: Callable[[list[int]], Awaitable[Any]],
    ) -> list[tuple[list[int], Any]]:
        """Return places of ids, and the field of their worker's answer, or its refusal."""

        async def one(mark: str, places: list[int]) -> tuple[list[int], Any]:
            try:
                answer = await self._forward(mark, path, body(places), token)
                return places, await here(places) if answer is None else answer[field]
            except Refused as refused:
                return places, refused

        mine = self.service.mark
        marks = [id_.partition(".")[0] for id_ in ids]
        known = set[str]()
        if self.folder is not None and set(marks) - {mine}:
            known = {path.stem for path in self.folder.glob("*.sock")}
        parts: dict[str, list[int]] = {}
        for place, mark in enumerate(marks):
            parts.setdefault(mark if mark in known else mine, []).append(place)
        return await asyncio.gather(*(one(*part) for part in (parts or {mine: []}).items()))

    def _path(self, mark: str) -> Path:
        assert self.folder is not None  # noqa: S101  # for the type
        return self.folder / f"{mark}.sock"

    async def _forward(
        self, mark: str, path: str, body: Any, token: str | None
    ) -> dict[str, Any] | None:
        """Ask another worker; return ``None`` if this one is to answer, or that one has ended."""
        if mark == self.service.mark:
            return None
        if mark not in self._clients:
            transport = httpx.AsyncHTTPTransport(uds=str(self._path(mark)))
            timeout = self.service.limits.request_s + 10
            self._clients[mark] = httpx.AsyncClient(
                transport=transport, base_url="http://localhost", timeout=timeout
            )
        headers = {"content-type": "application/json"}
        headers |= {} if token is None else {"authorization": token}
        content = json.dumps(body)  # in ASCII: a reply may hold halves of surrogate pairs
        try:
            answer = await self._clients[mark].post(path, content=content, headers=headers)
            found: dict[str, Any] = answer.json()
        except httpx.ConnectError:
            self._path(mark).unlink(missing_ok=True)
            await self._clients.pop(mark).aclose()
            return None
        except (httpx.HTTPError, ValueError) as error:
            raise Refused(
                503,
                "worker",
                f"a worker does not answer ({type(error).__name__}): if it has exited, it is "
                "restarted, and its episodes are lost",
                retry_s=1,
            ) from error
        if answer.is_success:
            return found
        why = found["error"]
        raise Refused(answer.status_code, why["code"], why["message"], retry_s=why.get("retry_s"))


def worker_app(make_app: Callable[[], FastAPI], folder: Path) -> FastAPI:
    """Make the application of a worker, in its process."""
    parent = multiprocessing.parent_process()
    assert parent is not None  # noqa: S101  # it was spawned

    def end_with_parent() -> None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=end_with_parent, daemon=True).start()
    for path in folder.glob("gauge_live*_*.db"):  # of workers that have ended
        pid = int(path.stem.rpartition("_")[2])
        if pid != os.getpid() and not Path(f"/proc/{pid}").exists():
            _log.error("worker %d has ended, and its episodes with it: it is started again", pid)
            mark_process_dead(pid)  # type: ignore[no-untyped-call]
    try:
        app = make_app()
    except Exception:
        _log.exception("the worker ended before it served")
        # At once: a ping of uvicorn's while the interpreter is shut down would wait for a minute.
        logging.shutdown()
        os._exit(STARTUP_FAILURE)
    app.state.peers.folder = folder
    return app
