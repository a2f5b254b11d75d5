r"""How right and how fast the math verifier is, next to math-verify and TRL's accuracy_reward.

    python benchmarks/verifiers.py gsm8k_test.jsonl math_verdicts.jsonl [--cores 1,2]

The first file gives the prose of long replies: lines of ``{"answer": solution}``. The second
holds labelled verdicts: ``{"gold", "answer", "expected", "form", "tag"?}``, where ``form`` says
how the answer is written: ``bare`` is put in a box, ``mv`` is a short text with ``$...$``,
``completion`` is a whole reply. Rows with a tag are matters of convention and counted apart.

All contenders take turns at the same pieces of work, so a busy machine slows them alike. They
run in the main thread of one process, as math-verify's alarms ask for; golds that it reads it
may keep, as we do.
"""

from __future__ import annotations

import argparse
import json
import logging
import multiprocessing
import random
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from assay.verifiers import Math
from assay.verifiers.text.extract import DEFAULT_RULES

Row = dict[str, Any]
Pair = tuple[str, str]  # reply, gold
Judge = Callable[[Sequence[Pair]], list[bool]]
console = Console(width=110)


# -- contenders --------------------------------------------------------------------------------


def ours(rules: Sequence[str] = DEFAULT_RULES) -> Judge:
    """This library, a batch at a time."""
    math = Math(extract=rules)

    def judge(pairs: Sequence[Pair]) -> list[bool]:
        verdicts = math.verify_many([r for r, _ in pairs], [g for _, g in pairs])
        return [v.score == 1.0 for v in verdicts]

    return judge


def math_verify() -> Judge:
    """math-verify with its defaults: the gold between dollars, its own extraction and alarms."""
    from math_verify import parse, verify

    logging.disable(logging.WARNING)
    golds: dict[str, Any] = {}

    def judge(pairs: Sequence[Pair]) -> list[bool]:
        found = []
        for reply, gold in pairs:
            if gold not in golds:
                golds[gold] = parse(gold if "$" in gold or "\\boxed" in gold else f"${gold}$")
            found.append(bool(verify(golds[gold], parse(reply))))
        return found

    return judge


def trl() -> Judge:
    """TRL's accuracy_reward, the gold between dollars; where it gives None nothing is paid."""
    warnings.simplefilter("ignore")
    from trl.rewards import accuracy_reward

    def judge(pairs: Sequence[Pair]) -> list[bool]:
        completions = [[{"role": "assistant", "content": reply}] for reply, _ in pairs]
        golds = [g if "$" in g or "\\boxed" in g else f"${g}$" for _, g in pairs]
        return [score == 1.0 for score in accuracy_reward(completions, golds)]

    return judge


def in_turn(
    judges: dict[str, Judge], work: Sequence[Pair], piece: int
) -> tuple[dict[str, list[bool]], dict[str, float]]:
    """What each contender says of each pair, and its wall-clock seconds for all."""
    verdicts: dict[str, list[bool]] = {name: [] for name in judges}
    seconds = dict.fromkeys(judges, 0.0)
    for judge in judges.values():
        judge([(r"\boxed{\int_0^1 x\,dx}", r"\frac{1}{2}"), (r"\boxed{x^2+1}", "1+x^2")])  # starts
    for begin in range(0, len(work), piece):
        for name, judge in judges.items():
            started = time.perf_counter()
            verdicts[name] += judge(work[begin : begin + piece])
            seconds[name] += time.perf_counter() - started
    return verdicts, seconds


# -- work --------------------------------------------------------------------------------------


def golds(count: int, draw: random.Random) -> list[tuple[str, list[str]]]:
    """Known answers as in competition and school problems, each with other ways to write it."""
    found = []
    for _ in range(count):
        a, b, c = draw.randrange(2, 200), draw.randrange(2, 60), draw.choice((3, 7, 11, 13))
        kinds = [
            (str(a * b), [f"{a * b:,}", f"x = {a * b}", f"{a * b}.0"]),
            (str(a), [f"{a}", rf"{a}\text{{ cm}}", f"{a}."]),
            (
                rf"\frac{{{a * c + 1}}}{{{c}}}",
                [f"{a * c + 1}/{c}", rf"\dfrac{{{a * c + 1}}}{{{c}}}"],
            ),
            (rf"{b}\sqrt{{{c}}}", [rf"\sqrt{{{b * b * c}}}", rf"{b} \cdot \sqrt{{{c}}}"]),
            (rf"{a}\pi", [rf"\pi \cdot {a}", rf"{a} \pi"]),
            (f"({a}, -{b})", [rf"\left({a}, -{b}\right)"]),
            (f"{a}x^2 - {b}x + {c}", [f"{c} - {b}x + {a}x^2"]),
            (f"[{b}, {a + b})", [rf"{b} \le x < {a + b}"]),
        ]
        weights = (6, 6, 3, 2, 1, 1, 1, 1)
        found.append(draw.choices(kinds, weights)[0])
    return found


def completions(prose: Sequence[str], groups: int, of: int, seed: int) -> list[Pair]:
    """Groups of long replies (2,000 to 8,000 characters) that end in a box, half of them right."""
    draw = random.Random(seed)  # noqa: S311  # the same work on every machine
    pairs = []
    for gold, forms in golds(groups, draw):
        for _ in range(of):
            length, text = draw.randrange(2000, 8000), ""
            while len(text) < length:
                text += draw.choice(prose) + "\n\n"
            right = draw.random() < 0.5
            answer = draw.choice([gold, gold, gold, *forms]) if right else wrong(gold, draw)
            pairs.append((f"{text}Therefore, the answer is $\\boxed{{{answer}}}$.", gold))
    draw.shuffle(pairs)
    return pairs


def wrong(gold: str, draw: random.Random) -> str:
    """A near miss: one digit changed."""
    places = [i for i, char in enumerate(gold) if char.isdigit()]
    at = draw.choice(places)
    return gold[:at] + str((int(gold[at]) + draw.randrange(1, 9)) % 10) + gold[at + 1 :]


def reply_of(row: Row) -> str:
    """The row's answer as a reply."""
    return "$\\boxed{" + row["answer"] + "}$" if row["form"] == "bare" else str(row["answer"])


# -- tables ------------------------------------------------------------------------------------


def speeds(title: str, seconds: dict[str, float], count: int) -> None:
    """Verdicts per second and process, and how many times the others' that is."""
    table = Table("", "per second", "ours is", title=title)
    rates = {name: count / spent for name, spent in seconds.items()}
    for name, rate in rates.items():
        table.add_row(name, f"{rate:,.0f}", f"{rates['assay'] / rate:,.1f} x")
    console.print(table)


def errors(rows: Sequence[Row], verdicts: dict[str, list[bool]]) -> None:
    """Who paid what was wrong, and did not pay what was right."""
    table = Table("", *verdicts, title=f"{len(rows)} labelled verdicts: errors")
    for tagged, label in ((False, "plain"), (True, "convention")):
        picked = [i for i, row in enumerate(rows) if ("tag" in row) == tagged]
        for expected, word in ((False, "paid though wrong"), (True, "right but not paid")):
            mine = [i for i in picked if rows[i]["expected"] == expected]
            counts = [str(sum(found[i] != expected for i in mine)) for found in verdicts.values()]
            table.add_row(f"{label}: {word}, of {len(mine)}", *counts)
    console.print(table)


_judge: Judge | None = None


def _started() -> None:
    global _judge
    _judge = ours()


def _judged(pairs: list[Pair]) -> float:
    """Judge them; the CPU seconds that took."""
    assert _judge is not None
    started = time.process_time()
    _judge(pairs)
    return time.process_time() - started


def curve(pairs: Sequence[Pair], cores: Sequence[int]) -> None:
    """All completions at once, over so many processes; groups stay together."""
    table = Table(
        "processes", "seconds", "CPU seconds", "per second", title=f"{len(pairs):,} completions"
    )
    work = sorted(pairs, key=lambda pair: pair[1])
    for count in cores:
        size = -(-len(work) // (4 * count))
        pieces = [work[k : k + size] for k in range(0, len(work), size)]
        with multiprocessing.get_context("fork").Pool(count, _started) as processes:
            processes.map(_judged, [work[:1]] * count)
            started = time.perf_counter()
            used = sum(processes.map(_judged, pieces, chunksize=1))
            spent = time.perf_counter() - started
        table.add_row(str(count), f"{spent:.2f}", f"{used:.2f}", f"{len(pairs) / spent:,.0f}")
    console.print(table)


def main() -> None:
    """Print four tables."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("prose", type=Path)
    parser.add_argument("verdicts", type=Path)
    parser.add_argument("--cores", default="1,2")
    parser.add_argument("--completions", type=int, default=1600)
    parser.add_argument("--every", type=int, default=1, help="judge every n-th labelled verdict")
    arguments = parser.parse_args()
    prose = [json.loads(line)["answer"].split("####")[0] for line in arguments.prose.open()]
    rows = [json.loads(line) for line in arguments.verdicts.open()][:: arguments.every]

    long = completions(prose, arguments.completions // 16, 16, seed=1)
    found, seconds = in_turn({"assay": ours(), "math-verify": math_verify()}, long, 400)
    speeds(f"{len(long):,} long replies", seconds, len(long))
    agree = sum(a == b for a, b in zip(*found.values(), strict=True))
    console.print(f"they agree on {agree:,} of {len(long):,}\n")

    # rows that are no boxes are read by their last formula
    rules = [*DEFAULT_RULES[:-1], "last_math", "last_number"]
    judges = {"assay": ours(rules), "math-verify": math_verify(), "TRL": trl()}
    found, seconds = in_turn(judges, [(reply_of(row), row["gold"]) for row in rows], 200)
    errors(rows, found)
    speeds(f"{len(rows):,} labelled verdicts", seconds, len(rows))

    curve(completions(prose, 1024, 16, seed=2), [int(n) for n in arguments.cores.split(",")])


if __name__ == "__main__":
    main()
