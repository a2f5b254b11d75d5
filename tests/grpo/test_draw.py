"""What temperature, top_k, min_p and top_p leave of a distribution."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.grpo.draw import Distribution

torch.set_num_threads(1)
P = torch.tensor([0.2, 0.5, 0.3])


def shares(distribution: Distribution, p: torch.Tensor = P, n: int = 800) -> list[float]:
    """How often evenly spaced chances hit each token, which must be what its log-prob says."""
    chances = (torch.arange(n, dtype=torch.float64) + 0.5) / n
    tokens, logprobs = distribution.draw(p.log().expand(n, len(p)), chances)
    found = tokens.bincount(minlength=len(p)) / n
    assert torch.allclose(logprobs.exp(), found[tokens], atol=2 / n)
    return [round(x, 4) for x in found.tolist()]


@pytest.mark.parametrize(
    ("setting", "wanted"),
    [
        ({}, [0.2, 0.5, 0.3]),
        ({"top_k": 2}, [0.0, 0.625, 0.375]),
        ({"top_k": 1}, [0.0, 1.0, 0.0]),
        ({"top_k": 7}, [0.2, 0.5, 0.3]),
        ({"min_p": 0.5}, [0.0, 0.625, 0.375]),  # at least 0.5 * 0.5
        ({"min_p": 0.7}, [0.0, 1.0, 0.0]),
        ({"top_p": 0.7}, [0.0, 0.625, 0.375]),
        ({"top_p": 0.4}, [0.0, 1.0, 0.0]),
        ({"top_k": 2, "top_p": 0.6}, [0.0, 1.0, 0.0]),  # top_p of 0.625 and 0.375
        ({"temperature": 0.5}, [0.105, 0.6575, 0.2375]),  # squares, over 0.38
    ],
)
def test_cuts(setting: dict[str, Any], wanted: list[float]) -> None:
    assert shares(Distribution(**setting)) == pytest.approx(wanted, abs=2 / 800)


def test_tokens_of_equal_rank_are_kept_together() -> None:
    p = torch.tensor([0.25, 0.25, 0.4, 0.1])
    wanted = [25 / 90, 25 / 90, 40 / 90, 0.0]
    assert shares(Distribution(top_k=2), p, 900) == pytest.approx(wanted, abs=2e-3)


@settings(deadline=None, derandomize=True, max_examples=60)
@given(st.integers(1, 700), st.integers(0, 2**32 - 1), st.sampled_from([1.0, 30.0]))
def test_it_inverts_the_cumulative_distribution(v: int, seed: int, spread: float) -> None:
    """By blocks of tokens as by all of them, also where most are impossible."""
    generator = torch.Generator().manual_seed(seed)
    logits = spread * torch.randn(8, v, generator=generator)
    logits[:, 1::3] = -torch.inf
    chances = torch.rand(8, generator=generator, dtype=torch.float64)
    chances[0] = 0.0
    tokens, logprobs = Distribution().draw(logits, chances)
    p = logits.double().softmax(-1)
    until = p.cumsum(-1).gather(1, tokens[:, None])[:, 0]
    chosen = p.gather(1, tokens[:, None])[:, 0]
    assert (chosen > 0).all()
    assert (until + 1e-6 >= chances).all()
    assert (until - chosen - 1e-6 <= chances).all()
    assert torch.allclose(logprobs.double(), chosen.log(), atol=1e-4)


def test_what_is_not_finite_is_told_apart() -> None:
    logits = torch.tensor([[0.0, 1.0], [float("nan"), 0.0], [float("inf"), 0.0]])
    for temperature in (0.0, 1.0):
        tokens, _ = Distribution(temperature=temperature).draw(logits, torch.zeros(3).double())
        assert (tokens < 0).tolist() == [False, True, True]
