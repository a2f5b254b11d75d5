"""Episodes a second: our environments and those of peers, in turn, in one run; and what size costs.

    python benchmarks/envs.py [--seconds 0.5] [--rounds 7] [--best] [--sizes 1000 100000 1000000]

Peers are measured where an interpreter has them, each in a virtual environment of its own:
``--skyrl-gym PYTHON`` and so on (``PIP`` below says what to install). One that is not given is left
out, with a line that says so. Every reply is judged, and each judgement is checked. ``--markdown``
prints tables for a page.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from envs_ours import Contender, Row, by_size, games, judged_only, made, puzzle, strict, sums
from envs_peer import PUZZLES
from rich.console import Console
from rich.table import Table

from assay.verifiers import Exact, Math

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


@dataclass(frozen=True)
class Peer:
    """A worker's name, what judges in it, and which of ours do the same work."""

    name: str
    judged: str
    scalar: str = "scalar"
    vector: str = "vector, 8 x 8"


@dataclass
class Kind:
    """One comparison: the same work for peers and for us.

    The first of ours by each name judges as the peers do; those after it, as we would.
    """

    work: str
    ours: list[Contender]
    peers: list[Peer]
    theirs: list[Contender] = field(default_factory=list)


def kinds(rows: list[Row]) -> list[Kind]:
    """What is compared."""
    hashed = sums(rows, "hash", Exact(extract=["hash"]), "text after ####")
    bare = sums(rows, "bare", Exact(), "text =")
    boxed = sums(rows, "boxed", Exact(extract=["boxed"]), "text in the box")
    return [
        Kind(
            "a row, `#### n`",
            [*hashed, *strict(rows, "hash")],
            [
                Peer("skyrl-gym", "one regex, text ="),
                Peer("skyrl-gym, class without make", "one regex, text ="),
            ],
        ),
        Kind(
            "a row, bare n",
            [*bare, *strict(rows, "bare")],
            [Peer("openenv", "text ="), Peer("textarena, ten lines", "text =")],
        ),
        Kind(
            "a row, boxed n",
            [*boxed, *strict(rows, "boxed")],
            [Peer("verifiers", "text in the box")],
        ),
        Kind(
            "a row, boxed n",
            sums(rows, "boxed", Math(), "Math, our default"),
            [
                Peer("verifiers, math", "Math-Verify"),
                Peer("gem", "math_grader, its process"),
                Peer("gem, signal", "math_grader, an alarm"),
            ],
        ),
        Kind(
            "a sum made anew, no episode",
            judged_only(),
            [
                Peer("reasoning-gym", "text =", "verify", ""),
                Peer("reasoning-gym, 8 replies", "text =", "verify_many, 8 replies", ""),
            ],
        ),
        Kind(
            "a sum made anew",
            made(),
            [Peer("reasoning-gym", "text =, no episode", vector="vector, 64 x 1")],
        ),
        Kind(
            "four terms made anew",
            made(terms=4, operators="+-*"),
            [Peer("reasoning-gym, four terms", "text =, no episode", vector="vector, 64 x 1")],
        ),
        Kind(
            "a game, 1 of 31",
            games(),
            [
                Peer("textarena", "the game", vector="vector, 64 x 1"),
                Peer("textarena, without words", "the game", vector="vector, 64 x 1"),
            ],
        ),
    ]


def work(count: int) -> list[Row]:
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
def peer(one: Peer, python: str, rows: Path) -> Iterator[Contender]:
    """A worker with another library in it."""
    with tempfile.TemporaryFile() as log:
        worker = subprocess.Popen(
            [python, "-P", str(WORKER), one.name, str(rows)],
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
                raise RuntimeError(f"{one.name} ended: {tail.decode('utf-8', 'replace')}")
            answer = json.loads(line)
            if answer.get("error") or answer["unlike"]:
                raise RuntimeError(f"{one.name}: {answer}")
            return answer["episodes"], answer["seconds"]

        try:
            yield Contender(one.name, one.judged, run)
        finally:
            to.close()
            try:
                worker.wait(30)
            except subprocess.TimeoutExpired:
                worker.kill()
                worker.wait()


# -- tables ------------------------------------------------------------------------------------


def show(title: str, headings: list[str], lines: list[list[str]], *, markdown: bool) -> None:
    """Print a table; columns after the words are numbers."""
    worded = ("work", "who", "judged by", "tasks", "ours", "reasoning-gym")
    words = sum(heading in worded for heading in headings)
    if markdown:
        marks = ["---"] * words + ["--:"] * (len(headings) - words)
        cells = [headings, marks, *lines]
        print("\n".join(f"| {' | '.join(line)} |" for line in cells), end="\n\n")
        return
    table = Table(title=title)
    for at, heading in enumerate(headings):
        table.add_column(heading, justify="left" if at < words else "right")
    for line in lines:
        table.add_row(*line)
    console.print(table)


def speeds(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Measure every kind, its contenders in turn, and print a table."""
    rows = work(2_000)
    lines: list[list[str]] = []
    records: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "work.json")
        path.write_text(json.dumps(rows))
        for kind in kinds(rows):
            with contextlib.ExitStack() as stack:
                kind.theirs = _workers(kind, options, path, stack)
                rounds([*kind.ours, *kind.theirs], options)
            lines += _lines(kind, options)
            for one in [*kind.ours, *kind.theirs]:
                mine = one in kind.ours
                who = {"who": one.name, "ours": mine, "judged": one.judged, "rates": one.rates}
                records.append({"work": kind.work, **who})
    headings = ["work", "who", "judged by", "episodes/s", "us each", "scalar / it", "vector / it"]
    show("Episodes a second, one core", headings, lines, markdown=options.markdown)
    return records


def puzzles(options: argparse.Namespace) -> list[dict[str, Any]]:
    """What a puzzle costs to make, with a right reply judged; and print a table."""
    ours = {
        "countdown": puzzle("Countdown", numbers=4, largest=100),
        "puzzle24": puzzle("TwentyFour", level=2),
        "sudoku": puzzle("Sudoku", level=4),
        "mini_sudoku": puzzle("Sudoku", level=2),
        "zebra_puzzles": puzzle("Zebra", level=4),
        "knights_knaves": puzzle("KnightsAndKnaves", level=2),
        "n_queens": puzzle("Queens", level=2),
        "tower_of_hanoi": puzzle("Hanoi", level=1),
        "jugs": puzzle("WaterJugs", level=3),
        "number_sorting": puzzle("Sorting", level=1),
        "graph_color": puzzle("Colouring", level=3),
        "simple_integration": puzzle("Integral", level=1),
    }
    lines, records = [], []
    spent = argparse.Namespace(rounds=min(options.rounds, 11), seconds=max(options.seconds, 0.2))
    for name, mine in ours.items():
        kind = Kind(name, [mine], [Peer(f"reasoning-gym, {name}", "")])
        with contextlib.ExitStack() as stack:
            rows = Path(stack.enter_context(tempfile.TemporaryDirectory()), "work.json")
            rows.write_text(json.dumps([{"right": True}]))
            theirs = _workers(kind, options, rows, stack)
            rounds([mine, *theirs], spent)
        told = ", ".join(f"{key} {value}" for key, value in PUZZLES[name].items())
        cells = [f"{1e6 / one.rate:,.0f}" for one in (mine, *theirs)]
        ratio = f"{mine.rate / theirs[0].rate:.2f}" if theirs else ""
        its = f"{name}: {told}" if told else name
        lines.append([mine.name, its, *(*cells, "")[:2], ratio])
        records.append(
            {"ours": mine.name, "rates": mine.rates, "theirs": [t.rates for t in theirs]}
        )
    headings = ["ours", "reasoning-gym", "ours, us", "its, us", "ours / it"]
    show("A puzzle made and one reply judged", headings, lines, markdown=options.markdown)
    return records


def _summary(one: Contender, options: argparse.Namespace) -> float:
    """Episodes a second: the median of the rounds, or the best on a machine that others use."""
    return max(one.rates) if options.best else one.rate


def rounds(everyone: list[Contender], options: argparse.Namespace) -> None:
    """Let all play in turn, there and back."""
    order = list(everyone)
    for _ in range(options.rounds):
        for contender in order:
            episodes, spent = contender.run(options.seconds)
            contender.rates.append(episodes / spent)
        order.reverse()


def _lines(kind: Kind, options: argparse.Namespace) -> list[list[str]]:
    """Ours, then the peers with how many times as fast ours are that do the same."""
    speed = {id(one): _summary(one, options) for one in [*kind.ours, *kind.theirs]}
    alike: dict[str, float] = {}
    for one in kind.ours:
        alike.setdefault(one.name, speed[id(one)])
    lines = []
    for one in [*kind.ours, *kind.theirs]:
        rate = speed[id(one)]
        peer = next((p for p in kind.peers if p.name == one.name), None)
        against = [] if peer is None else [alike.get(peer.scalar), alike.get(peer.vector)]
        ratios = [f"{ours / rate:.2f}" if ours else "" for ours in against] or ["", ""]
        who = one.name if peer else f"ours, {one.name}"
        lines.append([kind.work, who, one.judged, f"{rate:,.0f}", f"{1e6 / rate:,.1f}", *ratios])
    return lines


def _workers(
    kind: Kind, options: argparse.Namespace, path: Path, stack: contextlib.ExitStack
) -> list[Contender]:
    found = []
    for one in kind.peers:
        library = one.name.partition(",")[0]
        python = getattr(options, library.replace("-", "_"))
        fault = f"pip install {PIP[library]}; then --{library} PYTHON"
        if python:
            contender = stack.enter_context(peer(one, python, path))
            try:
                contender.run(0.1)
                found.append(contender)
                continue
            except (RuntimeError, OSError) as error:
                fault = str(error)
        console.print(f"left out: {one.name}: {fault}", markup=False, soft_wrap=True)
    return found


def sizes(options: argparse.Namespace) -> list[dict[str, Any]]:
    """What an episode costs by number of tasks, and by size of group; and print a table."""
    found = [(size, ways) for size in options.sizes for ways in by_size(size)]
    rounds([one for _, ways in found for one in ways], options)
    lines = [
        [f"{size:,} {ways[0].judged}", *(f"{1e6 / _summary(one, options):.1f}" for one in ways)]
        for size, ways in sorted(found, key=lambda pair: (pair[1][0].judged, pair[0]))
    ]
    headings = ["tasks", *(one.name for one in found[0][1])]
    show("What an episode costs, us", headings, lines, markdown=options.markdown)
    return [
        {"tasks": size, "kind": one.judged, "way": one.name, "rates": one.rates}
        for size, ways in found
        for one in ways
    ]


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--seconds", type=float, default=0.5, help="of a contender's turn")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--best", action="store_true", help="of the rounds, not their median")
    parser.add_argument("--sizes", type=int, nargs="*", default=[1_000, 100_000, 1_000_000])
    parser.add_argument("--only-sizes", action="store_true", help="leave the comparison out")
    parser.add_argument("--markdown", action="store_true", help="tables for a page")
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
    record: dict[str, Any] = {"load": load}
    if not options.only_sizes:
        record["speeds"] = speeds(options)
        record["puzzles"] = puzzles(options)
    if options.sizes:
        record["sizes"] = sizes(options)
    if options.json:
        Path(options.json).write_text(json.dumps(record, indent=1))


if __name__ == "__main__":
    main()
