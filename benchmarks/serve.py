"""Episodes a second over WebSocket: ``assay serve`` and OpenEnv's server, in turn, in one run.

    python benchmarks/serve.py --openenv PYTHON [--clients 8] [--seconds 3] [--rounds 5]

``PYTHON`` is an interpreter that has ``pip install openenv``; without it ours is measured alone.
Both serve the same rows, and every reward is checked. Who plays is a process of its own, all its
clients in one event loop, over ``websockets``: OpenEnv's ``GenericEnvClient``, which also plays on
our server, and for us a client of a few lines that sends and reads JSON. An episode is one message
to ours (its step, with the next one's reset), and two to OpenEnv's, which has no such message.
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
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from measuring import console, in_turn, last_json, show
from serve_sums import ROWS, answer, question, reply
from websockets.asyncio.client import connect

HERE = Path(__file__).parent
PEER = "OpenEnv's client and server"


@contextmanager
def ours(*args: str, env: str = "Sums") -> Iterator[tuple[str, int]]:
    """``assay serve`` as a process; its address and process id."""
    command = [sys.executable, "-m", "assay", "serve", f"serve_sums:bench/{env}-v0"]
    process = subprocess.Popen(
        [*command, "--port", "0", "--no-access-log", *args],
        cwd=HERE,
        env={**os.environ, "ASSAY_SERVE_TOKEN": ""},
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


async def play(url: str, clients: int, seconds: float, abreast: int) -> dict[str, Any]:
    """Each client plays so many episodes abreast, over and over; every score is checked."""
    counts, wrong = [0] * clients, 0

    async def one(me: int, ws: Any, until: float) -> None:
        nonlocal wrong
        row = me * ROWS // clients
        tasks = [(row + i) % ROWS for i in range(abreast)]
        await ws.send(json.dumps({"op": "reset", "id": 0, "tasks": tasks}))
        begun = json.loads(await ws.recv())["episodes"]
        while time.perf_counter() < until:
            row += abreast
            steps = [
                {"episode": e["episode"], "reply": reply(task)}
                for e, task in zip(begun, tasks, strict=True)
            ]
            played, tasks = tasks, [(row + i) % ROWS for i in range(abreast)]
            message = {"op": "step", "id": 1, "steps": steps, "reset": {"tasks": tasks}}
            await ws.send(json.dumps(message))
            answer = json.loads(await ws.recv())
            begun = answer["episodes"]
            for task, outcome in zip(played, answer["outcomes"], strict=True):
                wrong += outcome["verdict"]["score"] != float(task % 2 == 0)
            counts[me] += abreast

    address = url.replace("http", "ws") + "/v1/ws"
    sockets = [await connect(address, compression=None) for _ in range(clients)]
    started = time.perf_counter()
    await asyncio.gather(*(one(i, ws, started + seconds) for i, ws in enumerate(sockets)))
    spent = time.perf_counter() - started
    for ws in sockets:
        await ws.close()
    return {"episodes": sum(counts), "seconds": spent, "wrong": wrong}


def compare(options: argparse.Namespace) -> None:
    """Measure in turn, and print medians and ratios."""
    with ExitStack() as stack:
        path = Path(stack.enter_context(tempfile.TemporaryDirectory()), "rows.json")
        rows = [
            {"question": question(i), "answer": answer(i), "reply": reply(i)} for i in range(ROWS)
        ]
        path.write_text(json.dumps(rows))
        url, _ = stack.enter_context(ours())
        load = [str(options.clients), str(options.seconds)]

        # Our client is in a process of its own, as the peer's is.
        def own(abreast: int) -> list[str]:
            return [sys.executable, __file__, "--play", url, *load, str(abreast)]

        def peers(address: str) -> list[str]:
            return [options.openenv, str(HERE / "serve_peer.py"), "play", address, str(path), *load]

        commands = {"ours, 64 episodes abreast": own(64), "ours, one at a time": own(1)}
        if options.openenv:
            address = stack.enter_context(theirs(options.openenv, path))
            commands["OpenEnv's client, our server"] = peers(f"{url}/openenv")
            commands[PEER] = peers(address)
        rates = in_turn(
            {name: partial(_rate, command) for name, command in commands.items()}, options.rounds
        )
    base = statistics.median(rates.get(PEER, [0.0]))
    rows = []
    for name, values in rates.items():
        middle = statistics.median(values)
        ratio = f"{middle / base:.1f}" if base else "-"
        rows.append([name, f"{middle:.0f}", f"{min(values):.0f}", f"{max(values):.0f}", ratio])
    show(
        f"Episodes a second over WebSocket, {options.clients} clients, medians",
        ["", "episodes/s", "lowest", "highest", "ratio"],
        rows,
    )


def _rate(command: list[str]) -> float:
    found = last_json(command)
    assert found["wrong"] == 0, (command, found)
    return float(found["episodes"] / found["seconds"])


def main() -> None:
    """Compare, or play."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--openenv", help="an interpreter that has openenv")
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--play", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.play:
        url, clients, seconds, abreast = options.play
        played = asyncio.run(play(url, int(clients), float(seconds), int(abreast)))
        print(json.dumps(played))
        return
    compare(options)


if __name__ == "__main__":
    main()
