"""Programs a second: our sandboxes, bare Python, Docker as such, and peers, in turn, in one run.

    python benchmarks/sandbox.py [--seconds 2] [--rounds 5] [--concurrency 1 2 8] [--only NAME ...]
    python benchmarks/sandbox.py --curve 100000 --plot curve.png [--backend docker]

Peers are measured where an interpreter has them, each in a virtual environment of its own:
``--llm-sandbox PYTHON`` (``pip install llm-sandbox docker``) and ``--epicbox PYTHON``
(``pip install epicbox 'urllib3<2'``). What is missing is left out, with a line that says so.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import platform
import queue
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from measuring import console, json_worker, left_out, show
from rich.console import Console
from rich.progress import track

from assay.figures import figures_table, measured
from assay.sandbox import Sandbox
from assay.sandbox.backends.bwrap import bwrap_fault
from assay.sandbox.backends.docker import DEFAULT_IMAGE, connect, daemon_fault
from assay.sandbox.diagnostics.bench import BARE, OUTPUT, PROGRAM, Design, bare, single, two_party

HARDENED = """--network none --read-only --cap-drop ALL --security-opt no-new-privileges
--pids-limit 64 --memory 256m --memory-swap 256m --cpus 1 --ulimit core=0 --log-driver none
--tmpfs /tmp:size=64m"""
SHELL_TOOLS = "sh mkdir rm ls cat chown chmod sleep tail test"
PEERS = {
    "llm-sandbox": "pip install llm-sandbox docker",
    "epicbox": "pip install epicbox 'urllib3<2'",
}
WORKER = Path(__file__).with_name("sandbox_peer.py")


@contextlib.contextmanager
def docker_run(most: int) -> Iterator[list[Design]]:
    """A hardened container for each program, by the command line."""
    command = ["docker", "run", "--rm", *HARDENED.split(), DEFAULT_IMAGE, "python3", "-I", "-c"]

    def run() -> str:
        done = subprocess.run([*command, PROGRAM], capture_output=True, text=True, check=False)
        return done.stdout or done.stderr

    yield [Design("docker run --rm", run)]


@contextlib.contextmanager
def docker_exec(most: int) -> Iterator[list[Design]]:
    """A process in a warm hardened container, by the SDK, which is faster than the command line.

    As many containers as programs at one time, since each may use one core.
    """
    start = ["docker", "run", "--rm", "-d", *HARDENED.split(), DEFAULT_IMAGE, "python3", "-I", "-c"]
    warm = [
        subprocess.run(
            [*start, "import time; time.sleep(86400)"], capture_output=True, text=True, check=True
        ).stdout.strip()
        for _ in range(most)
    ]
    free: queue.SimpleQueue[tuple[Any, str]] = queue.SimpleQueue()
    clients = [connect() for _ in warm]
    for pair in zip(clients, warm, strict=True):
        free.put(pair)

    def run() -> str:
        client, container = free.get()
        try:
            made = client.exec_create(container, ["python3", "-I", "-c", PROGRAM])
            return str(client.exec_start(made["Id"]).decode())
        finally:
            free.put((client, container))

    try:
        yield [Design("docker exec, warm", run, most)]
    finally:
        for client in clients:
            client.close()
        subprocess.run(["docker", "rm", "-f", *warm], capture_output=True, check=False)


@contextlib.contextmanager
def peer(name: str, python: str, image: str, most: int) -> Iterator[list[Design]]:
    """Workers with another sandbox, one for each program at one time."""
    free: queue.SimpleQueue[Callable[[str], dict[str, Any]]] = queue.SimpleQueue()

    def run() -> str:
        ask = free.get()
        try:
            answer = ask("run")
            return str(answer.get("output", answer.get("error")))
        except RuntimeError as error:
            return str(error)
        finally:
            free.put(ask)

    with contextlib.ExitStack() as stack:
        command = [python, str(WORKER), name, image]
        for _ in range(most):
            free.put(stack.enter_context(json_worker(command, {"PROGRAM": PROGRAM})))
        yield [Design(name, run, most)]


@contextlib.contextmanager
def peer_image() -> Iterator[str]:
    """Our image with a shell and a few tools in it, which peers need and we leave out."""
    tag = f"assay-bench:{os.getpid()}"
    with tempfile.TemporaryDirectory() as folder:
        tools = [path for tool in SHELL_TOOLS.split() if (path := shutil.which(tool))]
        listed = subprocess.run(["ldd", *tools], capture_output=True, text=True, check=False)
        libraries = {w for w in listed.stdout.split() if w.startswith("/") and os.path.isfile(w)}
        for path, target in [
            *((path, f"root{path}") for path in libraries),
            *((path, f"root/bin/{os.path.basename(path)}") for path in tools),
        ]:
            Path(folder, target).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, Path(folder, target))
        Path(folder, "root/bin/python").symlink_to("/usr/bin/python3")
        Path(folder, "root/etc").mkdir(parents=True, exist_ok=True)
        Path(folder, "root/etc/passwd").write_text("root:x:0:0:root:/root:/bin/sh\n")
        Path(folder, "root/etc/group").write_text("root:x:0:\n")
        recipe = f'FROM {DEFAULT_IMAGE}\nCOPY root/ /\nCMD ["sh"]\n'
        Path(folder, "Dockerfile").write_text(recipe)
        client = connect(600)
        try:
            lines = list(client.build(path=folder, tag=tag, rm=True, decode=True))
            errors = [line["error"] for line in lines if "error" in line]
            if errors:
                sys.exit(f"Docker does not build the peers' image: {errors[0]}")
            yield tag
        finally:
            with contextlib.suppress(Exception):
                client.remove_image(tag, force=True)
            client.close()


def ours(backend: str, most: int) -> Callable[[], contextlib.AbstractContextManager[list[Design]]]:
    """One program alone, and a program with its tests, in one box."""

    @contextlib.contextmanager
    def make() -> Iterator[list[Design]]:
        with Sandbox(backend=backend, slots=most) as box:  # type: ignore[arg-type]  # one of two
            yield [
                single(f"ours, {backend}", box),
                two_party(f"ours, {backend}, two-party", box),
            ]

    return make


def table(options: argparse.Namespace) -> None:
    """Measure everything that there is, and print a table."""
    most = max(options.concurrency)
    with contextlib.ExitStack() as stack:
        designs: list[Design] = []

        def add(name: str, make: Callable[[], Any], fault: str | None) -> None:
            if options.only and not any(word in name for word in options.only):
                return
            if fault is not None:
                left_out(name, fault)
                return
            for design in stack.enter_context(make()):
                output = design.run()  # a design that does not work here must not end the others
                if output == OUTPUT:
                    designs.append(design)
                else:
                    left_out(name, f"it said {output.strip()[-600:]!r}")

        no_docker, no_bwrap = daemon_fault(), bwrap_fault()
        add("ours, docker", ours("docker", most), no_docker)
        add("ours, bwrap", ours("bwrap", most), no_bwrap)
        designs.extend(stack.enter_context(bare()))
        add("docker exec", lambda: docker_exec(most), no_docker)
        add("docker run", lambda: docker_run(most), no_docker)
        image = ""
        for name, install in PEERS.items():
            python = getattr(options, name.replace("-", "_"))
            fault = no_docker or (None if python else f"{install}; then --{name} PYTHON")
            wanted = not options.only or any(word in name for word in options.only)
            if fault is None and wanted and not image:
                image = stack.enter_context(peer_image())
            add(name, lambda n=name, p=python, i=image: peer(n, p, i, most), fault)
        figures = measured(designs, options.concurrency, options.seconds, options.rounds)
    console.print(figures_table("Programs run, outputs checked", figures, BARE))


def proportional_mib(pids: list[int]) -> float:
    """Memory of these processes, shared pages divided among those that share them."""
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
            total += int(rollup.split("\nPss:")[1].split()[0])
    return total / 1024


def slot_processes() -> list[int]:
    """Process 1 of each of our slots: children of ours under bwrap, containers under Docker."""
    root = os.getpid()
    parents: dict[int, int] = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            fields = Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()
            parents[int(name)] = int(fields[1])
    found = []
    for pid in parents:
        above = pid
        while above in parents and above != root:
            above = parents[above]
        if above == root and pid != root:
            found.append(pid)
    if daemon_fault() is None:
        client = connect()
        label = f"assay.sandbox.pid={root}-"
        for container in client.containers(filters={"label": "assay.sandbox=1"}):
            if any(f"{k}={v}".startswith(label) for k, v in container["Labels"].items()):
                found.append(client.inspect_container(container["Id"])["State"]["Pid"])
        client.close()
    return found


def curve(options: argparse.Namespace) -> None:
    """Run many programs and print, for each tenth, what a program cost and our memory."""
    each = options.curve // 10
    rows: list[list[float]] = []
    with Sandbox(backend=options.backend, slots=max(options.concurrency)) as box:
        box.run_many([PROGRAM] * box.slots * 4)
        begun = time.perf_counter()
        for _ in track(range(10), console=Console(stderr=True), transient=True):
            started, cpu = time.perf_counter(), time.process_time()
            for done in range(0, each, 1_000):
                results = box.run_many([PROGRAM] * min(each - done, 1_000))
                bad = [r for r in results if r.stdout != OUTPUT]
                if bad:
                    sys.exit(f"a wrong output: {bad[0]!r:.500}")
            ended, cpu_ended = time.perf_counter(), time.process_time()
            rows.append(
                [
                    each * (len(rows) + 1),
                    ended - begun,
                    1e3 * (ended - started) / each,
                    1e3 * (cpu_ended - cpu) / each,
                    proportional_mib([os.getpid()]),
                    proportional_mib(slot_processes()),
                ]
            )
    show(
        f"{options.curve:,} programs, {options.backend}, one box",
        ["programs", "seconds", "ms each", "client CPU ms each", "client MiB", "slots MiB"],
        [[f"{row[0]:,.0f}", *(f"{value:.2f}" for value in row[1:])] for row in rows],
        words=0,
    )
    if options.plot:
        plot(rows, options.plot)


def plot(rows: list[list[float]], path: str) -> None:
    """Draw time and memory over the programs run."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    programs, seconds, _, _, client, slots = zip(*rows, strict=True)
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.5))
    left.plot(programs, seconds, marker="o")
    left.set(xlabel="programs", ylabel="seconds", title="time")
    right.plot(programs, client, marker="o", label="client")
    right.plot(programs, slots, marker="o", label="slots")
    right.set(xlabel="programs", ylabel="MiB", title="memory", ylim=(0, None))
    right.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=120)


def main() -> None:
    """Measure what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=float, default=2.0, help="of a design's turn")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--concurrency", type=int, nargs="+", default=[1, 2, 8])
    parser.add_argument("--only", nargs="+", help="parts of names; bare Python is always measured")
    parser.add_argument("--llm-sandbox", metavar="PYTHON")
    parser.add_argument("--epicbox", metavar="PYTHON")
    parser.add_argument("--curve", type=int, metavar="N", help="run so many programs in one box")
    parser.add_argument("--backend", default="docker", choices=["docker", "bwrap"], help="of that")
    parser.add_argument("--plot", metavar="PNG", help="draw that")
    options = parser.parse_args()
    console.print(
        f"Python {platform.python_version()}, {os.cpu_count()} cores, Linux {platform.release()}, "
        f"load before: {os.getloadavg()[0]:.1f}",
        markup=False,
    )
    if options.curve:
        curve(options)
    else:
        table(options)


if __name__ == "__main__":
    main()
