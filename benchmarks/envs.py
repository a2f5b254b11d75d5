"""CPU time of an episode: our environments and those of peers, in turn; and what size costs.

    python benchmarks/envs.py [--seconds 0.5] [--rounds 7] [--best] [--sizes 1000 100000 1000000]

Peers are measured where an interpreter has them, each in a virtual environment of its own:
``--skyrl-gym PYTHON`` and so on (``PIP`` below says what to install). One that is not given is left
out, with a line that says so. Every reply is judged, and each judgement is checked. Ours are played
one at a time ("scalar") and in a vector of 8 groups of 8.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from measuring import console, in_turn, json_worker, left_out, show

from assay.envs import Generated, GroupVectorEnv, Rows, Task, TextEnv, make
from assay.verifiers import Exact, Math, Verifier

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
"""Episodes between two looks at the clock; and copies in a vector environment."""

Row = dict[str, Any]
Run = Callable[[float], float]
"""Plays for some seconds of the processor, and returns the seconds of an episode."""


@dataclass
class Work:
    """The same episodes for us and for peers."""

    name: str
    ours: dict[str, Run]
    peers: tuple[str, ...]


def works(rows: list[Row]) -> list[Work]:
    """What is compared, each with the verifier that does the work of the peers' own."""
    return [
        Work(
            "a row, `#### n`",
            played_rows(rows, "hash", Exact(extract=["hash"])),
            ("skyrl-gym", "skyrl-gym, class without make"),
        ),
        Work("a row, bare n", played_rows(rows, "bare", Exact()), ("openenv", "textarena")),
        Work(
            "a row, boxed n",
            played_rows(rows, "boxed", Exact(extract=["boxed"])),
            ("verifiers",),
        ),
        Work(
            "a row, boxed n, by Math",
            played_rows(rows, "boxed", Math()),
            ("verifiers, math", "gem", "gem, signal"),
        ),
        Work("a sum made anew", made_anew(), ("reasoning-gym", "reasoning-gym, 8 replies")),
    ]


def some_rows(count: int) -> list[Row]:
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


def timed(play: Callable[[int], int]) -> Run:
    """Call ``play`` with 0, 1, ... for some seconds; each call returns how many episodes it played.

    Others' load does not lengthen seconds of the processor as it does those of the clock.
    """
    calls = 0

    def run(seconds: float) -> float:
        nonlocal calls
        episodes, spent, started = 0, 0.0, time.process_time()
        while spent < seconds or not episodes:
            least = episodes + TURN
            while episodes < least:
                episodes += play(calls)
                calls += 1
            spent = time.process_time() - started
        return spent / episodes

    return run


def played_rows(rows: list[Row], mark: str, verifier: Verifier) -> dict[str, Run]:
    """Sums out of a table, and the replies that were made beforehand."""
    tasks = Rows([Task(r["question"], r["answer"], id=str(i)) for i, r in enumerate(rows)])
    env = TextEnv(tasks, verifier)
    envs = GroupVectorEnv(env, num_envs=TURN, group_size=8)

    def one(k: int) -> int:
        row = rows[k % len(rows)]
        env.reset(options={"task": k % len(rows)})
        assert (env.step(row[mark])[1] == 1.0) == row["right"]
        return 1

    def vector(k: int) -> int:
        picked = [(8 * k + p) % len(rows) for p in range(8)]
        asked = [rows[i] for i in picked for _ in range(8)]
        envs.reset(options={"tasks": picked})
        rewards = envs.step([row[mark] for row in asked])[1].tolist()
        assert [reward == 1.0 for reward in rewards] == [row["right"] for row in asked]
        return TURN

    return {"scalar": timed(one), "8 x 8": timed(vector)}


def made_anew() -> dict[str, Run]:
    """Sums that are made for each episode or group: every other reply is the known sum."""
    env = TextEnv(make("assay/Arithmetic-v1").source, Exact())
    envs = GroupVectorEnv(env, num_envs=TURN, group_size=8)

    def reply(state: Any, k: int) -> str:
        known: str = state.task.reference
        return str(int(known) + 1) if k % 2 else known

    def one(k: int) -> int:
        env.reset(options={"task": k})
        assert (env.step(reply(env._state, k))[1] == 1.0) == (k % 2 == 0)
        return 1

    def vector(k: int) -> int:
        envs.reset(options={"tasks": list(range(8 * k, 8 * k + 8))})
        states = [state for group in envs._states for state in group]
        rewards = envs.step([reply(state, i) for i, state in enumerate(states)])[1]
        assert rewards.tolist() == [1.0, 0.0] * (TURN // 2)
        return TURN

    return {"scalar": timed(one), "8 x 8": timed(vector)}


def by_size(size: int) -> dict[str, dict[str, Run]]:
    """Tasks far apart, of so many: rows and made anew; alone and in groups of 1, 8 and 64."""

    def made(rng: Any) -> Task:
        a = int(rng.integers(10**9))
        return Task(f"{a}+1=", str(a + 1))

    rows = Rows([Task(f"{i}+1=", str(i + 1), id=str(i)) for i in range(size)])
    found = {}
    for kind, source in (("rows", rows), ("made anew", Generated(made, name="sums"))):
        env = TextEnv(source, Exact())
        vectors = {
            f"groups of {group}": timed(partial(_far_groups, env, size, group, _vector(env, group)))
            for group in (1, 8, 64)
        }
        found[kind] = {"scalar": timed(partial(_far, env, size)), **vectors}
    return found


def _vector(env: TextEnv, group: int) -> GroupVectorEnv:
    return GroupVectorEnv(env, num_envs=TURN, group_size=group)


def _after(question: str) -> str:
    return str(int(question.partition("+")[0]) + 1)


def _far(env: TextEnv, size: int, k: int) -> int:
    question, _ = env.reset(options={"task": k * 7_919 % size})
    assert env.step(_after(question))[1] == 1.0
    return 1


def _far_groups(env: TextEnv, size: int, group: int, envs: GroupVectorEnv, k: int) -> int:
    groups = TURN // group
    picked = [(k * groups + p) * 7_919 % size for p in range(groups)]
    questions, _ = envs.reset(options={"tasks": picked})
    assert envs.step([_after(q) for q in questions])[1].min() == 1.0
    return TURN


def compare(options: argparse.Namespace, microseconds: Callable[[dict[str, Run]], Any]) -> None:
    """Measure each work, its contenders in turn, and print a table."""
    rows = some_rows(2_000)
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "work.json")
        path.write_text(json.dumps(rows))
        for work in works(rows):
            with ExitStack() as stack:
                us = microseconds(work.ours | started(work.peers, options, path, stack))
            for name, value in us.items():
                ours = name in work.ours
                ratios = ["" if ours else f"{value / us[mine]:.2f}" for mine in work.ours]
                who = f"ours, {name}" if ours else name
                lines.append([work.name, who, f"{value:,.1f}", *ratios])
    headings = ["work", "who", "CPU us an episode", "to ours, scalar", "to ours, 8 x 8"]
    show("What an episode costs", headings, lines, words=2)


def started(
    peers: tuple[str, ...], options: argparse.Namespace, path: Path, stack: ExitStack
) -> dict[str, Run]:
    """Start the workers of those peers for which there is an interpreter."""
    found: dict[str, Run] = {}
    for name in peers:
        library = name.partition(",")[0]
        python = getattr(options, library.replace("-", "_"))
        if not python:
            left_out(name, f"pip install {PIP[library]}; then --{library} PYTHON")
            continue
        ask = stack.enter_context(json_worker([python, "-P", str(WORKER), name, str(path)]))

        def run(seconds: float, ask: Callable[[str], dict[str, Any]] = ask) -> float:
            answer = ask(str(seconds))
            if answer.get("error") or answer["unlike"]:
                raise RuntimeError(str(answer))
            return float(answer["seconds"]) / int(answer["episodes"])

        try:
            run(0.1)
            found[name] = run
        except (RuntimeError, OSError) as error:
            left_out(name, str(error))
    return found


def main() -> None:
    """Print two tables."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=float, default=0.5, help="of a contender's turn")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--best", action="store_true", help="of the rounds, not their median")
    parser.add_argument("--sizes", type=int, nargs="*", default=[1_000, 100_000, 1_000_000])
    for name in PIP:
        parser.add_argument(f"--{name}", metavar="PYTHON")
    options = parser.parse_args()
    console.print(
        f"Python {platform.python_version()}, {os.cpu_count()} cores, "
        f"load before: {os.getloadavg()[0]:.1f}",
        markup=False,
    )
    summary = min if options.best else statistics.median

    def microseconds(runs: dict[str, Run]) -> dict[str, float]:
        turns = {name: partial(run, options.seconds) for name, run in runs.items()}
        return {name: 1e6 * summary(each) for name, each in in_turn(turns, options.rounds).items()}

    compare(options, microseconds)
    lines = []
    for size in options.sizes:
        for kind, ways in by_size(size).items():
            us = microseconds(ways)
            lines.append([f"{size:,} {kind}", *(f"{value:.1f}" for value in us.values())])
    if lines:
        show("CPU us of an episode by number of tasks", ["tasks", *ways], lines)


if __name__ == "__main__":
    main()
