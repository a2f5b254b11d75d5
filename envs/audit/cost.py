"""Checks of cost: time and memory are linear in the reply."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from .context import Context, LongReplies, Outcome, check
from .harness import Trial
from .replies import GROWING, PATHOLOGICAL

_STEPS = 5
"""Sizes, each four times the one before: linear work takes 4 times as long, quadratic 16."""
_MEGABYTE = 1 << 20
_NOISE_S = 0.25
"""CPU seconds below which no growth is judged."""
_NOISE_MIB = 32.0
"""Growth of memory that is let through at any length."""
_RATIO = 9.0
"""Between linear and quadratic. Half as steep again as linear, in the logarithm, is let through."""


@check("bound what is read; no backtracking patterns; algebra in a worker")
def time(context: Context) -> Outcome:
    """Check that a reply takes time in proportion to its length, and ends."""
    failures, worst, cases = [], 0.0, 0
    for kind in _long_replies(context).values():
        cases += len(kind)
        worst = max([worst, *(spent for _, _, (spent, _) in kind)])
        fault = _growth_fault(kind, context.growth_s) if kind else ""
        if fault:
            failures.append(kind[-1][1].failure(fault))
    odd = [Trial(context.tasks[0], "an endless sum", text) for text in PATHOLOGICAL]
    context.harness.judge(odd)
    return Outcome(cases + len(odd), failures, measured={"worst_cpu_s": round(worst, 4)})


@check("bound what is kept of a reply")
def memory(context: Context) -> Outcome:
    """Check that a reply takes memory in proportion to its length."""
    failures, worst = [], 0.0
    for kind in _long_replies(context).values():
        for size, trial, (_, mib) in kind[-1:]:
            worst = max(worst, mib)
            allowed = context.growth_mib * size / _MEGABYTE
            if mib > max(allowed, _NOISE_MIB):
                failures.append(trial.failure(f"takes {mib:.0f} MiB; {allowed:.0f} are allowed"))
    cases = len(_long_replies(context))
    return Outcome(cases, failures, measured={"worst_mib": round(worst, 1)})


def _long_replies(context: Context) -> LongReplies:
    """Measure replies of each kind in growing sizes, once for an audit.

    A kind ends at the first size that never ends, or is much slower than the one before.
    """
    if context.long_replies:
        return context.long_replies
    sizes = [context.longest // 4**step for step in reversed(range(_STEPS))]
    if context.code is not None:  # a program is run for each
        sizes = sizes[1:4]
    found: LongReplies = {}
    for name, make in _kinds(context).items():
        kind = found[name] = []
        for size in sizes:
            trial = Trial(context.tasks[0], f"{name}, {size:,} characters", make(size))
            cost = _cost(context, trial)
            if cost is None:  # recorded as an overrun
                break
            kind.append((size, trial, cost))
            if _growth_fault(kind, context.growth_s):
                break
    context.long_replies = found
    return found


def _growth_fault(kind: list[tuple[int, Trial, tuple[float, float]]], most_s: float) -> str:
    spent = [cpu_s for _, _, (cpu_s, _) in kind]
    for before, after in pairwise(spent):
        if after > _NOISE_S and after > _RATIO * max(before, _NOISE_S / 100):
            return f"takes {after:.2f} s of CPU time, a quarter of its length {before:.3f} s"
    allowed = max(_NOISE_S, most_s * kind[-1][0] / _MEGABYTE)
    last = spent[-1]
    return f"takes {last:.2f} s of CPU time; {allowed:.2f} are allowed" if last > allowed else ""


def _cost(context: Context, trial: Trial) -> tuple[float, float] | None:
    """Return CPU seconds and MiB; of a reply that seems slow, the better of two measurements."""
    first = context.harness.cost(trial)
    if first is None or first[0] < _NOISE_S:
        return first
    second = context.harness.cost(trial)
    return second and (min(first[0], second[0]), min(first[1], second[1]))


def _kinds(context: Context) -> dict[str, Callable[[int], str]]:
    """Return makers of replies of any length, by name."""
    kinds = {name: _repeated(*pieces) for name, pieces in GROWING.items()}
    for winner in list(context.winners.values())[:1]:
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
