"""OpenEnv's server, and its own client: run by ``serve.py`` with an interpreter that has it.

python serve_peer.py serve ROWS.json PORT
python serve_peer.py play URL ROWS.json CLIENTS SECONDS
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path
from typing import Any


def app_of(rows: list[dict[str, str]]) -> Any:
    """An environment in ten lines by its own base classes, in its own server."""
    from openenv.core.env_server.http_server import create_fastapi_app
    from openenv.core.env_server.interfaces import Environment
    from openenv.core.env_server.types import Action, ConcurrencyConfig, Observation, State

    class Reply(Action):  # type: ignore[misc]  # the library is not installed where types are checked
        reply: str

    class Question(Observation):  # type: ignore[misc]  # as above
        text: str = ""

    class Sums(Environment):  # type: ignore[misc]  # as above
        SUPPORTS_CONCURRENT_SESSIONS = True

        def __init__(self) -> None:
            super().__init__()
            self._state = State(episode_id="", step_count=0)

        def reset(self, task: int = 0, **_: Any) -> Any:
            self.row = rows[task]
            return Question(text=self.row["question"], done=False, reward=0.0)

        def step(self, action: Any, **_: Any) -> Any:
            right = action.reply.strip() == self.row["answer"]
            return Question(done=True, reward=float(right))

        @property
        def state(self) -> Any:
            return self._state

    concurrency = ConcurrencyConfig(max_concurrent_envs=256)
    return create_fastapi_app(Sums, Reply, Question, concurrency_config=concurrency)


async def play(
    url: str, rows: list[dict[str, str]], clients: int, seconds: float
) -> dict[str, Any]:
    """Each client plays one episode after the other; every reward is checked."""
    from openenv.core.generic_client import GenericEnvClient

    until = time.perf_counter() + 3600
    counts = [0] * clients
    wrong = 0

    async def one(me: int, env: Any) -> None:
        nonlocal wrong
        row = me
        while time.perf_counter() < until:
            row = (row + clients) % len(rows)
            await env.reset(task=row)
            result = await env.step({"reply": rows[row]["reply"]})
            wrong += result.reward != float(rows[row]["reply"] == rows[row]["answer"])
            counts[me] += 1

    envs = [GenericEnvClient(base_url=url) for _ in range(clients)]
    for env in envs:
        await env.connect()
    started = time.perf_counter()
    until = started + seconds
    await asyncio.gather(*(one(i, env) for i, env in enumerate(envs)))
    spent = time.perf_counter() - started
    for env in envs:
        await env.close()
    return {"episodes": sum(counts), "seconds": spent, "wrong": wrong}


def main() -> None:
    """Serve, or play."""
    what, *rest = sys.argv[1:]
    if what == "serve":
        import uvicorn

        rows = json.loads(Path(rest[0]).read_text())
        uvicorn.run(app_of(rows), port=int(rest[1]), log_level="warning")
        return
    url, path, clients, seconds = rest
    rows = json.loads(Path(path).read_text())
    print(json.dumps(asyncio.run(play(url, rows, int(clients), float(seconds)))))


if __name__ == "__main__":
    main()
