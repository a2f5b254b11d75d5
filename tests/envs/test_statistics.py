"""pass@k and intervals, against values worked out by hand or by brute force."""

from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.envs import clustered_interval, pass_at_k, wilson_interval


@settings(deadline=None, derandomize=True)
@given(st.data())
def test_pass_at_k_is_the_share_of_draws_with_a_correct_one(data) -> None:
    n = data.draw(st.integers(1, 8))
    correct, k = data.draw(st.integers(0, n)), data.draw(st.integers(1, n))
    draws = list(combinations([i < correct for i in range(n)], k))
    assert pass_at_k(n, correct, k) == pytest.approx(sum(map(any, draws)) / len(draws))


def test_wilson_matches_a_published_example() -> None:
    # 81 of 263: Newcombe 1998, table I.
    low, high = wilson_interval(81, 263)
    assert (round(low, 4), round(high, 4)) == (0.2553, 0.3662)


@settings(deadline=None, derandomize=True)
@given(st.integers(1, 500), st.floats(0, 1))
def test_intervals_hold_the_share_and_stay_in_bounds(n, share) -> None:
    correct = round(share * n)
    low, high = wilson_interval(correct, n)
    assert 0 <= low <= correct / n + 1e-12
    assert correct / n - 1e-12 <= high <= 1
    assert high - low > 0


def test_clusters_are_what_is_counted() -> None:
    # Means 0 and 1: mean .5, standard error .5, cut to the unit interval.
    assert clustered_interval([0.0, 1.0]) == (0.0, 1.0)
    # All alike: no spread is no certainty.
    assert clustered_interval([1.0] * 20) == wilson_interval(20, 20)
    assert clustered_interval([0.1] * 3) == wilson_interval(0.1 * 3, 3)
    # Means .4 and .6: standard deviation .1414, standard error .1.
    low, high = clustered_interval([0.4, 0.6])
    assert (round(low, 3), round(high, 3)) == (0.304, 0.696)


@pytest.mark.parametrize(
    "call",
    [
        lambda: pass_at_k(4, 5, 1),
        lambda: pass_at_k(4, 2, 5),
        lambda: wilson_interval(1, 0),
        lambda: clustered_interval([1.0]),
    ],
)
def test_impossible_counts_are_refused(call) -> None:
    with pytest.raises(ValueError, match="got"):
        call()
