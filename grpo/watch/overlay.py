"""The curves of several runs over each other, as a page or a picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

from .compare import WINDOW, Comparison, Setting, drawn
from .curves import Curve, Panel, draw_png, draw_svg, is_known, is_sparse, panels
from .history import Series
from .page import figures, folded, note, page, table, write_page

_NOTE = (
    f"A number that is there at nearly every step is drawn as its mean over {WINDOW} steps. Where "
    "a setting has several seeds: their mean, and a band from the lowest to the highest, over the "
    "steps that all of them have; thin lines: seeds that go on after others have ended. Time is "
    "that of rollouts, updates and evaluations."
)


def write_comparison(comparison: Comparison, path: str | Path) -> Path:
    """Draw the curves of a comparison: a page, or where the path ends in ``.png`` a picture.

    Returns:
        The path.

    Raises:
        ValueError: the path ends in neither ``.html`` nor ``.png``.
    """
    path = Path(path)
    refuse_ending(path)
    usual, others = _pictures(comparison.settings)
    if path.suffix == ".png":
        path.parent.mkdir(parents=True, exist_ok=True)
        draw_png(_chosen(usual) or usual or others, path)
    else:
        labels = [setting.label for setting in comparison.settings]
        parts = [note(_NOTE), table(("", *labels), comparison.rows, wide=True)]
        parts += ["<h2>Curves</h2>", figures((p.title, draw_svg(p, c)) for p, c in usual)]
        if others:
            further = figures((p.title, draw_svg(p, c)) for p, c in others)
            parts.append(folded("Further numbers", further))
        runs = [(s.label, run.name) for s in comparison.settings for run in s.runs]
        parts += ["<h2>Runs</h2>", table(("setting", "run"), runs, wide=True)]
        write_page(path, page("Comparison of runs", parts))
    return path


def refuse_ending(path: Path) -> None:
    """Complain of a path that is neither a page nor a picture.

    Raises:
        ValueError: it is neither.
    """
    if path.suffix not in (".html", ".png"):
        raise ValueError(f"a comparison is a .html or a .png file, got {str(path)!r}")


def band(series: Sequence[Series]) -> tuple[Series, tuple[list[float], list[float]]]:
    """Mean of some series, with the lowest and the highest, at the steps that all of them have."""
    tables = [dict(zip(s.steps, s.values, strict=True)) for s in series]
    steps = sorted(set.intersection(*(set(table) for table in tables)))
    columns = [[table[step] for table in tables] for step in steps]
    means = Series(steps, [sum(column) / len(column) for column in columns])
    return means, ([min(column) for column in columns], [max(column) for column in columns])


_IN_PICTURE = (
    "held_out/pass*",
    "reward",
    "reward/*",
    "zero_variance",
    "kl",
    "entropy",
    "clip_fraction",
    "tokens/reply",
    "grad_norm",
    "tokens/s",
)
_Picture = tuple[Panel, list[Curve]]


def _pictures(settings: Sequence[Setting]) -> tuple[list[_Picture], list[_Picture]]:
    """One for each number, since colours tell the settings: the usual numbers, and the others."""
    names = dict.fromkeys(name for s in settings for run in s.runs for name in run.names)
    usual: list[_Picture] = []
    others: list[_Picture] = []
    for panel, mine in panels(list(names)):
        for name in mine:
            alone = len(mine) == 1 and "*" not in panel.names[0]
            title = panel.title if alone else name
            single = replace(panel, title=title, names=(name,), stacked=False)
            curves = [c for i, setting in enumerate(settings) for c in _curves(setting, name, i)]
            (usual if is_known(panel) else others).append((single, curves))
    return usual, others


def _chosen(pictures: Sequence[_Picture]) -> list[_Picture]:
    """What a single picture has room for."""
    return [
        (panel, curves)
        for panel, curves in pictures
        if any(fnmatchcase(panel.names[0], pattern) for pattern in _IN_PICTURE)
    ]


def _curves(setting: Setting, name: str, colour: int) -> list[Curve]:
    runs = [run for run in setting.runs if name in run.names]
    if not runs:
        return []
    found = [drawn(run, name) for run in runs]
    points = is_sparse(runs[0].series(name), runs[0].steps)
    if len(found) == 1:
        return [Curve(setting.label, found[0], colour, points=points)]
    means, edges = band(found)
    label = f"{setting.label} ({len(found)} seeds)"
    curves = [Curve(label, means, colour, points=points, band=edges)] if means.steps else []
    end = means.steps[-1] if means.steps else -1
    for series in found:
        rest = [(s, v) for s, v in zip(series.steps, series.values, strict=True) if s >= end]
        if len(rest) > 1:
            tail = Series([s for s, _ in rest], [v for _, v in rest])
            curves.append(Curve("" if curves else label, tail, colour, faint=True))
    return curves
