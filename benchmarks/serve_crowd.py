"""Requests that come all at one time from one machine: what is lost, and what memory they leave.

    python benchmarks/serve_crowd.py [--requests 2000] [--workers 1 2] [--env Sums Programs]

Each of the clients opens a connection, and all at once ask for the score of one reply. One that is
refused for want of room (503) comes back after ``Retry-After``. Every score is checked: wrong is
one that differs from what the reply earns, lost one that never came, or came as null. ``Sums``
compares text; ``Programs`` runs each reply in the default sandbox. Medians of the rounds, after one
that warms up; memory is that of all server processes together, without those of the sandboxes.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import time
from collections import Counter
from pathlib import Path

from measuring import resident_mib, show
from serve import ours
from serve_sums import ROWS, program, reply


async def crowd(url: str, requests: int, env: str, found: Counter[str]) -> list[float]:
    """Ask so often at one time; the seconds that each took, with its retries."""
    host, port = url.removeprefix("http://").split(":")

    async def ask(body: bytes) -> tuple[int, float, dict[str, object]]:
        reader, writer = await asyncio.open_connection(host, int(port))
        head = f"POST /v1/score HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n"
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        try:
            writer.write(head.encode() + body)
            top, _, rest = (await reader.read()).partition(b"\r\n\r\n")
        finally:
            writer.close()
        status, after = int(top.split()[1]), 1.0
        for line in top.lower().splitlines():
            if line.startswith(b"retry-after:"):
                after = float(line.split(b":")[1])
        return status, after, json.loads(rest)

    async def one(number: int) -> float:
        row = number % ROWS
        text = reply(row) if env == "Sums" else program(row, number)
        body = json.dumps({"replies": [text], "tasks": [row]}).encode()
        began = time.perf_counter()
        for _ in range(60):
            try:
                status, after, told = await ask(body)
            except (OSError, ValueError, IndexError) as error:
                found[type(error).__name__] += 1
                status, after = 0, 1.0
            if status == 200:
                score = told["verdicts"][0]["score"]  # type: ignore[index]  # JSON
                found["lost"] += score is None
                found["wrong"] += score is not None and score != float(row % 2 == 0)
                found["right"] += score == float(row % 2 == 0)
                return time.perf_counter() - began
            found[f"status {status}"] += 1
            await asyncio.sleep(after)
        found["lost"] += 1
        return time.perf_counter() - began

    return await asyncio.gather(*map(one, range(requests)))


def state(pid: int) -> tuple[float, int]:
    """Memory in MiB and open files of a server and its workers."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    workers = [int(c) for c in children if b"spawn_main" in Path(f"/proc/{c}/cmdline").read_bytes()]
    pids = [pid, *workers]
    files = sum(len(list(Path(f"/proc/{one}/fd").iterdir())) for one in pids)
    return sum(resident_mib(pid=one) for one in pids), files


def main() -> None:
    """Measure, and print medians."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--requests", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--env", nargs="+", choices=["Sums", "Programs"], default=["Sums"])
    options = parser.parse_args()
    rows = [measure(env, workers, options) for env in options.env for workers in options.workers]
    show(
        f"{options.requests} requests at one time, medians of {options.rounds}",
        ["", "right/wrong/lost", "requests/s", "p50 s", "p99 s", "MiB", "files", "else"],
        rows,
    )


def measure(env: str, workers: int, options: argparse.Namespace) -> list[str]:
    """Return a row of the table, after some rounds on one server."""
    rates, middles, tails, states = [], [], [], []
    found: Counter[str] = Counter()
    with ours("--workers", str(workers), env=env) as (url, pid):
        asyncio.run(crowd(url, options.requests, env, Counter()))  # all workers are up
        for _ in range(options.rounds):
            began = time.perf_counter()
            spent = sorted(asyncio.run(crowd(url, options.requests, env, found)))
            rates.append(len(spent) / (time.perf_counter() - began))
            middles.append(statistics.median(spent))
            tails.append(spent[int(0.99 * len(spent))])
            time.sleep(1.0)
            states.append(state(pid))
    scores = [found.pop(name, 0) for name in ("right", "wrong", "lost")]
    assert scores[1] == scores[2] == 0, scores
    (memory, files), (memory_after, files_after) = states[0], states[-1]
    return [
        f"{env}, {workers} workers",
        "/".join(map(str, scores)),
        f"{statistics.median(rates):.0f}",
        f"{statistics.median(middles):.2f}",
        f"{statistics.median(tails):.2f}",
        f"{memory:.0f} to {memory_after:.0f}",
        f"{files} to {files_after}",
        ", ".join(f"{count} {name}" for name, count in found.items()),
    ]


if __name__ == "__main__":
    main()
