"""Forward requests to the worker that has the session."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import httpx

from . import messages
from .refused import Refused
from .service import EnvironmentService


class Peers:
    """The workers of a server, connected by Unix sockets.

    The id of a session begins with the number of its worker. A single process forwards nothing.

    Args:
        service: the service of this worker.
    """

    def __init__(self, service: EnvironmentService) -> None:
        self.service, self.index = service, 0
        self._clients: list[httpx.AsyncClient] = []

    def join(self, index: int, paths: Sequence[str], *, secure: bool) -> None:
        """Join the workers whose sockets are at these paths."""
        self.index = index
        self.service.new_prefix(index)
        self._clients = [
            httpx.AsyncClient(
                # TLS without verification: only this user can access the sockets
                transport=httpx.AsyncHTTPTransport(uds=path, verify=False),
                base_url=f"{'https' if secure else 'http'}://localhost",
                timeout=self.service.limits.request_s + 10,
            )
            for path in paths
        ]

    async def step(
        self, steps: Sequence[messages.Step], owner: str, token: str | None
    ) -> list[dict[str, Any]]:
        """Take steps in the processes of their sessions.

        Raises:
            Refused: by a worker; every step has its turn, so all can be repeated.
        """
        self.service.allow("steps", len(steps))

        async def some(worker: int, places: list[int]) -> list[dict[str, Any]]:
            mine = [steps[place] for place in places]
            try:
                if worker == self.index:
                    return await self.service.step(mine, self.service.store_of(owner))
                body = {"steps": [step.model_dump() for step in mine]}
                answer = await self._post(worker, "/v1/episodes/step", body, token)
                return list(answer["outcomes"])
            except Refused as refused:
                if len(parts) == 1 or all(step.turn is not None for step in steps):
                    raise
                return [{"episode": step.episode, **refused.to_json()} for step in mine]

        parts = self._by_worker([step.episode for step in steps])
        found = await asyncio.gather(*(some(*part) for part in parts.items()))
        outcomes: list[dict[str, Any]] = [{}] * len(steps)
        for places, part in zip(parts.values(), found, strict=True):
            for place, outcome in zip(places, part, strict=True):
                outcomes[place] = outcome
        return outcomes

    async def close(self, ids: Sequence[str], owner: str, token: str | None) -> int:
        """Close sessions in their processes; return how many existed."""
        self.service.allow("episodes", len(ids))

        async def some(worker: int, places: list[int]) -> int:
            mine = [ids[place] for place in places]
            if worker == self.index:
                return self.service.close(mine, self.service.store_of(owner))
            answer = await self._post(worker, "/v1/episodes/close", {"episodes": mine}, token)
            return int(answer["closed"])

        parts = self._by_worker(ids)
        return sum(await asyncio.gather(*(some(*part) for part in parts.items())))

    async def end(self) -> None:
        """End the connections."""
        for client in self._clients:
            await client.aclose()

    def _by_worker(self, ids: Sequence[str]) -> dict[int, list[int]]:
        """Return the indices of ids by worker."""
        parts: dict[int, list[int]] = {}
        for place, id_ in enumerate(ids):
            number = id_.partition(".")[0]
            known = number.isdecimal() and len(number) < 5 and int(number) < len(self._clients)
            parts.setdefault(int(number) if known else self.index, []).append(place)
        return parts or {self.index: []}

    async def _post(self, worker: int, path: str, body: Any, token: str | None) -> dict[str, Any]:
        headers = {"content-type": "application/json"}
        headers |= {} if token is None else {"authorization": token}
        content = json.dumps(body)  # in ASCII: a reply may hold halves of surrogate pairs
        try:
            answer = await self._clients[worker].post(path, content=content, headers=headers)
            reply: dict[str, Any] = answer.json()
        except (httpx.HTTPError, ValueError) as error:
            raise Refused(
                503,
                "worker",
                f"worker {worker} does not answer ({type(error).__name__}): if it has exited, it "
                "is restarted, and its episodes are lost",
                retry_s=1,
            ) from error
        if answer.is_success:
            return reply
        why = reply["error"]
        raise Refused(answer.status_code, why["code"], why["message"], retry_s=why.get("retry_s"))
