r"""How right and how fast the math verifier is, next to math-verify and TRL's accuracy_reward.

    python benchmarks/verifiers.py math_verdicts.jsonl [--every 1]

The file holds labelled verdicts: ``{"gold", "answer", "expected", "form", "tag"?}``, where ``form``
says how the answer is written: ``bare`` is put in a box, ``mv`` is a short text with ``$...$``,
``completion`` is a whole reply. Rows with a tag are matters of convention and counted apart.

All contenders take turns at the same pieces of work, so a busy machine slows them alike. They
run in the main thread of one process, as math-verify's alarms ask for; golds that it reads it
may keep, as we do.
"""

from __future__ import annotations

import argparse
import json
import logging
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from measuring import show

from assay.verifiers import Math
from assay.verifiers.text.extract import DEFAULT_RULES

Row = dict[str, Any]
Pair = tuple[str, str]  # reply, gold
Judge = Callable[[Sequence[Pair]], list[bool]]


def ours(rules: Sequence[str]) -> Judge:
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


def reply_of(row: Row) -> str:
    """The row's answer as a reply."""
    return "$\\boxed{" + row["answer"] + "}$" if row["form"] == "bare" else str(row["answer"])


def errors(rows: Sequence[Row], verdicts: dict[str, list[bool]]) -> list[list[str]]:
    """Count for each contender what it paid though wrong, and did not pay though right."""
    lines = []
    for tagged, label in ((False, "plain"), (True, "convention")):
        picked = [i for i, row in enumerate(rows) if ("tag" in row) == tagged]
        for expected, word in ((False, "paid though wrong"), (True, "right but not paid")):
            mine = [i for i in picked if rows[i]["expected"] == expected]
            counts = [str(sum(found[i] != expected for i in mine)) for found in verdicts.values()]
            lines.append([f"{label}: {word}, of {len(mine)}", *counts])
    return lines


def main() -> None:
    """Print errors and speeds."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("verdicts", type=Path)
    parser.add_argument("--every", type=int, default=1, help="judge every n-th labelled verdict")
    arguments = parser.parse_args()
    rows = [json.loads(line) for line in arguments.verdicts.open()][:: arguments.every]
    # rows that are no boxes are read by their last formula
    rules = [*DEFAULT_RULES[:-1], "last_math", "last_number"]
    judges = {"assay": ours(rules), "math-verify": math_verify(), "TRL": trl()}
    verdicts, seconds = in_turn(judges, [(reply_of(row), row["gold"]) for row in rows], 200)
    show(f"{len(rows)} labelled verdicts: errors", ["", *judges], errors(rows, verdicts))
    show(
        "Verdicts of one process",
        ["", "per second", "ours is"],
        [
            [name, f"{len(rows) / spent:,.0f}", f"{spent / seconds['assay']:,.1f} x"]
            for name, spent in seconds.items()
        ],
    )


if __name__ == "__main__":
    main()
