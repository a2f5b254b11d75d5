"""How the time of a verdict grows with the reply: every verifier, up to a megabyte.

    python benchmarks/lengths.py [--kinds 32] [--plot docs/lengths.png]

Each verifier of the catalogue judges replies of every kind that the audit grows (blanks, digits,
tags, boxes, fences, quotes, ...) at 1, 10, 100 and 1,000 thousand characters, and its own winning
replies repeated to those sizes. Printed is, for each verifier, the kind that takes longest at a
megabyte, with the CPU time at each size. Code is left out: its time is the program's.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path

from measuring import show
from rich.progress import track

from assay.envs.audit.replies import GROWING
from assay.verifiers.catalogue import Example, examples

SIZES = (1_000, 10_000, 100_000, 1_000_000)
LEFT_OUT = {"Code"}


def kinds_of(example: Example) -> dict[str, tuple[str, str, str]]:
    """What is repeated: a head, a piece, a tail."""
    own = {f"its own reply {n}": ("", f"{w}\n", "") for n, w in enumerate(example.wins[:3])}
    return GROWING | own


def of_size(kind: tuple[str, str, str], size: int) -> str:
    """A reply of a kind, of so many characters."""
    head, piece, tail = kind
    return (head + piece * (size // max(1, len(piece)) + 1))[: size - len(tail)] + tail


def seconds(example: Example, reply: str) -> float:
    """CPU time of one verdict: the best of three where it is quick."""
    best = float("inf")
    for _ in range(3):
        started = time.process_time()
        verdict = example.verifier.verify(reply, example.reference)
        best = min(best, time.process_time() - started)
        assert verdict.score is not None, (example, reply[:80])
        if best > 0.05:
            break
    return best


def worst(example: Example, kinds: int) -> tuple[str, list[float]]:
    """The kind that takes longest at a megabyte, and its times at all sizes."""
    every = dict(list(kinds_of(example).items())[-kinds:])
    # what is slow at a tenth is what can be slow at the whole
    tenth = {name: seconds(example, of_size(kind, SIZES[-2])) for name, kind in every.items()}
    slowest = sorted(tenth, key=lambda name: -tenth[name])[:4]
    whole = {name: seconds(example, of_size(every[name], SIZES[-1])) for name in slowest}
    name = max(whole, key=lambda n: whole[n])
    return name, [*(seconds(example, of_size(every[name], n)) for n in SIZES[:-1]), whole[name]]


def measured(kinds: int) -> Iterator[tuple[str, str, list[float]]]:
    """For each verifier: its worst kind of reply, and its times."""
    first = {e.name: e for e in reversed(examples()) if e.name not in LEFT_OUT}
    for name in track(sorted(first), description="measuring"):
        yield name, *worst(first[name], kinds)


def plot(rows: list[tuple[str, str, list[float]]], path: Path) -> None:
    """Draw a curve for each verifier."""
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(8, 5), layout="constrained")
    lowest = float("inf")
    for name, _, times in sorted(rows, key=lambda row: -row[2][-1]):
        axes.plot(SIZES, [max(t, 1e-6) for t in times], color="tab:blue", alpha=0.35)
        if times[-1] < 0.8 * lowest:  # names that would lie on each other are left out
            lowest = times[-1]
            at = (SIZES[-1], lowest)
            axes.annotate(name, at, fontsize=7, xytext=(4, -2), textcoords="offset points")
    axes.plot(SIZES, [n * 1e-6 for n in SIZES], "k--", label="1 µs a character")
    axes.set(xscale="log", yscale="log", title="The worst kind of reply for each verifier")
    axes.set(xlabel="characters of the reply", ylabel="CPU seconds of a verdict")
    axes.set_xlim(right=4 * SIZES[-1])
    axes.legend()
    figure.savefig(path, dpi=150)


def main() -> None:
    """Measure, print, and draw."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--kinds", type=int, default=100, help="fewer kinds, for a quick look")
    parser.add_argument("--plot", type=Path, help="draw the curves into this file")
    chosen = parser.parse_args()
    rows = list(measured(chosen.kinds))
    lines = []
    for name, kind, times in sorted(rows, key=lambda row: -row[2][-1]):
        growth = f"{times[-1] / max(times[-2], 1e-9):.1f} x"
        lines.append([name, kind, *(f"{1e3 * t:.2f}" for t in times), growth])
    show(
        "CPU milliseconds of a verdict, by characters of the reply",
        ["verifier", "worst kind of reply", *(f"{n:,}" for n in SIZES), "x10 costs"],
        lines,
        words=2,
    )
    if chosen.plot:
        plot(rows, chosen.plot)


if __name__ == "__main__":
    main()
