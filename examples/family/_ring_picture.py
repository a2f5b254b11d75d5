"""Pictures of the ring: samples of some arms above, curves of all of them below."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from assay.family._rings import CENTRES, NEAR, PROMPTS
from assay.study import Results, band
from assay.study.picture import COLOURS, draw_curve

SPOT_COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#ff7f0e")  # one for each prompt
BY_CALLS = "accuracy by network calls"


def ring_picture(shown: Sequence[str], curves: Sequence[str]) -> Callable[[Any, Results], None]:
    """Draw a study's figure; a study's ``draw``.

    Args:
        shown: three arms, whose samples are drawn.
        curves: three names of curves; :data:`BY_CALLS` has its own x.
    """

    def draw(figure: Any, results: Results) -> None:
        figure.set_size_inches(12.5, 8.2)
        panels = figure.subplots(2, 3)
        for axes, arm in zip(panels[0], shown, strict=True):
            if arm in results:
                _samples(axes, arm, results)
        for axes, name in zip(panels[1], curves, strict=True):
            if name == BY_CALLS:
                _by_calls(axes, results)
            else:
                draw_curve(axes, results, name)
        handles, labels = panels[1][0].get_legend_handles_labels()
        if labels:
            figure.legend(handles, labels, loc="outside lower center", ncols=min(5, len(labels)))

    return draw


def _samples(axes: Any, arm: str, results: Results) -> None:
    """Plot samples of seed 0 by the ODE, coloured by prompt, and the rewarded spots."""
    from matplotlib.patches import Circle  # only here: listing studies needs no matplotlib

    for spot, centre in enumerate(CENTRES.tolist()):
        colour = SPOT_COLOURS[spot % PROMPTS]
        axes.add_patch(Circle(centre, NEAR, fill=False, ec=colour, lw=0.8, alpha=0.7))
    for prompt, points in enumerate(results[arm][0].outcome.data.get("samples", ())):
        xs, ys = zip(*points, strict=True)
        axes.plot(xs, ys, ".", ms=3, color=SPOT_COLOURS[prompt], alpha=0.7)
    axes.set(title=f"{arm}: samples", xlim=(-2.9, 2.9), ylim=(-2.9, 2.9), aspect="equal")
    axes.set(xticks=(), yticks=())


def _by_calls(axes: Any, results: Results) -> None:
    """Accuracy over network calls; each line is the mean over the seeds."""
    for i, (arm, measured) in enumerate(results.items()):
        calls, right = (
            [mean for _, mean, *_ in band(measured, name)] for name in ("million calls", "accuracy")
        )
        if calls:
            axes.plot(calls, right, color=COLOURS[i % len(COLOURS)], lw=1.6, label=arm)
    axes.set(title=BY_CALLS, xlabel="million network calls")
    axes.grid(alpha=0.25)
