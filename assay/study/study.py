"""What a study is: a claim, the arms that are compared, and what each arm reports."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .measured import Results

Points = Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one arm did with one seed.

    Attributes:
        values: final numbers by name: the columns of the study's table.
        curves: points (x, y) by name: a panel of the picture each.
        data: whatever else the study's own picture draws, as JSON.
    """

    values: Mapping[str, float]
    curves: Mapping[str, Points] = field(default_factory=dict)
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Trial:
    """One run of an arm.

    Attributes:
        seed: decides everything.
        short: take a few seconds, that show the mechanism and no more.
        folder: the trial's own, for models, metrics and checkpoints.
        start: what the study's ``prepare`` wrote for this seed; all arms of a seed share it.
    """

    seed: int
    short: bool
    folder: Path
    start: Path


Arm = Callable[[Trial], Outcome]


@dataclass(frozen=True, slots=True)
class Claim:
    """A statement about one value of two arms, fixed before the seeds that decide it are run.

    Attributes:
        text: a sentence that is true if the claim is shown.
        value: the name of a value of :class:`Outcome`, or ``CPU s``.
        arm: the arm that is said to be better.
        than: the arm that it is compared with, seed by seed, or a number; by default, itself before
            training: the first point of its curve of that name.
        higher: whether more of the value is better.
        ratio: compare by quotient in place of difference.
        margin: the least gain that counts: 0 for any, below 0 for "no worse than"; a factor
            (1 for any) if ``ratio``.
    """

    text: str
    value: str
    arm: str
    than: str | float | None = None
    higher: bool = True
    ratio: bool = False
    margin: float = 0.0

    def __post_init__(self) -> None:
        if self.ratio and self.margin <= 0:
            raise ValueError(f"margin of a ratio is a factor above 0, got {self.margin!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """Claims of a source and their test at a scale that anyone can repeat.

    Attributes:
        title: what it is called.
        source: paper and arXiv number.
        says: what the source says, in a sentence or two.
        equation: what it changes, in LaTeX.
        load: task, model, budget, and what is the same for all arms.
        tried: other settings that were tried, on which seeds, and what they gave.
        claims: what is tested; decided once ``seeds`` were run.
        remark: what the numbers show beside the claims.
        arms: by name, each with the same budget unless the load says otherwise.
        seeds: of each arm, enough to tell the differences that a pilot saw.
        prepare: writes what all arms of a seed begin with, such as a warm-started model, into
            ``trial.start``.
        resumes: whether arms go on from what an interrupted trial left in its folder; it is emptied
            otherwise.
        presets: names of ``assay.grpo.PRESETS`` that hold these settings.
        xlabel: of the picture's panels.
        columns: values to print, in this order; all of them if empty.
        draw: a picture of the study's own: ``(figure, results)``.
    """

    title: str
    source: str
    says: str
    equation: str
    load: str
    tried: str
    arms: Mapping[str, Arm]
    claims: Sequence[Claim]
    remark: str = ""
    seeds: int = 8
    prepare: Callable[[Trial], None] | None = None
    resumes: bool = False
    presets: Sequence[str] = ()
    xlabel: str = "step"
    columns: Sequence[str] = ()
    draw: Callable[[Any, Results], None] | None = None


def is_decided(study: Study, results: Results) -> bool:
    """Return whether every arm was run with as many seeds as the study asks for."""
    least = min((len(results.get(arm, ())) for arm in study.arms), default=0)
    return bool(study.claims) and least >= study.seeds


def every(count: int, looks: int = 10) -> Callable[[int], bool]:
    """Say at which of ``count`` steps an arm looks at its held-out numbers: the last included."""
    stride = max(1, count // looks)
    return lambda step: step % stride == 0 or step == count


def watched(
    steps: int,
    measure: Callable[[], Mapping[str, float]],
    logged: Sequence[str] = (),
    *,
    looks: int = 10,
) -> tuple[dict[str, list[tuple[float, float]]], Callable[[Mapping[str, Any]], None]]:
    """Return curves by name, and the function that adds to them, to be called with logged rows.

    Args:
        steps: of the training.
        measure: gives held-out numbers by name; asked at :func:`every` look.
        logged: numbers of the rows that become curves as well, without those of step 0.
        looks: how often to measure, beside step 0.
    """
    curves: dict[str, list[tuple[float, float]]] = {}
    look = every(steps, looks)

    def note(row: Mapping[str, Any]) -> None:
        step = row["step"]
        found = dict(measure()) if look(step) else {}
        found |= {name: row[name] for name in logged if step and name in row}
        for name, value in found.items():
            curves.setdefault(name, []).append((step, value))

    return curves, note
