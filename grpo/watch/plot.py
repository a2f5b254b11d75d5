"""Draw a run's learning curve."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .log import read_metrics


def plot_learning_curve(
    metrics: str | Path, png: str | Path, *, title: str = "GRPO learning curve"
) -> Path:
    """Draw held-out pass@1, training reward and the share of groups that teach nothing.

    Args:
        metrics: a run's ``metrics.jsonl``.
        png: the picture's path; its directory is made where missing.
        title: above the picture.

    Returns:
        The picture's path.

    Raises:
        ValueError: there is nothing to draw.
    """
    # Only here, so that training itself needs no matplotlib; no display is needed either.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    rows = read_metrics(metrics)
    if not rows:
        raise ValueError(f"{str(metrics)!r} has no rows to draw: train for at least one step")
    figure = Figure(figsize=(8, 4.5), dpi=120, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    _line(axes, rows, "zero_variance", "groups without variance (share)", color="0.65", lw=1.0)
    _line(axes, rows, "reward", "training reward (mean)", color="tab:blue", lw=0.6, alpha=0.35)
    _smooth(axes, rows, "reward", color="tab:blue")
    _line(axes, rows, "held_out/pass_at_1", "held-out pass@1", color="tab:red", marker="o", lw=2)
    axes.set(title=title, xlabel="step (one rollout each)", ylabel="share or reward")
    low, high = axes.get_ylim()  # rewards may have another range than [0, 1]
    axes.set_ylim(min(low, -0.02), max(high, 1.02))
    axes.grid(alpha=0.25)
    axes.legend(loc="best")
    path = Path(png)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)
    return path


def _points(rows: list[dict[str, Any]], name: str) -> tuple[list[int], list[float]]:
    found = [(row["step"], row[name]) for row in rows if row.get(name) is not None]
    return [s for s, _ in found], [v for _, v in found]


def _line(axes: Any, rows: list[dict[str, Any]], name: str, label: str, **style: Any) -> None:
    steps, values = _points(rows, name)
    if steps:
        axes.plot(steps, values, label=label, **style)


def _smooth(axes: Any, rows: list[dict[str, Any]], name: str, **style: Any) -> None:
    """The mean of the last ten steps, for the eye."""
    steps, values = _points(rows, name)
    if len(steps) < 20:
        return
    means = [sum(values[max(0, i - 9) : i + 1]) / min(i + 1, 10) for i in range(len(values))]
    axes.plot(steps, means, label="training reward, mean of 10 steps", **style)
