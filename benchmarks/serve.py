"""Episodes a second over WebSocket: ``assay serve`` and OpenEnv's server, in turn, in one run.

    python benchmarks/serve.py --openenv PYTHON [--clients 8] [--seconds 3] [--rounds 5]

``PYTHON`` is an interpreter that has ``pip install openenv``; without it ours is measured alone.
Both serve the same rows, and every reward is checked. Who plays is a process of its own, all its
clients in one event loop, over ``websockets``: OpenEnv's ``GenericEnvClient``, and for us a client
of a few lines that sends and reads JSON. Since that costs less than OpenEnv's, it plays on
OpenEnv's server, too ("the same client"): so both servers are compared by one client, too.
An episode is one message to ours (its step, with the next one's reset), and two to OpenEnv's,
which has no such message; "reset apart" sends two to ours as well.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from serve_sums import ROWS, answer, question, reply
from websockets.asyncio.client import connect

HERE = Path(__file__).parent
console = Console()


@contextmanager
def ours(*args: str, token: str = "", env: str = "Sums") -> Iterator[tuple[str, int]]:
    """``assay serve`` as a process; its address and process id."""
    command = [sys.executable, "-m", "assay", "serve", f"serve_sums:bench/{env}-v0"]
    process = subprocess.Popen(
        [*command, "--port", "0", "--no-access-log", *args],
        cwd=HERE,
        env={**os.environ, "ASSAY_SERVE_TOKEN": token},
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    line = process.stderr.readline()
    assert " at http" in line, line + process.stderr.read()
    try:
        yield line.split(" at ")[1].split()[0], process.pid
    finally:
        process.send_signal(signal.SIGTERM)
        rest = process.communicate(timeout=60)[1]
        assert process.returncode == 0, rest
        if rest:
            console.print("the server's log:", rest[-2000:], markup=False)


@contextmanager
def theirs(python: str, rows: Path) -> Iterator[str]:
    """OpenEnv's server as a process; its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen([python, str(HERE / "serve_peer.py"), "serve", str(rows), str(port)])
    url = f"http://127.0.0.1:{port}"
    try:
        for _ in range(300):
            try:
                urllib.request.urlopen(f"{url}/health", timeout=1).read()  # noqa: S310  # an address of our own
                break
            except OSError:
                time.sleep(0.2)
        yield url
    finally:
        process.terminate()
        process.wait(timeout=60)


async def play(
    url: str, clients: int, seconds: float, abreast: int, *, apart: bool = False
) -> dict[str, Any]:
    """Each client plays so many episodes abreast, over and over; every score is checked.

    The next ones begin with the steps of those before, or ``apart``, in a message of their own.
    """
    counts, wrong = [0] * clients, 0

    async def one(me: int, ws: Any, until: float) -> None:
        nonlocal wrong
        row = me * ROWS // clients
        begun = None
        while time.perf_counter() < until:
            if begun is None:
                tasks = [(row + i) % ROWS for i in range(abreast)]
                await ws.send(json.dumps({"op": "reset", "id": 0, "tasks": tasks}))
                begun = json.loads(await ws.recv())["episodes"]
            row += abreast
            steps = [
                {"episode": e["episode"], "reply": reply(task)}
                for e, task in zip(begun, tasks, strict=True)
            ]
            message = {"op": "step", "id": 1, "steps": steps}
            played, tasks = tasks, [(row + i) % ROWS for i in range(abreast)]
            if not apart:
                message["reset"] = {"tasks": tasks}
            await ws.send(json.dumps(message))
            told = json.loads(await ws.recv())
            begun = told.get("episodes")
            for task, outcome in zip(played, told["outcomes"], strict=True):
                wrong += outcome["verdict"]["score"] != float(task % 2 == 0)
            counts[me] += abreast

    spent = await _together(url, "/v1/ws", one, clients, seconds)
    return {"episodes": sum(counts), "seconds": spent, "wrong": wrong}


async def play_theirs(url: str, clients: int, seconds: float) -> dict[str, Any]:
    """The same client with OpenEnv's messages: one episode at a time, every reward is checked."""
    counts, wrong = [0] * clients, 0

    async def one(me: int, ws: Any, until: float) -> None:
        nonlocal wrong
        row = me * ROWS // clients
        while time.perf_counter() < until:
            row = (row + 1) % ROWS
            await ws.send(json.dumps({"type": "reset", "data": {"task": row}}))
            json.loads(await ws.recv())
            await ws.send(json.dumps({"type": "step", "data": {"reply": reply(row)}}))
            told = json.loads(await ws.recv())["data"]
            wrong += told["reward"] != float(row % 2 == 0)
            counts[me] += 1

    spent = await _together(url, "/ws", one, clients, seconds)
    return {"episodes": sum(counts), "seconds": spent, "wrong": wrong}


async def _together(
    url: str, route: str, one: Callable[..., Awaitable[None]], clients: int, seconds: float
) -> float:
    """Let so many clients play side by side for a while; how long it took them."""
    address = url.replace("http", "ws") + route
    sockets = [await connect(address, compression=None) for _ in range(clients)]
    started = time.perf_counter()
    await asyncio.gather(*(one(i, ws, started + seconds) for i, ws in enumerate(sockets)))
    spent = time.perf_counter() - started
    for ws in sockets:
        await ws.close()
    return spent


def compare(options: argparse.Namespace) -> None:
    """Measure in turn, and print medians and ratios."""
    rates: dict[str, list[float]] = {}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        rows = folder / "rows.json"
        told = [
            {"question": question(i), "answer": answer(i), "reply": reply(i)} for i in range(ROWS)
        ]
        rows.write_text(json.dumps(told))
        url, _ = stack.enter_context(ours())

        def own(abreast: int, *more: str, at: str = url) -> Callable[[], dict[str, Any]]:
            # In a process of its own, as the peer's client is.
            command = [sys.executable, __file__, "--play", at, "--clients", str(options.clients)]
            command += ["--seconds", str(options.seconds), "--abreast", str(abreast), *more]
            return lambda: _answer(command)

        def peers(address: str) -> Callable[[], dict[str, Any]]:
            command = [options.openenv, str(HERE / "serve_peer.py"), "play", address, str(rows)]
            return lambda: _answer([*command, str(options.clients), str(options.seconds)])

        contenders = {
            "ours, 64 episodes abreast": own(64),
            "ours, 8 episodes abreast": own(8),
            "ours, one at a time": own(1),
            "ours, one at a time, reset apart": own(1, "--apart"),
        }
        if options.openenv:
            address = stack.enter_context(theirs(options.openenv, rows))
            contenders["OpenEnv's messages, the same client, our server"] = own(
                1, "--theirs", at=f"{url}/openenv"
            )
            contenders["OpenEnv's server, the same client"] = own(1, "--theirs", at=address)
            contenders["OpenEnv's client, our server"] = peers(f"{url}/openenv")
            contenders["OpenEnv's client and server"] = peers(address)
        for turn in range(options.rounds):
            for name, measure in contenders.items():
                found = measure()
                assert found["wrong"] == 0, (name, found)
                rates.setdefault(name, []).append(found["episodes"] / found["seconds"])
            console.print(f"round {turn + 1} of {options.rounds}")
    base = statistics.median(rates.get("OpenEnv's client and server", [0.0]))
    table = Table(title=f"Episodes a second over WebSocket, {options.clients} clients, medians")
    for heading in ("", "episodes/s", "lowest", "highest", "ratio"):
        table.add_column(heading, justify="left" if not heading else "right")
    for name, values in rates.items():
        middle = statistics.median(values)
        ratio = f"{middle / base:.1f}" if base else "-"
        table.add_row(name, f"{middle:.0f}", f"{min(values):.0f}", f"{max(values):.0f}", ratio)
    console.print(table)


def _answer(command: list[str]) -> dict[str, Any]:
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout.splitlines()[-1]))


def main() -> None:
    """Compare, or play."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--openenv", help="an interpreter that has openenv")
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--play", help=argparse.SUPPRESS)
    parser.add_argument("--abreast", type=int, default=1, help=argparse.SUPPRESS)
    parser.add_argument("--theirs", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--apart", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.play:
        where = options.play, options.clients, options.seconds
        if options.theirs:
            playing = play_theirs(*where)
        else:
            playing = play(*where, options.abreast, apart=options.apart)
        print(json.dumps(asyncio.run(playing)))
        return
    compare(options)


if __name__ == "__main__":
    main()
