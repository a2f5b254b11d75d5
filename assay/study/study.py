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


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """A claim and its test at a scale that anyone can repeat.

    Attributes:
        title: what it is called.
        source: paper and arXiv number.
        claim: what the source says, in a sentence or two.
        protocol: task, model, budget, and what is the same for all arms.
        verdict: what our numbers say of the claim, written after they were seen.
        arms: by name, each with the same budget unless the protocol says otherwise.
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
    claim: str
    protocol: str
    verdict: str
    arms: Mapping[str, Arm]
    prepare: Callable[[Trial], None] | None = None
    resumes: bool = False
    presets: Sequence[str] = ()
    xlabel: str = "step"
    columns: Sequence[str] = ()
    draw: Callable[[Any, Results], None] | None = None


def every(count: int, looks: int = 10) -> Callable[[int], bool]:
    """Say at which of ``count`` steps an arm looks at its held-out numbers: the last included."""
    stride = max(1, count // looks)
    return lambda step: step % stride == 0 or step == count
