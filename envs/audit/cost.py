"""The promises about cost: no reply takes long or much, however long or odd it is."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from .context import Panel, Tried
from .harness import Trial
from .replies import PATHOLOGICAL, growing

_STEPS = 5
"""Sizes, each four times the one before: linear work takes 4 times as long, quadratic 16."""
_MEGABYTE = 1 << 20

_NOISE_S = 0.25
"""CPU seconds below which no growth is judged."""
_NOISE_MIB = 32.0
"""Growth of memory that is let through at any length."""
_RATIO = 9.0
"""Between linear and quadratic. Half as steep again as linear, in the logarithm, is let through."""


def time(panel: Panel) -> Tried:
    """A reply takes CPU time in proportion to its length, and every reply ends."""
    failures, worst = [], 0.0
    for kind in panel.long_replies.values():
        costs: list[tuple[int, float]] = []
        for size, trial, (spent, _) in kind:
            costs.append((size, spent))
            worst = max(worst, spent)
            fault = _growth_fault(costs, panel.growth_s)
            if fault:
                failures.append(trial.failure(fault))
                break
    odd = [Trial(panel.subject.tasks[0], text, "an endless sum") for text in PATHOLOGICAL]
    panel.bench.judge(odd)
    cases = sum(map(len, panel.long_replies.values())) + len(odd)
    return Tried(cases, failures, measured={"worst_cpu_s": round(worst, 4)})


def memory(panel: Panel) -> Tried:
    """A long reply takes memory in proportion to its length."""
    failures, worst = [], 0.0
    for kind in panel.long_replies.values():
        for size, trial, (_, mib) in kind[-1:]:
            worst = max(worst, mib)
            allowed = panel.growth_mib * size / _MEGABYTE
            if mib > max(allowed, _NOISE_MIB):
                failures.append(trial.failure(f"takes {mib:.0f} MiB; {allowed:.0f} are allowed"))
    cases = len(panel.long_replies)
    return Tried(cases, failures, measured={"worst_mib": round(worst, 1)})


def long_replies(panel: Panel) -> dict[str, list[tuple[int, Trial, tuple[float, float]]]]:
    """Replies of each kind in growing sizes, and the CPU seconds and MiB that each took.

    A kind ends at the first size that never ends, or is much slower than the one before.
    """
    found: dict[str, list[tuple[int, Trial, tuple[float, float]]]] = {}
    for name, make in _kinds(panel).items():
        found[name] = []
        for size in _sizes(panel):
            trial = Trial(panel.subject.tasks[0], make(size), f"{name}, {size:,} characters")
            cost = _cost(panel, trial)
            if cost is None:  # on record as an overrun
                break
            found[name].append((size, trial, cost))
            if _growth_fault([(n, spent) for n, _, (spent, _) in found[name]], panel.growth_s):
                break
    return found


def _growth_fault(costs: list[tuple[int, float]], most_s: float) -> str:
    for (_, before), (_, after) in pairwise(costs):
        if after > _NOISE_S and after > _RATIO * max(before, _NOISE_S / 100):
            return f"takes {after:.2f} s of CPU time, a quarter of its length {before:.3f} s"
    size, spent = costs[-1]
    allowed = max(_NOISE_S, most_s * size / _MEGABYTE)
    return f"takes {spent:.2f} s of CPU time; {allowed:.2f} are allowed" if spent > allowed else ""


def _cost(panel: Panel, trial: Trial) -> tuple[float, float] | None:
    """CPU seconds and MiB. A reply that seems slow is tried again: the better time counts."""
    first = panel.bench.cost(trial)
    if first is None or first[0] < _NOISE_S:
        return first
    second = panel.bench.cost(trial)
    return second and (min(first[0], second[0]), min(first[1], second[1]))


def _sizes(panel: Panel) -> tuple[int, ...]:
    """A program is run for each, so there are fewer where there are programs."""
    sizes = tuple(panel.longest // 4**step for step in reversed(range(_STEPS)))
    return sizes if panel.subject.code is None else sizes[1:4]


def _kinds(panel: Panel) -> dict[str, Callable[[int], str]]:
    """Replies of any length, by name."""
    kinds = {name: _repeated(*pieces) for name, pieces in growing().items()}
    for winner in list(panel.winners.values())[:1]:
        kinds["prose, then the known answer"] = _repeated("", "I think. ", f"\n{winner}")
        after = f"</think>{winner}"
        kinds["a thought, then the known answer"] = _repeated("<think>", "I see. ", after)
        kinds["the known answer, then blanks"] = _repeated(winner, " \n", "")
        kinds["the known answer, again and again"] = _repeated("", f"{winner}\n", "")
    return kinds


def _repeated(head: str, unit: str, tail: str) -> Callable[[int], str]:
    def make(size: int) -> str:
        return head + unit * max(1, (size - len(head) - len(tail)) // len(unit)) + tail

    return make
