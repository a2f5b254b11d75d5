"""Draw a study: a panel for each curve, a line for each arm, a band over its seeds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..verifiers.atomic_io import replacing
from .claims import Verdict, Word
from .measured import Results, band
from .study import Study

COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#17becf", "#8c564b", "#7f7f7f")
_WORD_COLOURS: dict[Word, str] = {
    "shown": "#2ca02c",
    "shown against": "#d62728",
    "too small to tell": "#7f7f7f",
}
_WIDEST = 3  # panels in a row
_EDGE = 1000.0  # of the overview, in %


def draw_study(study: Study, results: Results, png: Path) -> Path:
    """Draw what was measured.

    Args:
        study: whose picture it is; its own ``draw`` comes first.
        results: of each arm.
        png: the picture's path; its directory is made if it does not exist.

    Returns:
        The path.
    """
    from matplotlib.figure import Figure  # only here: listing studies needs no matplotlib

    measured = [one for found in results.values() for one in found]
    names = list(dict.fromkeys(name for one in measured for name in one.outcome.curves))
    columns = min(_WIDEST, max(1, len(names)))
    rows = max(1, -(-len(names) // columns))
    figure = Figure(figsize=(4.3 * columns, 3.3 * rows + 0.5), dpi=110, layout="constrained")
    if study.draw is not None:
        study.draw(figure, results)
    else:
        panels = figure.subplots(rows, columns, squeeze=False).flatten()
        for axes, name in zip(panels, names, strict=False):
            draw_curve(axes, results, name, xlabel=study.xlabel)
        for axes in panels[len(names) :]:
            axes.set_visible(False)
        handles, labels = panels[0].get_legend_handles_labels()
        if labels:
            figure.legend(handles, labels, loc="outside lower center", ncols=min(2 * columns, 4))
    seeds = max((len(found) for found in results.values()), default=0)
    figure.suptitle(f"{study.title}: mean and range of {seeds} seeds", fontsize=11)
    with replacing(png) as partial:
        figure.savefig(partial, format="png")
    return png


def draw_overview(decided: Sequence[tuple[str, Verdict]], png: Path) -> Path:
    """Draw every claim of every study: its gain with the interval, the claim beside it.

    Args:
        decided: the study's title with each verdict.
        png: the picture's path; its directory is made if it does not exist.
    """
    from matplotlib.figure import Figure

    titles = list(dict.fromkeys(title for title, _ in decided))
    rows = len(decided) + len(titles)
    figure = Figure(figsize=(11, 0.22 * rows + 1.2), dpi=110, layout="constrained")
    axes = figure.subplots()
    labels: list[str] = []
    for title in titles:
        axes.axhline(len(labels), color="#dddddd", lw=0.8, zorder=0)
        labels.append(title)
        for verdict in (one for of, one in decided if of == title):
            gains = (_percent(verdict, x) for x in (verdict.mean, verdict.low, verdict.high))
            mean, low, high = (min(max(gain, -_EDGE), _EDGE) for gain in gains)
            row, colour = len(labels), _WORD_COLOURS[verdict.word]
            axes.plot([low, high], [row, row], color=colour, lw=2.5, solid_capstyle="butt")
            marker = {_EDGE: ">", -_EDGE: "<"}.get(mean, "o")
            axes.plot(mean, row, marker, color=colour, ms=4.5, clip_on=False)
            labels.append(verdict.claim.text)
    for word, colour in _WORD_COLOURS.items():
        more = " or not repeated" if word == "too small to tell" else ""
        axes.plot([], [], "o-", color=colour, label=word + more)
    axes.axvline(0, color="black", lw=0.8)
    axes.set_xscale("symlog", linthresh=1)
    ticks = [sign * 10.0**power for sign in (-1, 1) for power in range(4)]
    axes.set_xticks([0, *ticks], labels=["0", *(f"{tick:+.0f}" for tick in ticks)], fontsize=8)
    axes.set(xlim=(-_EDGE, _EDGE), ylim=(rows - 0.5, -0.7), yticks=range(rows))
    for label in axes.set_yticklabels(labels, fontsize=7.5):
        label.set_fontweight("bold" if label.get_text() in titles else "normal")
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel(
        "gain beyond the margin in % of what is compared with,\n99 % bootstrap interval; "
        "triangles lie beyond"
    )
    axes.grid(axis="x", alpha=0.25)
    figure.legend(loc="outside upper center", ncols=len(_WORD_COLOURS))
    with replacing(png) as partial:
        figure.savefig(partial, format="png")
    return png


def _percent(verdict: Verdict, gain: float) -> float:
    """Return the gain beyond the claim's margin, in % of the baseline."""
    margin = verdict.claim.margin
    if verdict.claim.ratio:
        return 100 * (gain / margin - 1)
    return 100 * (gain - margin) / (abs(verdict.base) or 1.0)


def draw_curve(axes: Any, results: Results, name: str, *, xlabel: str = "step") -> None:
    """Draw one curve of every arm: its mean over the seeds, and a band from least to most."""
    for i, (arm, measured) in enumerate(results.items()):
        points = band(measured, name)
        if not points:
            continue
        xs, mean, least, most = zip(*points, strict=True)
        colour = COLOURS[i % len(COLOURS)]
        marker = "o" if len(xs) < 3 else None
        style = "-" if i < len(COLOURS) else "--"
        axes.plot(xs, mean, style, label=arm, color=colour, lw=1.6, marker=marker, ms=4)
        axes.fill_between(xs, least, most, color=colour, alpha=0.15, lw=0)
    axes.set(title=name, xlabel=xlabel)
    axes.grid(alpha=0.25)
