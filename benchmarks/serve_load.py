"""A bounded minute of 64 clients of which 40 mean ill: what the 24 others get, and what is left.

    python benchmarks/serve_load.py [--seconds 60]

Bad tokens, oversized and malformed bodies (HTTP and WebSocket), readers that do not read, sockets
dropped in mid-episode. Counted: wrong scores (none may be), answers 500 (none may be), latencies
of the honest, memory and open files before and after.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import random
import socket
import ssl
import statistics
import struct
import time
import urllib.request
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
from rich.console import Console
from rich.table import Table
from serve import ours
from serve_sums import ROWS, reply
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

TOKEN = "a-token-for-the-load-0123456789"
console = Console()
# One for all: to read the certificates of authorities takes each client its time, TLS or not.
NO_TLS = ssl.create_default_context()


@dataclass
class Seen:
    """What clients saw."""

    url: str
    until: float
    http_ms: list[float] = field(default_factory=list)
    socket_ms: list[float] = field(default_factory=list)
    told: Counter[str] = field(default_factory=Counter)
    scores: int = 0
    wrong: int = 0
    withheld: int = 0

    @property
    def going(self) -> bool:
        """Whether there is time left."""
        return time.monotonic() < self.until

    @property
    def address(self) -> tuple[str, int]:
        """Host and port."""
        parts = urlsplit(self.url)
        return parts.hostname or "", parts.port or 0

    def judged(self, task: int, score: float | None) -> None:
        """Check a score against the one it must be."""
        self.scores += 1
        self.withheld += score is None
        self.wrong += score is not None and score != float(task % 2 == 0)


def headers(token: str = TOKEN) -> dict[str, str]:
    """Of a request."""
    return {"authorization": f"Bearer {token}"}


async def honest_http(seen: Seen, rng: random.Random) -> None:
    """Scores batches."""
    async with httpx.AsyncClient(
        base_url=seen.url, headers=headers(), timeout=60, verify=NO_TLS
    ) as client:
        while seen.going:
            tasks = [rng.randrange(ROWS) for _ in range(rng.randrange(1, 32))]
            body = {"replies": [reply(t) for t in tasks], "tasks": tasks}
            began = time.perf_counter()
            answer = await client.post("/v1/score", json=body)
            seen.http_ms.append(1000 * (time.perf_counter() - began))
            seen.told[f"honest http {answer.status_code}"] += 1
            if answer.status_code == 200:
                for task, verdict in zip(tasks, answer.json()["verdicts"], strict=True):
                    seen.judged(task, verdict["score"])
            await asyncio.sleep(0.02)


async def honest_socket(seen: Seen, rng: random.Random) -> None:
    """Plays episodes."""
    address = seen.url.replace("http", "ws") + "/v1/ws"
    async with connect(address, additional_headers=headers(), compression=None) as ws:
        while seen.going:
            tasks = [rng.randrange(ROWS) for _ in range(rng.randrange(1, 32))]
            began = time.perf_counter()
            await ws.send(json.dumps({"op": "reset", "id": 1, "tasks": tasks}))
            begun = json.loads(await ws.recv()).get("episodes")
            if begun is None:
                seen.told["honest socket, refused"] += 1
                await asyncio.sleep(1)
                continue
            steps = [
                {"episode": e["episode"], "reply": reply(t)}
                for e, t in zip(begun, tasks, strict=True)
            ]
            await ws.send(json.dumps({"op": "step", "id": 2, "steps": steps}))
            outcomes = json.loads(await ws.recv()).get("outcomes")
            if outcomes is None:
                seen.told["honest socket, refused"] += 1
                await asyncio.sleep(1)
                continue
            seen.socket_ms.append(1000 * (time.perf_counter() - began))
            for task, outcome in zip(tasks, outcomes, strict=True):
                seen.judged(task, outcome["verdict"]["score"])
            await asyncio.sleep(0.02)


async def bad_token(seen: Seen, rng: random.Random) -> None:
    """Guesses tokens."""
    async with httpx.AsyncClient(base_url=seen.url, timeout=60, verify=NO_TLS) as client:
        while seen.going:
            answer = await client.get("/v1/tasks/1", headers=headers(f"{rng.random():.20f}"))
            seen.told[f"bad token {answer.status_code}"] += 1
            address = seen.url.replace("http", "ws") + "/v1/ws"
            try:
                async with connect(address, additional_headers=headers("wrong" * 5)):
                    seen.told["bad token let in"] += 1
            except InvalidStatus as refused:
                seen.told[f"bad token, socket {refused.response.status_code}"] += 1
            await asyncio.sleep(0.05)


async def oversized(seen: Seen, rng: random.Random) -> None:
    """Sends more than it may: told beforehand, in chunks, as one WebSocket message."""

    async def chunks() -> Any:
        for _ in range(40):
            yield b"x" * 2**18

    async with httpx.AsyncClient(
        base_url=seen.url, headers=headers(), timeout=60, verify=NO_TLS
    ) as client:
        while seen.going:
            for content in (b"x" * (9 * 2**20), chunks()):
                try:
                    answer = await client.post("/v1/score", content=content)
                    seen.told[f"oversized {answer.status_code}"] += 1
                except httpx.TransportError:
                    seen.told["oversized, cut off"] += 1
            address = seen.url.replace("http", "ws") + "/v1/ws"
            try:
                async with connect(address, additional_headers=headers(), compression=None) as ws:
                    await ws.send("x" * (9 * 2**20))
                    await ws.recv()
            except (ConnectionClosed, InvalidStatus, OSError):
                seen.told["oversized, socket closed"] += 1
            await asyncio.sleep(0.5 + rng.random())


async def malformed(seen: Seen, rng: random.Random) -> None:
    """Sends what is no request, or no JSON, or not the right JSON."""
    bodies = [b"{", b"[" * 50_000, b"\xff\xfe", b'{"replies":"x"}', b'{"replies":[1e999]}', b"null"]
    async with httpx.AsyncClient(
        base_url=seen.url, headers=headers(), timeout=60, verify=NO_TLS
    ) as client:
        while seen.going:
            for body in bodies:
                answer = await client.post("/v1/score", content=body)
                seen.told[f"malformed {answer.status_code}"] += 1
            address = seen.url.replace("http", "ws") + "/v1/ws"
            with contextlib.suppress(ConnectionClosed, InvalidStatus, OSError):
                async with connect(address, additional_headers=headers()) as ws:
                    for body in bodies:
                        await ws.send(body)
                        seen.told[f"malformed, socket {'error' in await ws.recv()}"] += 1
            await raw(seen, rng.randbytes(200) + b"\r\n\r\n")
            await asyncio.sleep(0.1)


async def raw(seen: Seen, request: bytes, *, drop: bool = False) -> None:
    """Bytes, and whatever comes back; or none is waited for."""
    reader, writer = await asyncio.open_connection(*seen.address)
    with contextlib.suppress(OSError):
        writer.write(request)
        await writer.drain()
        if not drop:
            await asyncio.wait_for(reader.read(100), 20)
    if drop:  # no goodbye: a reset
        linger = struct.pack("ii", 1, 0)
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()


async def slow_reader(seen: Seen, rng: random.Random) -> None:
    """Asks for much, again and again, and reads nothing of it."""
    tasks = json.dumps({"tasks": list(range(500)) * 2}).encode()
    head = f"POST /v1/tasks HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {len(tasks)}\r\n\r\n"
    while seen.going:
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as raw_socket:
            raw_socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            raw_socket.setblocking(False)
            loop = asyncio.get_running_loop()
            await loop.sock_connect(raw_socket, seen.address)
            with contextlib.suppress(OSError, TimeoutError):
                for _ in range(20):
                    await asyncio.wait_for(loop.sock_sendall(raw_socket, head.encode() + tasks), 5)
            seen.told["slow reader"] += 1
            await asyncio.sleep(5 + 10 * rng.random())


async def dropper(seen: Seen, rng: random.Random) -> None:
    """Begins episodes and leaves; sends half a request and leaves."""
    address = seen.url.replace("http", "ws") + "/v1/ws"
    while seen.going:
        try:
            ws = await connect(address, additional_headers=headers(), compression=None)
        except (InvalidStatus, OSError):
            await asyncio.sleep(0.2)
            continue
        await ws.send(json.dumps({"op": "reset", "id": 1, "count": 200}))
        if rng.random() < 0.5:
            await ws.recv()
            steps = [{"episode": str(i), "reply": "x"} for i in range(1, 201)]
            await ws.send(json.dumps({"op": "step", "id": 2, "steps": steps}))
        ws.transport.abort()
        seen.told["dropped"] += 1
        half = b"POST /v1/score HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{"
        await raw(seen, half, drop=True)
        await asyncio.sleep(0.1)


CLIENTS: list[tuple[Callable[[Seen, random.Random], Awaitable[None]], int]] = [
    (honest_http, 12),
    (honest_socket, 12),
    (bad_token, 8),
    (oversized, 8),
    (malformed, 8),
    (slow_reader, 8),
    (dropper, 8),
]


def spent(pid: int) -> float:
    """CPU seconds of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def state(pid: int) -> tuple[float, int]:
    """A process's memory in MiB, and its open files."""
    status = Path(f"/proc/{pid}/status").read_text()
    rss = next(line for line in status.splitlines() if line.startswith("VmRSS"))
    return int(rss.split()[1]) / 1024, len(list(Path(f"/proc/{pid}/fd").iterdir()))


def metrics(url: str) -> dict[str, float]:
    """The server's own counts."""
    asked = urllib.request.Request(f"{url}/metrics", headers=headers())  # noqa: S310  # our own
    with urllib.request.urlopen(asked, timeout=30) as answer:  # noqa: S310  # as above
        lines = answer.read().decode().splitlines()
    pairs = (line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    return {name: float(value) for name, value in pairs}


async def crowd(seen: Seen) -> list[Any]:
    """All clients, until the time is over."""
    jobs = []
    for kind, times in CLIENTS:
        jobs += [kind(seen, random.Random(f"{kind.__name__} {i}")) for i in range(times)]  # noqa: S311  # the same load each time
    return await asyncio.gather(*jobs, return_exceptions=True)


def at(times: list[float], share: float) -> float:
    """A percentile."""
    return sorted(times)[min(len(times) - 1, int(share * len(times)))] if times else 0.0


def load(seconds: float) -> None:
    """Put the server under load and print what came of it."""
    with ours("--limit", "read_s=5", "--limit", "idle_s=60", token=TOKEN) as (url, pid):
        warm = Seen(url, time.monotonic() + 5)
        asyncio.run(crowd(warm))
        time.sleep(7)
        before, cpu = state(pid), (spent(pid), time.process_time())
        seen = Seen(url, time.monotonic() + seconds)
        ended = asyncio.run(crowd(seen))
        during = state(pid)
        cpu = (spent(pid) - cpu[0], time.process_time() - cpu[1])
        time.sleep(8)  # longer than read_s: who does not read is gone by then
        after, counts = state(pid), metrics(url)
    broken = [error for error in ended if isinstance(error, BaseException)]
    table = Table(title=f"64 clients, 40 of them hostile, {seconds:g} s")
    for heading in ("", ""):
        table.add_column(heading)
    refused = {k: v for k, v in counts.items() if 'status="500"' in k and v}
    for name, value in (
        ("scores checked / wrong / withheld", f"{seen.scores} / {seen.wrong} / {seen.withheld}"),
        ("answers 500", str(sum(refused.values()))),
        *(
            (f"{name}, ms: p50 / p99 / most", " / ".join(f"{v:.1f}" for v in values))
            for name, values in (
                (
                    "scoring over HTTP",
                    [statistics.median(seen.http_ms), at(seen.http_ms, 0.99), max(seen.http_ms)],
                ),
                (
                    "episodes over WebSocket",
                    [
                        statistics.median(seen.socket_ms),
                        at(seen.socket_ms, 0.99),
                        max(seen.socket_ms),
                    ],
                ),
            )
        ),
        (
            "memory, MiB: before / at the end / after",
            f"{before[0]:.0f} / {during[0]:.0f} / {after[0]:.0f}",
        ),
        ("open files: before / at the end / after", f"{before[1]} / {during[1]} / {after[1]}"),
        ("CPU seconds: server / all clients", f"{cpu[0]:.1f} / {cpu[1]:.1f}"),
        (
            "held after: episodes, sockets, queue",
            " ".join(str(counts[f"assay_{n}"]) for n in ("episodes", "sockets", "queue")),
        ),
        ("honest clients that broke off", repr(broken) if broken else "none"),
    ):
        table.add_row(name, value)
    console.print(table)
    for told, times in sorted(seen.told.items()):
        console.print(f"{times:7} {told}")
    assert seen.wrong == 0
    assert not broken
    assert counts["assay_episodes"] == counts["assay_sockets"] == counts["assay_queue"] == 0
    assert not refused


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60.0)
    load(parser.parse_args().seconds)
