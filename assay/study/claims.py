"""Decide claims: the paired difference of two arms over the seeds, with a bootstrap interval."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from .measured import Measured, Results
from .study import Claim, Study

Word = Literal["shown", "shown against", "too small to tell"]
RESAMPLES = 20_000
LEVEL = 0.99


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the seeds say of a claim.

    Attributes:
        claim: the claim.
        gains: by seed, how much better the arm is, in the direction of the claim; quotients if
            the claim is about a ratio.
        base: mean of what is compared with.
        mean: of the gains (geometric for quotients).
        low: lower end of the interval.
        high: upper end.
        word: ``shown`` if the whole interval is above the margin (or at it, unless any gain
            counts), ``shown against`` if it is below.
    """

    claim: Claim
    gains: Sequence[float]
    base: float
    mean: float
    low: float
    high: float
    word: Word


def verdicts(study: Study, results: Results) -> list[Verdict]:
    """Decide each claim of a study.

    Raises:
        ValueError: an arm or a value of a claim was not measured.
    """
    return [decide(claim, results) for claim in study.claims]


def decide(claim: Claim, results: Results) -> Verdict:
    """Decide a claim by :func:`interval` of its gains.

    Raises:
        ValueError: the arm or the value was not measured, or no seed has both.
    """
    pairs = paired_values(claim, results)
    sign = 1 if claim.higher else -1
    gains = [(a / b) ** sign if claim.ratio else sign * (a - b) for a, b in pairs]
    base = sum(b for _, b in pairs) / len(pairs)
    scale = [math.log(g) for g in gains] if claim.ratio else gains
    low, high = interval(scale)
    mean, margin = sum(scale) / len(scale), math.log(claim.margin) if claim.ratio else claim.margin
    any_gain = claim.margin == (1 if claim.ratio else 0)
    word: Word = "too small to tell"
    if low > margin or (low == margin and not any_gain):  # "by half at least" includes the half
        word = "shown"
    elif high < margin:
        word = "shown against"
    if claim.ratio:
        mean, low, high = math.exp(mean), math.exp(low), math.exp(high)
    return Verdict(claim, gains, base, mean, low, high, word)


def agreed(first: Sequence[Verdict], second: Sequence[Verdict]) -> list[Verdict]:
    """Return the first run's verdicts, open where the second run does not give the same."""
    return [
        one if one.word == other.word else replace(one, word="too small to tell")
        for one, other in zip(first, second, strict=True)
    ]


def paired_values(claim: Claim, results: Results) -> list[tuple[float, float]]:
    """Return the value of the claim's arm and what it is compared with, for each common seed."""
    ours = _by_seed(claim, claim.arm, results)
    if claim.than is None:
        theirs = {m.seed: m.outcome.curves[claim.value][0][1] for m in results[claim.arm]}
    elif isinstance(claim.than, str):
        theirs = _by_seed(claim, claim.than, results)
    else:
        theirs = dict.fromkeys(ours, claim.than)
    pairs = [(ours[seed], theirs[seed]) for seed in sorted(ours.keys() & theirs.keys())]
    if not pairs:
        raise ValueError(f"no seed was measured with both arms of the claim {claim.text!r}")
    return pairs


def interval(gains: Sequence[float], *, level: float = LEVEL) -> tuple[float, float]:
    """Return the percentile bootstrap's interval of the mean (Efron, 1979).

    Percentile intervals of few values are too narrow: at eight of them, the nominal 99 % cover
    the mean of normal values in about 95 % of cases, as Student's interval of 95 % does
    (Hesterberg, 2015, "What Teachers Should Know About the Bootstrap", section 5.3).

    Args:
        gains: by seed.
        level: nominal coverage, in (0, 1).
    """
    values = np.asarray(gains, dtype=np.float64)
    drawn = np.random.default_rng(0).integers(len(values), size=(RESAMPLES, len(values)))
    tail = (1 - level) / 2
    low, high = np.quantile(values[drawn].mean(axis=1), [tail, 1 - tail])
    return float(low), float(high)


def _by_seed(claim: Claim, arm: str, results: Results) -> dict[int, float]:
    measured: Sequence[Measured] = results.get(arm, ())
    found = {m.seed: {"CPU s": m.cpu_s, **m.outcome.values}.get(claim.value) for m in measured}
    known = {seed: value for seed, value in found.items() if value is not None and value == value}
    if not known:
        raise ValueError(f"{claim.value!r} of {arm!r} was not measured, for: {claim.text}")
    return known
