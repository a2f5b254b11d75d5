"""Episodes a second: our environments and those of peers, in turn, in one run; and what size costs.

    python benchmarks/envs.py [--seconds 0.5] [--rounds 7] [--sizes 1000 100000 1000000]

Peers are measured where an interpreter has them, each in a virtual environment of its own:
``--skyrl-gym PYTHON`` and so on (``PIP`` below says what to install). One that is not given is left
out, with a line that says so. Every reply is judged, and each judgement is checked.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium
from rich.console import Console
from rich.table import Table

from assay.envs import (
    Completion,
    Generated,
    GroupVectorEnv,
    Rows,
    Task,
    TextEnv,
    make,
    play,
)
from assay.verifiers import Exact, Math, Verifier

console = Console()
WORKER = Path(__file__).with_name("envs_peer.py")
PIP = {
    "skyrl-gym": "skyrl-gym",
    "reasoning-gym": "reasoning-gym",
    "gem": "gem-llm datasets pylatexenc sympy requests",
    "verifiers": "verifiers",
    "openenv": "openenv",
    "textarena": "textarena",
}
TURN = 64
"""Episodes of ours between two looks at the clock."""

Run = Callable[[float], tuple[int, float]]
"""Plays for some seconds: episodes, and the seconds it took."""


@dataclass
class Contender:
    """Something that plays episodes, and how fast it did in each round."""

    name: str
    run: Run
    rates: list[float] = field(default_factory=list)

    @property
    def rate(self) -> float:
        """Episodes a second, the median of the rounds."""
        return statistics.median(self.rates)


@dataclass(frozen=True)
class Kind:
    """One comparison: the same work for a peer and for us.

    Attributes:
        peers: names for the worker, the virtual environment's first.
        work: what both do.
        mark: where the reply has its answer: ``hash``, ``boxed`` or ``bare``.
        rubric: ours, the nearest to the peer's; ``None`` where :attr:`env` names an environment.
        env: an id of ours whose tasks are made when they are asked for.
    """

    peers: tuple[str, ...]
    work: str
    mark: str = "bare"
    rubric: Callable[[], Verifier] | None = None
    env: str = ""


KINDS = [
    Kind(("skyrl-gym", "skyrl-gym-bare"), "#### n, text", "hash", lambda: Exact(extract=["hash"])),
    Kind(("openenv",), "bare n, text", "bare", Exact),
    Kind(("verifiers",), "boxed n, text", "boxed", lambda: Exact(extract=["boxed"])),
    Kind(("verifiers-math", "gem", "gem-signal"), "boxed n, as mathematics", "boxed", Math),
    Kind(("reasoning-gym",), "a sum made anew, bare n", env="assay/Arithmetic-v0"),
    Kind(("textarena",), "a game: 1 of 31, by halving", env="assay/GuessNumber-v0"),
]


def work(count: int) -> list[dict[str, Any]]:
    """Sums with a reply by each mark, half of the replies right."""
    rows = []
    for i in range(count):
        a, b, right = i % 89 + 3, i % 97 + 5, i % 2 == 0
        given = a + b + (not right)
        told = f"I add them up: {a} and {b}.\n"
        rows.append(
            {
                "question": f"{a}+{b}=",
                "answer": str(a + b),
                "right": right,
                "boxed": f"{told}The sum is $\\boxed{{{given}}}$.",
                "hash": f"{told}#### {given}",
                "bare": str(given),
            }
        )
    return rows


# -- peers -------------------------------------------------------------------------------------


@contextlib.contextmanager
def peer(name: str, python: str, rows: Path) -> Iterator[Contender]:
    """A worker with another library in it."""
    with tempfile.TemporaryFile() as log:
        worker = subprocess.Popen(
            [python, "-P", str(WORKER), name, str(rows)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
        assert worker.stdin is not None
        assert worker.stdout is not None
        to, back = worker.stdin, worker.stdout

        def run(seconds: float) -> tuple[int, float]:
            to.write(f"{seconds}\n")
            to.flush()
            line = back.readline()
            if not line:
                size = os.fstat(log.fileno()).st_size
                tail = os.pread(log.fileno(), 2000, max(0, size - 2000))
                raise RuntimeError(f"{name} ended: {tail.decode('utf-8', 'replace')}")
            answer = json.loads(line)
            if answer.get("error") or answer["unlike"]:
                raise RuntimeError(f"{name}: {answer}")
            return answer["episodes"], answer["seconds"]

        try:
            yield Contender(name, run)
        finally:
            to.close()
            try:
                worker.wait(30)
            except subprocess.TimeoutExpired:
                worker.kill()
                worker.wait()


# -- ours --------------------------------------------------------------------------------------


def timed(one: Callable[[int], int]) -> Run:
    """Call ``one`` with 0, 1, ... for some seconds; each call says how many episodes it played."""

    def run(seconds: float) -> tuple[int, float]:
        episodes = calls = 0
        started = time.perf_counter()
        while True:
            least = episodes + TURN
            while episodes < least:
                episodes += one(calls)
                calls += 1
            spent = time.perf_counter() - started
            if spent >= seconds:
                return episodes, spent

    return run


def check(rewards: Sequence[Any], rows: Sequence[dict[str, Any]]) -> None:
    """Every reward is what it should be."""
    for reward, row in zip(rewards, rows, strict=True):
        assert (reward == 1.0) == row["right"], (reward, row)


def sums(kind: Kind, rows: list[dict[str, Any]]) -> list[Contender]:
    """Ours, five ways to play the same sums."""
    assert kind.rubric is not None
    tasks = Rows([Task(r["question"], r["answer"], id=str(i)) for i, r in enumerate(rows)])
    name = f"bench/Sums{KINDS.index(kind)}-v0"
    env = TextEnv(tasks, kind.rubric())
    gymnasium.register(name, lambda **options: TextEnv(tasks, env.rubric, **options))
    wrapped = gymnasium.make(name)

    def scalar(env: Any, k: int) -> int:
        row = rows[k % len(rows)]
        env.reset(options={"task": k % len(rows)})
        check([env.step(row[kind.mark])[1]], [row])
        return 1

    def vector(size: int) -> Run:
        envs = GroupVectorEnv(env, num_envs=64, group_size=size)
        return timed(partial(_vector_step, envs, rows, kind.mark))

    def groups(size: int) -> Run:
        return timed(partial(_played, env, rows, kind.mark, size))

    return [
        Contender("scalar", timed(partial(scalar, env))),
        Contender("gymnasium.make", timed(partial(scalar, wrapped))),
        Contender("vector, 8 x 8", vector(8)),
        Contender("vector, 1 x 64", vector(64)),
        Contender("rollout, 8 x 8", groups(8)),
    ]


def _vector_step(envs: GroupVectorEnv, rows: list[dict[str, Any]], mark: str, k: int) -> int:
    """Other replies in each place of a group: those of rows with the same answer are all right."""
    prompts = envs.num_envs // envs.group_size
    picked = [(k * prompts + p) % len(rows) for p in range(prompts)]
    asked = [rows[i] for i in picked for _ in range(envs.group_size)]
    envs.reset(options={"tasks": picked})
    check(envs.step([row[mark] for row in asked])[1], asked)
    return len(asked)


def _played(env: TextEnv, rows: list[dict[str, Any]], mark: str, size: int, k: int) -> int:
    picked = [(k * 64 // size + p) % len(rows) for p in range(64 // size)]
    asked = [rows[i] for i in picked for _ in range(size)]
    groups = play(
        env,
        lambda conversations: [Completion(row[mark]) for row in asked],
        [env.task(i) for i in picked],
        size,
    )
    check([reward for group in groups for reward in group.rewards], asked)
    return len(asked)


def made(kind: Kind) -> list[Contender]:
    """Ours where a task is made for each episode, or each group: sums, or games of some turns."""
    games = "Guess" in kind.env
    options: dict[str, Any] = {"level": 2} if games else {}
    env, wrapped = make(kind.env, **options), gymnasium.make(kind.env, **options)

    def scalar(env: Any, inner: Any, k: int) -> int:
        _, info = env.reset(options={"task": k})
        if not games:
            answer = int(inner._state.task.reference)
            reward = env.step(str(answer + k % 2))[1]
            assert (reward == 1.0) == (k % 2 == 0)
            return 1
        low, high, over = info["metadata"]["low"], info["metadata"]["high"], False
        while not over:
            guess = (low + high) // 2
            said, reward, done, cut, _ = env.step(str(guess))
            over = done or cut
            low, high = (guess + 1, high) if "higher" in said else (low, guess - 1)
        assert reward == 1.0
        return 1

    return [
        Contender("scalar", timed(partial(scalar, env, env))),
        Contender("gymnasium.make", timed(partial(scalar, wrapped, wrapped.unwrapped))),
    ]


# -- tables ------------------------------------------------------------------------------------


def speeds(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Measure every kind, its contenders in turn, and print a table."""
    rows = work(2_000)
    records: list[dict[str, Any]] = []
    table = Table(title="Episodes a second, one core", caption="last column: best of ours / peer")
    for heading in ("work", "who", "episodes/s", "us each", "ours / it"):
        table.add_column(heading, justify="left" if heading in ("work", "who") else "right")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "work.json")
        path.write_text(json.dumps(rows))
        for kind in KINDS:
            with contextlib.ExitStack() as stack:
                mine = sums(kind, rows) if kind.rubric else made(kind)
                theirs = _workers(kind, options, path, stack)
                everyone = [*mine, *theirs]
                for _ in range(options.rounds):
                    for contender in everyone:
                        episodes, spent = contender.run(options.seconds)
                        contender.rates.append(episodes / spent)
                    everyone.reverse()
            best = max(c.rate for c in mine)
            for contender in [*mine, *theirs]:
                ratio = f"{best / contender.rate:.2f}" if contender in theirs else ""
                name = contender.name if contender in theirs else f"ours, {contender.name}"
                cells = f"{contender.rate:,.0f}", f"{1e6 / contender.rate:,.1f}", ratio
                table.add_row(kind.work if contender is mine[0] else "", name, *cells)
                records.append({"work": kind.work, "who": name, "rates": contender.rates})
            table.add_section()
    console.print(table)
    return records


def _workers(
    kind: Kind, options: argparse.Namespace, path: Path, stack: contextlib.ExitStack
) -> list[Contender]:
    found = []
    for name in kind.peers:
        library = next(known for known in PIP if name.startswith(known))
        python = getattr(options, library.replace("-", "_"))
        fault = f"pip install {PIP[library]}; then --{library} PYTHON"
        if python:
            contender = stack.enter_context(peer(name, python, path))
            try:
                contender.run(0.1)
                found.append(contender)
                continue
            except (RuntimeError, OSError) as error:
                fault = str(error)
        console.print(f"left out: {name}: {fault}", markup=False, soft_wrap=True)
    return found


def sizes(options: argparse.Namespace) -> list[dict[str, Any]]:
    """What an episode costs by number of tasks, and by size of group; and print a table."""
    contenders: list[tuple[str, Contender]] = []
    for size in options.sizes:
        rows = Rows([Task(f"{i}+1=", str(i + 1), id=str(i)) for i in range(size)])
        env = TextEnv(rows, Exact())
        contenders.append((f"{size:,} rows", Contender("1", timed(partial(_far, env, size)))))
        endless = Generated(_sum, name="sums")
        env = TextEnv(endless, Exact())
        contenders.append((f"{size:,} made", Contender("1", timed(partial(_far, env, size)))))
    for group in (1, 8, 64):
        env = TextEnv(Rows([Task(f"{i}+1=", str(i + 1)) for i in range(1_000)]), Exact())
        told = [{"bare": str(i + 1), "right": True} for i in range(1_000)]
        envs = GroupVectorEnv(env, num_envs=64, group_size=group)
        vector = timed(partial(_vector_step, envs, told, "bare"))
        contenders.append(("1,000 rows, vector", Contender(str(group), vector)))
        rolled = timed(partial(_played, env, told, "bare", group))
        contenders.append(("1,000 rows, rollout", Contender(str(group), rolled)))
    for _ in range(options.rounds):
        for _name, contender in contenders:
            episodes, spent = contender.run(options.seconds)
            contender.rates.append(episodes / spent)
        contenders.reverse()
    if options.rounds % 2:
        contenders.reverse()
    table = Table("tasks", "group", "us an episode", title="What an episode costs")
    for name, contender in sorted(contenders, key=lambda pair: pair[0].split()[1:]):
        table.add_row(name, contender.name, f"{1e6 / contender.rate:.1f}")
    console.print(table)
    return [{"tasks": n, "group": c.name, "rates": c.rates} for n, c in contenders]


def _sum(rng: Any) -> Task:
    a = int(rng.integers(10**9))
    return Task(f"{a}+1=", str(a + 1))


def _far(env: TextEnv, size: int, k: int) -> int:
    """An episode of a task far from the one before."""
    question, _ = env.reset(options={"task": k * 7_919 % size})
    assert env.step(str(int(question.partition("+")[0]) + 1))[1] == 1.0
    return 1


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--seconds", type=float, default=0.5, help="of a contender's turn")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 100_000, 1_000_000])
    for name in PIP:
        parser.add_argument(f"--{name}", metavar="PYTHON")
    parser.add_argument("--json", metavar="FILE")
    return parser.parse_args()


def main() -> None:
    """Print two tables."""
    options = arguments()
    load = os.getloadavg()[0]
    console.print(
        f"Python {platform.python_version()}, {os.cpu_count()} cores, load before: {load:.1f}",
        markup=False,
    )
    record = {"load": load, "speeds": speeds(options), "sizes": sizes(options)}
    if options.json:
        Path(options.json).write_text(json.dumps(record, indent=1))


if __name__ == "__main__":
    main()
