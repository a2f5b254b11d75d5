"""From episodes to rows to batches."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.envs import Episode, Span
from assay.grpo import Row
from assay.grpo.batch import group_by_prompt, micro_batches, row_of
from assay.verifiers import Verdict


def episode(*spans: Span) -> Episode:
    return Episode("t", (), Verdict.correct(), spans=spans)


def test_a_turn_of_the_environment_is_masked() -> None:
    row = row_of(
        episode(
            Span("environment", (1, 2)),
            Span("model", (3, 4), (-0.5, -0.25)),
            Span("environment", (5,)),
            Span("model", (6,), (-1.0,)),
        ),
        0.5,
    )
    written, logprobs = (True, True, False, True), (-0.5, -0.25, 0.0, -1.0)
    assert row == Row((1, 2), (3, 4, 5, 6), written, logprobs, (0.5,) * 4, ends=(1, 3))
    assert row.length == 3


def test_an_episode_without_tokens_is_refused() -> None:
    with pytest.raises(ValueError, match="has none that the model wrote"):
        row_of(episode(), 0.0)
    with pytest.raises(ValueError, match="begins with the model's tokens"):
        row_of(episode(Span("model", (3,), (-0.5,))), 0.0)


def rows(sizes: list[tuple[int, int]]) -> list[Row]:
    return [
        Row((p,) * p, tuple(range(n)), (True,) * n, (float(i),) * n, (1.0,) * n)
        for i, (p, n) in enumerate(sizes)
    ]


@settings(deadline=None, derandomize=True)
@given(
    st.lists(st.tuples(st.integers(1, 6), st.integers(1, 9)), min_size=1, max_size=30),
    st.integers(1, 60),
)
def test_micro_batches_keep_every_row_and_the_budget(
    sizes: list[tuple[int, int]], budget: int
) -> None:
    made = rows(sizes)
    batches = micro_batches(group_by_prompt(made), budget=budget)
    flat = [row for batch in batches for group in batch for row in group]
    assert sorted(flat, key=lambda r: r.logprobs) == sorted(made, key=lambda r: r.logprobs)
    for batch in batches:
        for group in batch:
            assert len({row.prompt for row in group}) == 1
        s = max(len(group[0].prompt) for group in batch)
        g = max(len(group) for group in batch)
        t = max(len(row.reply) for group in batch for row in group)
        alone = len(batch) == g == 1
        assert alone or len(batch) * (s + g * t) <= budget
