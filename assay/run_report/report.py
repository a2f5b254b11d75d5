"""Write the report of a run: settings, curves and samples on one page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment
from markupsafe import Markup

from ..envs import wilson_interval
from ..grpo.config import GRPOConfig
from ..train_config import TrainConfig
from ..verifiers.atomic_io import write_text
from ..verifiers.visible import escape_invisible
from .curves import PANELS, Curve, Panel, draw_svg, is_sparse, panels, smooth
from .history import History, Series, read_history

_SHOWN_STEPS = 12
PAGE = "report.html"


def write_report(run: str | Path, path: str | Path | None = None) -> Path:
    """Write a run's page: one HTML file with curves and samples that needs no network.

    Args:
        run: its directory, or a JSONL file of metrics.
        path: of the page; by default ``report.html`` in the run's directory.

    Returns:
        The page's path.

    Raises:
        ValueError: there is no such run, or it has no rows.
    """
    history = read_history(run)
    if path is None:
        path = Path(run) / PAGE if Path(run).is_dir() else Path(run).with_suffix(".html")
    home = Path(history.name).resolve()
    heading = f"Run {home.name or home}"
    # Every text is escaped, and its invisible characters are made visible; pictures are markup.
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True, finalize=_seen)
    template = files(__package__).joinpath("report.html").read_text(encoding="utf-8")
    text = environment.from_string(template).render(title=heading, **_contents(history))
    write_text(path, text)
    return Path(path)


def _seen(value: Any) -> Any:
    return value if isinstance(value, Markup) else escape_invisible(str(value))


def changed_settings(config: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Return the settings that are not the default, each with its default."""
    usual = GRPOConfig().to_json()
    return {k: (v, usual.get(k, "-")) for k, v in config.items() if usual.get(k, "-") != v}


def _contents(history: History) -> dict[str, Any]:
    """Return what the template names."""
    drawn = [
        (panel, Markup(draw_svg(panel, _curves(history, panel, names))))  # noqa: S704  # our own
        for panel, names in panels(history.names)
    ]
    count = len(history.samples)
    places = _spread(count)
    changed = changed_settings(history.config)
    return {
        "history": history,
        "about": _line(history),
        "tiles": _numbers(history),
        "known": [(panel.title, svg) for panel, svg in drawn if panel in PANELS],
        "others": [(panel.title, svg) for panel, svg in drawn if panel not in PANELS],
        "window": _window(history.series("reward")),
        "samples": [history.samples[place] for place in places],
        "left": count - len(places),
        "mean_reward": _mean_reward,
        "changed": [(name, value, default) for name, (value, default) in changed.items()],
        "every": [*{**history.about, **history.config}.items()],
        "ground": [*{**history.versions, **history.machine}.items()],
    }


def _spread(count: int) -> list[int]:
    """Return the places of some steps with samples, from the first to the last."""
    shown = min(_SHOWN_STEPS, count)
    return sorted({round(i * (count - 1) / max(1, shown - 1)) for i in range(shown)})


def _mean_reward(group: Mapping[str, Any]) -> float:
    rewards = [r["reward"] for r in group["replies"] if r["reward"] is not None]
    return sum(rewards) / len(rewards) if rewards else 0.0


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
        found.append(("rollouts, updates, evaluations", duration(seconds)))
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


def duration(seconds: float) -> str:
    """Format seconds as ``41 s``, ``12 min 5 s`` or ``3 h 20 min``."""
    whole = round(seconds)
    if whole < 60:
        return f"{seconds:.3g} s" if seconds < 10 else f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
