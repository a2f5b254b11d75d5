"""Write the report of a run: settings, curves and samples on one page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

from ..envs import wilson_interval
from ..grpo.config import GRPOConfig
from ..train_config import TrainConfig
from ..verifiers.atomic_io import write_text
from .curves import PANELS, Curve, Panel, draw_svg, is_sparse, panels, smooth
from .history import History, Series, read_history
from .page import duration, figures, folded, note, page, safe, table, tiles

_SHOWN_STEPS = 12
PAGE = "report.html"


def write_report(
    run: str | Path, path: str | Path | None = None, *, title: str | None = None
) -> Path:
    """Write a run's page: one HTML file with curves and samples that needs no network.

    Args:
        run: its directory, or a JSONL file of metrics.
        path: of the page; by default ``report.html`` in the run's directory.
        title: of the page.

    Returns:
        The page's path.

    Raises:
        ValueError: there is no such run, or it has no rows.
    """
    history = read_history(run)
    if path is None:
        path = Path(run) / PAGE if Path(run).is_dir() else Path(run).with_suffix(".html")
    home = Path(history.name).resolve()
    heading = title or f"Run {home.name or home}"
    write_text(path, page(heading, _parts(history)))
    return Path(path)


def changed_settings(config: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Return the settings that are not the default, each with its default."""
    usual = GRPOConfig().to_json()
    return {k: (v, usual.get(k, "-")) for k, v in config.items() if usual.get(k, "-") != v}


def _parts(history: History) -> list[str]:
    parts = [note(_line(history)), tiles(_numbers(history))]
    parts += [
        f'<p class="alarm"><b>Step {step}:</b> {safe(text)}</p>' for step, text in history.alarms
    ]
    drawn = [(panel, _curves(history, panel, names)) for panel, names in panels(history.names)]
    known = [(p.title, draw_svg(p, c)) for p, c in drawn if p in PANELS]
    others = [(p.title, draw_svg(p, c)) for p, c in drawn if p not in PANELS]
    window = _window(history.series("reward"))
    few = f"Thick: mean of the last {window} steps; thin: each step. " if window > 1 else ""
    parts += ["<h2>Curves</h2>", note(f"{few}Dots: at evaluations."), figures(known)]
    if others:
        parts.append(folded("Further numbers", figures(others)))
    if history.samples:
        parts += ["<h2>Samples</h2>", *_samples(history.samples)]
    return [*parts, "<h2>Settings</h2>", _settings(history)]


def _line(history: History) -> str:
    """Say what was trained on what, with the settings that are not the default."""
    usual = {f.name: f.default for f in fields(TrainConfig) if f.default is not MISSING}
    chosen = {k: v for k, v in history.about.items() if v not in (None, {}, usual.get(k, MISSING))}
    if not (chosen.get("splits") or {}).get("overlap"):
        chosen.pop("splits", None)
    about = [f"{name}: {value}" for name, value in chosen.items()]
    when = [f"started {history.started[0]}"] if history.started else []
    if len(history.started) > 1:
        when.append(f"resumed {len(history.started) - 1} x, last {history.started[-1]}")
    return " · ".join([*about, *when]) or history.name


def _numbers(history: History) -> list[tuple[str, str]]:
    """Return names and values of the numbers that sum up a run."""
    planned = history.config.get("steps")
    found = [("step" + (f" of {planned}" if planned else ""), str(history.steps))]
    seconds = history.seconds()
    if seconds:
        found.append(("rollouts, updates, evaluations", duration(max(seconds.values()))))
    held_out = history.series("held_out/pass_at_1")
    if held_out.values:
        value, best = held_out.values[-1], max(held_out.values)
        scored = history.series("held_out/scored").last()
        low, high = wilson_interval(round(value * scored), int(scored)) if scored else (0.0, 1.0)
        found.append((f"held-out pass@1 (95 %: {low:.3f} to {high:.3f})", f"{value:.3f}"))
        at = held_out.steps[held_out.values.index(best)]
        found.append((f"best held-out pass@1, step {at}", f"{best:.3f}"))
    for name, label, form in _TILES:
        number = history.series(name).last(10)
        if number is not None:
            found.append((f"{label}, last 10 steps", format(number, form)))
    return found


_TILES = (
    ("reward", "reward", ".3f"),
    ("zero_variance", "groups without variance", ".0%"),
    ("none_share", "replies without a reward", ".1%"),
    ("truncated", "replies cut off", ".1%"),
    ("entropy", "entropy", ".3f"),
    ("kl", "KL", ".4f"),
    ("tokens/reply", "tokens a reply", ".1f"),
    ("tokens/s", "tokens a second", ",.0f"),
)


def _curves(history: History, panel: Panel, names: Sequence[str]) -> list[Curve]:
    curves = []
    for colour, name in enumerate(names):
        series = history.series(name)
        label = name.rpartition("/")[2] if len(names) > 1 and "/" in panel.names[0] else name
        if panel.stacked or panel.exact:
            curves.append(Curve(label, series, colour))
        elif is_sparse(series, history.steps):
            curves.append(Curve(label, series, colour, points=True))
        else:
            window = _window(series)
            if window > 1:
                curves.append(Curve("", series, colour, faint=True))
            curves.append(Curve(label, smooth(series, window), colour))
    return curves


def _window(series: Series) -> int:
    """Return the steps of a run's moving average: a fortieth of all."""
    return max(1, len(series.values) // 40)


def _samples(samples: Sequence[Mapping[str, Any]]) -> list[str]:
    """Render some steps from the first to the last, with the last one unfolded."""
    count = min(_SHOWN_STEPS, len(samples))
    places = {round(i * (len(samples) - 1) / max(1, count - 1)) for i in range(count)}
    left = len(samples) - len(places)
    remark = f"{left} further steps are in samples.jsonl. " if left else ""
    parts = [note(f"{remark}Edge: green above the group's mean, red below it.")]
    for place in sorted(places):
        row = samples[place]
        inside = "".join(_group(group) for group in row["groups"])
        parts.append(folded(f"Step {row['step']}", inside, shown=place == len(samples) - 1))
    return parts


def _group(group: Mapping[str, Any]) -> str:
    replies = group["replies"]
    rewards = [r["reward"] for r in replies if r["reward"] is not None]
    mean = sum(rewards) / len(rewards) if rewards else 0.0
    size = group.get("size", len(replies))
    some = f", {len(replies)} of {size} replies" if size > len(replies) else ""
    heading = f"{group['kept_as']}: task {group['task'] or '-'}, mean reward {mean:.3g}{some}"
    cards = "".join(_card(reply, mean) for reply in replies)
    return (
        f'<h3>{safe(heading)}</h3><pre class="prompt">{safe(group["prompt"])}</pre>'
        f'<div class="cards">{cards}</div>'
    )


def _card(reply: Mapping[str, Any], mean: float) -> str:
    reward = reply["reward"]
    kind = "" if reward is None or reward == mean else " up" if reward > mean else " down"
    facts = ["no reward" if reward is None else f"reward {reward:.3g}"]
    if reply["advantage"] is not None:
        facts.append(f"advantage {reply['advantage']:+.2f}")
    facts += [f"{reply['tokens']} tokens", *["cut off"] * reply["truncated"]]
    parts = [
        f"{n} {'none' if v is None else format(v, '.3g')}" for n, v in reply["rewards"].items()
    ]
    why = ": ".join(filter(None, (reply["status"], reply["reason"])))
    return (
        f'<div class="card{kind}"><div>{safe(" · ".join(facts))}</div>'
        f"<pre>{safe(reply['text']) or '<i>empty</i>'}</pre>"
        f'<div class="why">{safe(" · ".join([why, *parts]))}</div></div>'
    )


def _settings(history: History) -> str:
    if not history.config:
        return note("The run's settings are not known: there is no run.json beside its metrics.")
    changed = changed_settings(history.config)
    rows = [(name, value, default) for name, (value, default) in changed.items()]
    every = table(("setting", "value"), {**history.about, **history.config}.items())
    ground = table(("", ""), {**history.versions, **history.machine}.items())
    return (
        f'<div class="tables"><div><h3>Other than the default</h3>'
        f"{table(('setting', 'value', 'default'), rows)}</div>"
        f"<div><h3>Versions and machine</h3>{ground}</div></div>{folded('All settings', every)}"
    )
