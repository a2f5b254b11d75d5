"""What some runs came to, in numbers; runs that differ only in their seed count as one setting."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..config import GRPOConfig
from .curves import is_sparse, panels, smooth
from .history import History, Series, read_history
from .page import duration

HELD_OUT = "held_out/pass_at_1"
WINDOW = 10
"""Steps over which a number that is there at nearly every step is averaged."""
_LEVELS = (0.25, 0.5, 0.75, 0.9)
_NO_DIFFERENCE = ("seed", "eval_every", "save_every", "keep_checkpoints")


@dataclass(frozen=True, slots=True)
class Setting:
    """Runs that differ in nothing but their seed.

    Attributes:
        label: what tells it from the other settings of the comparison.
        runs: one for each seed.
    """

    label: str
    runs: tuple[History, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """What some runs came to.

    Attributes:
        settings: the runs, those that differ only in their seed together.
        rows: of a table: a name, and for each of ``settings`` what differs or what it came to:
            means over its runs, with the lowest and the highest.
    """

    settings: tuple[Setting, ...]
    rows: tuple[tuple[str, ...], ...]


def compare_runs(
    runs: Sequence[str | Path], *, metric: str | None = None, levels: Sequence[float] = ()
) -> Comparison:
    """Compare runs in numbers.

    Args:
        runs: directories of runs, or JSONL files of rows with a ``step``, such as another
            trainer's.
        metric: what the levels are of; held-out pass@1 where every run has it, else reward. What
            is there at nearly every step counts as its mean over 10 steps.
        levels: the steps and the time to each are told. Where none is given, those of 0.25, 0.5,
            0.75 and 0.9 that some run rises to.

    Raises:
        ValueError: there are fewer than two runs, one is not there, or none has the metric.
    """
    if len(runs) < 2:
        raise ValueError(f"a comparison needs at least two runs, got {len(runs)}")
    histories = [read_history(run) for run in runs]
    if metric is None:
        metric = HELD_OUT if all(HELD_OUT in h.names for h in histories) else "reward"
    if not any(metric in h.names for h in histories):
        known = sorted({name for h in histories for name in h.names})
        raise ValueError(f"no run has {metric!r}; there are {', '.join(known)}")
    levels = list(levels) or [x for x in _LEVELS if any(_rises(h, metric, x) for h in histories)]
    settings, differences = by_setting(histories)
    columns = [_column(setting, metric, levels) for setting in settings]
    rows = [(name, *(column[name] for column in columns)) for name in columns[0]]
    told = [(name, *values) for name, values in differences.items()]
    return Comparison(tuple(settings), tuple(told + rows))


def by_setting(
    histories: Sequence[History],
) -> tuple[list[Setting], dict[str, tuple[str, ...]]]:
    """Runs that differ only in their seed together, each labelled with what else differs.

    A run whose settings are not known stands alone, under its name.

    Returns:
        The settings, and the values of what differs for each of them.
    """
    groups: dict[str, list[History]] = {}
    for i, history in enumerate(histories):
        told = _told(history)
        groups.setdefault(_text(told) if told else f"run {i}", []).append(history)
    tolds = [_told(group[0]) for group in groups.values()]
    fields = dict.fromkeys(name for told in tolds for name in told)
    known = [told for told in tolds if told]
    differ = [n for n in fields if len({_text(told.get(n)) for told in known}) > 1]
    names = short_names([h.name for h in histories])
    labels = []
    for told, group in zip(tolds, groups.values(), strict=True):
        name = names[histories.index(group[0])]
        changed = ", ".join(f"{n}={_text(told.get(n))}" for n in differ) if told else ""
        labels.append(changed or (name if len(groups) > 1 or len(group) == 1 else "all runs"))
    if len(set(labels)) < len(labels):
        labels = [f"{label} #{i}" for i, label in enumerate(labels, start=1)]
    settings = [
        Setting(label, tuple(group)) for label, group in zip(labels, groups.values(), strict=True)
    ]
    return settings, {
        n: tuple(_text(told[n]) if n in told else "-" for told in tolds) for n in differ
    }


def short_names(names: Sequence[str]) -> list[str]:
    """The last parts of paths, as many as tell them apart."""
    parts = [Path(name).resolve().parts for name in names]
    longest = max(map(len, parts))
    for count in range(1, longest + 1):
        short = ["/".join(p[-count:]) for p in parts]
        if max(Counter(short).values()) == 1:
            return short
    return [f"{name} #{i}" for i, name in enumerate(names, start=1)]


def drawn(history: History, name: str) -> Series:
    """A number as it is compared: averaged over 10 steps where it is there at nearly every one."""
    series = history.series(name)
    ((panel, _),) = panels([name])
    raw = panel.exact or is_sparse(series, history.steps)
    return series if raw else smooth(series, WINDOW)


def first_reached(history: History, name: str, level: float) -> int | None:
    """The first step at which a number, as it is compared, is at least ``level``."""
    series = drawn(history, name)
    # The first averages are of fewer steps, where luck counts for more.
    skipped = 0 if is_sparse(series, history.steps) else min(WINDOW, len(series.steps)) - 1
    pairs = list(zip(series.steps, series.values, strict=True))[skipped:]
    return next((step for step, value in pairs if value >= level), None)


def _rises(history: History, name: str, level: float) -> bool:
    values = drawn(history, name).values
    return bool(values) and values[0] < level <= max(values)


def _column(setting: Setting, metric: str, levels: Sequence[float]) -> dict[str, str]:
    runs = setting.runs
    times = [h.seconds() for h in runs]
    found = {
        "runs": str(len(runs)),
        "steps": _mean([float(h.steps) for h in runs], _whole),
        "time": _mean([max(t.values()) if t else None for t in times], duration),
        f"{metric}, last": _mean([drawn(h, metric).last() for h in runs], _three),
        f"{metric}, best": _mean(
            [max(drawn(h, metric).values, default=None) for h in runs], _three
        ),
    }
    if metric != "reward":
        found[f"reward, last {WINDOW}"] = _mean(
            [h.series("reward").last(WINDOW) for h in runs], _three
        )
    found["tokens/s"] = _mean([_average(h.series("tokens/s")) for h in runs], _whole)
    for level in levels:
        steps = [first_reached(h, metric, level) for h in runs]
        at = [t[s] if t and s is not None else None for t, s in zip(times, steps, strict=True)]
        found[f"steps to {level:g}"] = _mean(steps, _whole)
        found[f"time to {level:g}"] = _mean(at, duration)
    return found


def _mean(values: Sequence[float | None], form: Callable[[float], str]) -> str:
    """The mean of the runs' values, with the lowest and the highest, and how many have one."""
    there = [v for v in values if v is not None]
    if not there:
        return "-"
    text = form(sum(there) / len(there))
    if form(min(there)) != form(max(there)):
        text += f" ({form(min(there))} to {form(max(there))})"
    return text if len(there) == len(values) else f"{text}, {len(there)} of {len(values)} runs"


def _average(series: Series) -> float | None:
    return series.last(len(series.values)) if series.values else None


def _whole(value: float) -> str:
    return f"{value:,.0f}"


def _three(value: float) -> str:
    return f"{value:.3f}"


def _told(history: History) -> dict[str, Any]:
    """What a run was told, with today's default for what it does not say; empty if not known."""
    if not history.config:
        return {}
    told = {**GRPOConfig().to_json(), **history.config, **history.about}
    return {name: value for name, value in told.items() if name not in _NO_DIFFERENCE}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True, default=str)
