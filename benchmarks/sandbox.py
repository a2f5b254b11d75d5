"""Programs a second: our sandboxes, bare Python, Docker as such, and peers, in turn, in one run.

    python benchmarks/sandbox.py [--seconds 2] [--rounds 5] [--concurrency 1 2 8] [--only NAME ...]
    python benchmarks/sandbox.py --curve 100000 --plot curve.png
    python benchmarks/sandbox.py --start 32

Peers are measured where an interpreter has them, each in a virtual environment of its own:
``--llm-sandbox PYTHON`` (``pip install llm-sandbox docker``) and ``--epicbox PYTHON``
(``pip install epicbox 'urllib3<2'``). What is missing is left out, with a line that says so.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import queue
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from assay.figures import figures_table, measured
from assay.sandbox import Sandbox
from assay.sandbox.backends.bwrap import bwrap_fault
from assay.sandbox.backends.docker import DEFAULT_IMAGE, connect, daemon_fault
from assay.sandbox.diagnostics.bench import BARE, OUTPUT, PROGRAM, Design, bare, single, two_party

console = Console()
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
    environment = {**os.environ, "PROGRAM": PROGRAM}
    command = [python, str(WORKER), name, image]
    log = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the workers
    workers = [
        subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env=environment,
        )
        for _ in range(most)
    ]
    free: queue.SimpleQueue[subprocess.Popen[str]] = queue.SimpleQueue()
    for worker in workers:
        free.put(worker)

    def run() -> str:
        worker = free.get()
        try:
            assert worker.stdin is not None
            assert worker.stdout is not None
            worker.stdin.write("run\n")
            worker.stdin.flush()
            line = worker.stdout.readline()
            answer = json.loads(line) if line else {"error": _tail(log.fileno())}
            return str(answer.get("output", answer.get("error")))
        finally:
            free.put(worker)

    try:
        yield [Design(name, run, most)]
    finally:
        for worker in workers:
            assert worker.stdin is not None
            worker.stdin.close()
        for worker in workers:
            try:
                worker.wait(60)
            except subprocess.TimeoutExpired:
                worker.kill()
                worker.wait()
        log.close()


def _tail(file: int) -> str:
    size = os.fstat(file).st_size
    return os.pread(file, 2000, max(0, size - 2000)).decode("utf-8", "replace")


@contextlib.contextmanager
def peer_image() -> Iterator[str]:
    """Our image with a shell and a few tools in it, which peers need and we leave out."""
    tag = f"assay-bench:{os.getpid()}"
    with tempfile.TemporaryDirectory() as folder:
        tools = [path for tool in SHELL_TOOLS.split() if (path := shutil.which(tool))]
        listed = subprocess.run(["ldd", *tools], capture_output=True, text=True, check=False)
        libraries = {w for w in listed.stdout.split() if w.startswith("/") and os.path.isfile(w)}
        for path in libraries:
            target = Path(folder, "root" + path)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)
        for path in tools:
            target = Path(folder, "root/bin", os.path.basename(path))
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)
        interpreter = "/usr/bin/python3"
        Path(folder, "root/bin/python").symlink_to(interpreter)
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


def table(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Measure everything that there is, and print a table."""
    most = max(options.concurrency)
    with contextlib.ExitStack() as stack:
        designs: list[Design] = []

        def add(name: str, make: Callable[[], Any], fault: str | None) -> None:
            if options.only and not any(word in name for word in options.only):
                return
            if fault is not None:
                console.print(f"left out: {name}: {fault}", markup=False, soft_wrap=True)
                return
            for design in stack.enter_context(make()):
                output = design.run()  # a design that does not work here must not end the others
                if output == OUTPUT:
                    designs.append(design)
                else:
                    fault = f"it said {output.strip()[-600:]!r}"
                    console.print(f"left out: {name}: {fault}", markup=False, soft_wrap=True)

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
    return [figure.to_json() for figure in figures]


def resident_mib(pids: list[int]) -> float:
    """Memory of these processes, shared pages divided among those that share them."""
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
            total += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return total / 1024


def agents(root: int) -> list[int]:
    """Process 1 of each of our slots: children of ours under bwrap, containers under Docker."""
    found = []
    parents: dict[int, int] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError):
                fields = Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()
                parents[int(name)] = int(fields[1])
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


def curve(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Run many programs and print, for each tenth, what a program cost and our memory."""
    steps, count = 10, options.curve
    rows: list[dict[str, Any]] = []
    printed = Table(title=f"{count:,} programs, {options.backend}, one box")
    for heading in (
        "programs",
        "seconds",
        "ms each",
        "client CPU ms each",
        "client MiB",
        "slots MiB",
    ):
        printed.add_column(heading, justify="right")
    with Sandbox(backend=options.backend, slots=max(options.concurrency)) as box:
        box.run_many([PROGRAM] * box.slots * 4)
        begun = time.perf_counter()
        for step in range(steps):
            started, cpu = time.perf_counter(), time.process_time()
            left = count // steps
            while left:
                some = min(left, 1_000)
                results = box.run_many([PROGRAM] * some)
                bad = [r for r in results if r.stdout != OUTPUT]
                if bad:
                    sys.exit(f"a wrong output: {bad[0]!r:.500}")
                left -= some
            took = time.perf_counter() - started
            each = count // steps
            rows.append(
                {
                    "programs": (step + 1) * each,
                    "seconds": time.perf_counter() - begun,
                    "ms_each": 1e3 * took / each,
                    "client_cpu_ms_each": 1e3 * (time.process_time() - cpu) / each,
                    "client_mib": resident_mib([os.getpid()]),
                    "slots_mib": resident_mib(agents(os.getpid())),
                }
            )
            console.print(f"{rows[-1]}", markup=False, soft_wrap=True)
    for row in rows:
        printed.add_row(f"{row['programs']:,}", *(f"{v:.2f}" for v in list(row.values())[1:]))
    console.print(printed)
    if options.plot:
        plot(rows, options.plot)
    return rows


def plot(rows: list[dict[str, Any]], path: str) -> None:
    """Draw time and memory over the programs run."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    programs = [row["programs"] for row in rows]
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.5))
    left.plot(programs, [row["seconds"] for row in rows], marker="o")
    left.set(xlabel="programs", ylabel="seconds", title="time")
    for key, label in (("client_mib", "client"), ("slots_mib", "slots")):
        right.plot(programs, [row[key] for row in rows], marker="o", label=label)
    right.set(xlabel="programs", ylabel="MiB", title="memory", ylim=(0, None))
    right.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    console.print(f"drawn: {path}")


def start(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Time from nothing to this many slots, each lent to somebody."""
    count = options.start
    with Sandbox(backend=options.backend, slots=count) as box:
        pool = box._slots()
        everybody = threading.Barrier(count + 1)

        def take() -> None:
            with pool.lend():
                everybody.wait()

        begun = time.perf_counter()
        threads = [threading.Thread(target=take) for _ in range(count)]
        for thread in threads:
            thread.start()
        everybody.wait(300)
        took = time.perf_counter() - begun
        for thread in threads:
            thread.join()
    console.print(f"{count} slots of {options.backend} started in {took:.2f} s")
    return [{"slots": count, "backend": options.backend, "seconds": took}]


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--seconds", type=float, default=2.0, help="of a design's turn")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--concurrency", type=int, nargs="+", default=[1, 2, 8])
    parser.add_argument("--only", nargs="+", help="parts of names; bare Python is always measured")
    parser.add_argument("--backend", default="docker", choices=["docker", "bwrap"])
    parser.add_argument("--llm-sandbox", metavar="PYTHON")
    parser.add_argument("--epicbox", metavar="PYTHON")
    parser.add_argument("--curve", type=int, metavar="N")
    parser.add_argument("--plot", metavar="PNG")
    parser.add_argument("--start", type=int, metavar="N")
    parser.add_argument("--json", metavar="FILE")
    return parser.parse_args()


def main() -> None:
    """Measure what was asked for."""
    options = arguments()
    load = os.getloadavg()[0]
    console.print(
        f"Python {platform.python_version()}, {os.cpu_count()} cores, Linux {platform.release()}, "
        f"load before: {load:.1f}",
        markup=False,
    )
    kind = "curve" if options.curve else "start" if options.start else "table"
    rows = {"curve": curve, "start": start, "table": table}[kind](options)
    if options.json:
        record = {"kind": kind, "load": load, "python": platform.python_version(), "rows": rows}
        Path(options.json).write_text(json.dumps(record, indent=1))


if __name__ == "__main__":
    main()
