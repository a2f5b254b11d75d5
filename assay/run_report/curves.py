"""Curves of metrics, and which of them share a panel."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from ..verifiers.visible import escape_invisible
from .history import Series

_INK = "#010203"  # becomes the page's own text colour, whatever that is
_POINTS = 600  # of a curve: more cannot be seen


@dataclass(frozen=True, slots=True)
class Panel:
    """A plot of some metrics over the steps.

    Attributes:
        title: above it.
        names: of its metrics; ``*`` matches anything.
        stacked: the metrics are parts of a whole.
        log: the axis is logarithmic.
        share: the axis goes from 0 to 1.
        floor: the axis begins there, if no value is below.
        height: the axis is at least so high, so that rounding does not look like a finding.
        exact: drawn as it is, without averages: there is no noise in it.
    """

    title: str
    names: tuple[str, ...]
    stacked: bool = False
    log: bool = False
    share: bool = False
    floor: float | None = None
    height: float = 0.0
    exact: bool = False


@dataclass(frozen=True, slots=True)
class Curve:
    """A line in a plot.

    Attributes:
        label: in the legend; empty for none.
        series: what is drawn.
        colour: number of its colour.
        faint: drawn as a thin line in the background.
        points: with a dot at each value.
    """

    label: str
    series: Series
    colour: int = 0
    faint: bool = False
    points: bool = False


PANELS = (
    Panel("Held-out tasks", ("held_out/pass_at_*", "held_out/pass@*"), share=True),
    Panel("Reward", ("reward", "accuracy", "reward_std")),
    Panel("Parts of the reward", ("reward/*",)),
    Panel("Shares of groups and replies", ("zero_variance", "none_share", "truncated"), share=True),
    Panel("How replies end", ("status/*",), stacked=True, share=True),
    Panel("KL divergence", ("kl", "kl/*", "kl_*"), floor=0),
    Panel("Entropy", ("entropy", "entropy/*", "entropy_*"), floor=0),
    Panel("Share of tokens that are clipped", ("clip_fraction*",), floor=0, height=0.01),
    Panel("Probability ratio", ("ratio", "ratio/*", "*_ratio"), height=0.01),
    Panel(
        "Length of replies, tokens", ("tokens/reply*", "tokens/longest", "tokens/shortest"), floor=0
    ),
    Panel("Loss", ("loss", "loss/*")),
    Panel("Length of the gradient", ("grad_norm*",), log=True),
    Panel("Learning rate", ("lr", "lr/*"), floor=0, exact=True),
    Panel("Speed, sampled tokens a second", ("tokens/s",), floor=0),
    Panel("Seconds of a step", ("seconds/*",), floor=0),
)


def panels(names: Sequence[str]) -> list[tuple[Panel, list[str]]]:
    """Return the panels of these metrics; one that no panel names gets its own."""
    left = dict.fromkeys(names)
    found = []
    for panel in PANELS:
        mine = [n for pattern in panel.names for n in left if fnmatchcase(n, pattern)]
        for name in mine:
            left.pop(name, None)
        if mine:
            found.append((panel, list(dict.fromkeys(mine))))
    return found + [(Panel(name, (name,)), [name]) for name in left]


def smooth(series: Series, window: int) -> Series:
    """Return the mean of each value and those before it, ``window`` values at most."""
    sums = [0.0]
    for value in series.values:
        sums.append(sums[-1] + value)
    means = [
        (sums[i + 1] - sums[max(0, i + 1 - window)]) / min(i + 1, window)
        for i in range(len(series.values))
    ]
    return Series(series.steps, means)


def is_sparse(series: Series, steps: int) -> bool:
    """Return whether a metric has few steps, as evaluations do."""
    return len(series.steps) <= max(3, (steps + 1) // 3)


def draw_svg(panel: Panel, curves: Sequence[Curve]) -> str:
    """Draw a panel as an ``<svg>`` element that takes the text colour of its page."""
    import matplotlib

    style = {**_STYLE, "svg.hashsalt": escape_invisible(panel.title)}
    with matplotlib.rc_context(style), warnings.catch_warnings():
        # Names may be in any script; the browser has the letters that are missing here.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        figure = draw(panel, curves, 4.8, 2.9)
        handles, labels = figure.axes[0].get_legend_handles_labels()
        if len(labels) > 1 or (labels and "*" in panel.names[0]):
            columns = 1 if max(map(len, labels)) > 30 else min(3, len(labels))
            figure.legend(handles, labels, loc="outside upper left", ncols=columns)
        text = io.StringIO()
        figure.savefig(text, format="svg", transparent=True, metadata={"Date": None})
    return _inline(text.getvalue())


def draw(panel: Panel, curves: Sequence[Curve], width: float, height: float) -> Any:
    """Draw curves on one axis of a new matplotlib figure of so many inches, without a display."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.subplots()
    if panel.stacked:
        _stack(axes, curves)
    else:
        for curve in curves:
            _line(axes, curve)
    _scale(axes, panel, [v for c in curves for v in c.series.values])
    axes.set_xlabel("step")
    axes.margins(x=0.01)
    axes.grid(alpha=0.2, linewidth=0.6)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    return figure


def _scale(axes: Any, panel: Panel, values: Sequence[float]) -> None:
    if panel.log and values and min(values) > 0:
        from matplotlib.ticker import LogLocator, NullFormatter

        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.yaxis.set_minor_formatter(NullFormatter())
        return
    if panel.share:
        axes.set_ylim(-0.02, 1.02)
        return
    low, high = axes.get_ylim()
    if high - low < panel.height:
        middle = sum(values) / len(values) if values else 0.0
        low, high = middle - panel.height / 2, middle + panel.height / 2
    if panel.floor is not None and values and min(values) >= panel.floor:
        low, high = panel.floor, max(high, panel.floor + panel.height)
    axes.set_ylim(low, high)


def _line(axes: Any, curve: Curve) -> None:
    stride = max(1, -(-len(curve.series.steps) // _POINTS))
    # The last value is always drawn: it is the one that is read off.
    pick = sorted({*range(0, len(curve.series.steps), stride), len(curve.series.steps) - 1})
    steps = [curve.series.steps[i] for i in pick]
    colour = f"C{curve.colour % 10}"
    axes.plot(
        steps,
        [curve.series.values[i] for i in pick],
        color=colour,
        label=escape_invisible(curve.label) or None,
        linewidth=0.7 if curve.faint else 1.6,
        alpha=0.35 if curve.faint else 1.0,
        marker="o" if curve.points or len(steps) == 1 else None,
        markersize=3,
    )


def _stack(axes: Any, curves: Sequence[Curve]) -> None:
    steps = sorted({step for curve in curves for step in curve.series.steps})
    stride = max(1, -(-len(steps) // _POINTS))
    steps = steps[::stride]
    tables = [dict(zip(c.series.steps, c.series.values, strict=True)) for c in curves]
    axes.stackplot(
        steps,
        [[table.get(step, 0.0) for step in steps] for table in tables],
        labels=[escape_invisible(curve.label) for curve in curves],
        colors=[f"C{curve.colour % 10}" for curve in curves],
        alpha=0.75,
        linewidth=0,
    )


_COLOURED = ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color")
_STYLE: dict[Any, Any] = {
    **dict.fromkeys(_COLOURED, _INK),
    "grid.color": _INK,
    "font.size": 8,
    "legend.fontsize": 7.5,
    "legend.frameon": False,
    "svg.fonttype": "none",  # text stays text: small, and it can be searched
    "text.parse_math": False,  # a metric's name may hold dollars
    "axes.formatter.useoffset": False,
}
"""With a salt of its own a picture has the same bytes each time, and no name twice in a page."""


def _inline(svg: str) -> str:
    """Return the element alone, without its size, so that it fits a narrow window."""
    svg = svg[svg.index("<svg") :].replace(_INK, "currentColor")
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    head, _, rest = svg.partition(">")
    head = re.sub(r' (?:width|height)="[^"]*"', "", head)
    used = set(re.findall(r"#([\w.-]+)", rest))
    rest = re.sub(r' id="([^"]*)"', lambda m: m[0] if m[1] in used else "", rest)
    return f"{head}>{rest}"
