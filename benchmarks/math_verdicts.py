"""Errors and speed of the math verifier against math-verify alone, on labelled verdicts.

    python benchmarks/math_verdicts.py math_verdicts.jsonl

Each line of the file is ``{"gold", "answer", "expected", "form", "tag"?}``. ``form`` says how the
answer is written: ``bare`` is put in a box, ``mv`` is a short text with ``$...$``, ``completion``
is a whole reply. Rows with a tag are matters of convention and are counted apart.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from assay.verifiers import Math
from assay.verifiers.extract import DEFAULT_RULES

Row = dict[str, Any]
Judge = Callable[[str, str], bool]


def reply_of(row: Row) -> str:
    """The row's answer as a reply."""
    return "$\\boxed{" + row["answer"] + "}$" if row["form"] == "bare" else str(row["answer"])


def ours() -> Judge:
    """This library, with the rule that takes the last ``$...$`` for rows that have no mark."""
    rules = [*DEFAULT_RULES[:-1], "last_math", "last_number"]
    math = Math(extract=rules)
    return lambda reply, gold: math.verify(reply, gold).score == 1.0


def theirs() -> Judge:
    """math-verify with its defaults: the gold between dollars, its own extraction and alarms."""
    from math_verify import parse, verify

    logging.disable(logging.WARNING)

    def judge(reply: str, gold: str) -> bool:
        marked = gold if "$" in gold or "\\boxed" in gold else f"${gold}$"
        return bool(verify(parse(marked), parse(reply)))

    return judge


def measured(judge: Judge, rows: list[Row]) -> tuple[list[bool], float]:
    """Verdicts, and wall-clock seconds."""
    judge("\\boxed{x^2+1}", "1+x^2")  # imports and the worker's start are not the question
    started = time.perf_counter()
    verdicts = [judge(reply_of(row), row["gold"]) for row in rows]
    return verdicts, time.perf_counter() - started


def errors(rows: list[Row], verdicts: list[bool], tagged: bool) -> tuple[int, int, int]:
    """False positives, false negatives, and rows, of the tagged or the untagged."""
    pairs = [
        (v, r["expected"]) for r, v in zip(rows, verdicts, strict=True) if ("tag" in r) == tagged
    ]
    wrong = [v for v, expected in pairs if v != expected]
    return sum(wrong), len(wrong) - sum(wrong), len(pairs)


def main(path: str) -> None:
    """Judge every row with both, then compare."""
    rows = [json.loads(line) for line in Path(path).read_text().splitlines()]
    found = {
        "assay": measured(ours(), rows),
        "math-verify": measured(theirs(), rows),
    }
    table = Table(title=f"{len(rows)} labelled verdicts")
    for heading in ("", "assay", "math-verify", "ratio"):
        table.add_column(heading, justify="right" if heading else "left")
    counts = {name: [errors(rows, v, t) for t in (False, True)] for name, (v, _) in found.items()}
    for tagged, label in ((0, "plain"), (1, "convention")):
        for kind, word in ((0, "paid though wrong"), (1, "right but not paid")):
            a, b = (counts[name][tagged][kind] for name in found)
            total = counts["assay"][tagged][2]
            table.add_row(f"{label} ({total}): {word}", str(a), str(b), ratio(a, b))
    rates = [len(rows) / seconds for _, seconds in found.values()]
    table.add_row("verdicts per second", *(f"{rate:,.0f}" for rate in rates), ratio(*rates))
    Console().print(table)
    if "--rows" in sys.argv:
        for row, verdict in zip(rows, found["assay"][0], strict=True):
            if verdict != row["expected"] and "tag" not in row:
                print(int(verdict), row["form"], row["gold"][:60], "|", row["answer"][-60:])


def ratio(a: float, b: float) -> str:
    """The first over the second."""
    return f"{a / b:.2f}" if b else "-"


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(f"usage: {sys.argv[0]} math_verdicts.jsonl [--rows]")
    main(sys.argv[1])
