"""Statistics of verdicts, with confidence intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence


def pass_at_k(n: int, correct: int, k: int) -> float:
    """Return the probability that k of n samples, drawn without replacement, include a correct one.

    The unbiased estimator of Chen et al. 2021 (arXiv:2107.03374), equation 1:
    ``1 - C(n - c, k) / C(n, k)``.

    Args:
        n: samples of one task.
        correct: how many of them are correct.
        k: how many are drawn, at most n.

    Raises:
        ValueError: not ``0 <= correct <= n`` or not ``1 <= k <= n``.
    """
    if not (0 <= correct <= n and 1 <= k <= n):
        raise ValueError(f"expected correct and k within n, got n={n}, correct={correct}, k={k}")
    return 1.0 - math.comb(n - correct, k) / math.comb(n, k)


def wilson_interval(correct: float, n: int, z: float = 1.959964) -> tuple[float, float]:
    """Return a confidence interval for a share, 95 % by default (Wilson 1927, equation 7).

    It stays inside [0, 1], and is not empty if all or none are correct.

    Raises:
        ValueError: not ``0 <= correct <= n`` with n at least 1.
    """
    if n < 1 or not 0 <= correct <= n:
        raise ValueError(f"expected 0 <= correct <= n and n >= 1, got {correct} and {n}")
    p = correct / n
    centre = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    return max(0.0, centre - half), min(1.0, centre + half)


def clustered_interval(task_means: Sequence[float], z: float = 1.959964) -> tuple[float, float]:
    """Return a confidence interval for the mean over tasks with several samples each.

    Samples of one task are alike, so tasks, not samples, are what is counted: mean plus or
    minus z times the standard error of the task means, cut to [0, 1]. If all tasks have the
    same mean, it is Wilson's interval over tasks.

    Raises:
        ValueError: there are fewer than two tasks.
    """
    n = len(task_means)
    if n < 2:
        raise ValueError(f"an interval over tasks needs at least two, got {n}")
    mean = sum(task_means) / n
    if min(task_means) == max(
        task_means
    ):  # all right, or all wrong: no spread to go by, and yet no certainty
        return wilson_interval(task_means[0] * n, n, z)
    variance = sum((m - mean) ** 2 for m in task_means) / (n - 1)
    half = z * math.sqrt(variance / n)
    return max(0.0, mean - half), min(1.0, mean + half)
