"""The loss against hand-computed gradients and against a naive loop."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.grpo.arithmetic.loss import (
    average_tokens,
    clipped_surrogate,
    count,
    grpo_loss,
    k3,
    token_sums,
)

MASK = torch.tensor([[True, True], [True, False]])


def test_on_policy_gradient_is_reinforce() -> None:
    """At ratio 1 nothing is clipped: the gradient is -advantage for each reply token."""
    logprobs = torch.tensor([[-1.0, -2.0], [-3.0, -4.0]], requires_grad=True)
    grpo_loss(
        logprobs, logprobs.detach(), torch.tensor([[1.0], [-1.0]]), MASK, denominator=3
    ).backward()
    assert torch.allclose(logprobs.grad, torch.tensor([[-1.0, -1.0], [1.0, 0.0]]) / 3)


@pytest.mark.parametrize(
    ("ratio", "advantage", "gain", "slope"),
    [
        (1.5, 1.0, 1.2, 0.0),  # above the clip and wanted: no further
        (1.5, -1.0, -1.5, -1.5),  # above the clip and unwanted: back
        (0.5, 1.0, 0.5, 0.5),  # below the clip and wanted: back
        (0.5, -1.0, -0.8, 0.0),  # below the clip and unwanted: no further
        (1.1, 2.0, 2.2, 2.2),  # within
    ],
)
def test_clip(ratio: float, advantage: float, gain: float, slope: float) -> None:
    """The slope is d gain / d logprob = ratio x advantage where the clip does not bind."""
    logprobs = torch.tensor([[math.log(ratio)]], requires_grad=True)
    found = clipped_surrogate(logprobs, torch.zeros(1, 1), torch.tensor([[advantage]]))
    found.sum().backward()
    assert found.item() == pytest.approx(gain)
    assert logprobs.grad.item() == pytest.approx(slope)


def test_clip_higher_moves_only_the_upper_side() -> None:
    logprobs, old = torch.tensor([[1.25, 0.5]]).log(), torch.zeros(1, 2)
    found = clipped_surrogate(logprobs, old, torch.tensor([[1.0]]), clip=0.2, clip_high=0.28)
    assert torch.allclose(found, torch.tensor([[1.25, 0.5]]))
    low = clipped_surrogate(logprobs, old, torch.tensor([[-1.0]]), clip=0.2, clip_high=0.28)
    assert torch.allclose(low, torch.tensor([[-1.25, -0.8]]))


def test_k3_by_hand() -> None:
    """q/p = 2: 2 - ln 2 - 1. Equal policies: 0. Its gradient coefficient is 1 - q/p."""
    logprobs = torch.tensor([[math.log(0.25), math.log(0.5)]], requires_grad=True)
    found = k3(logprobs, torch.tensor([[math.log(0.5), math.log(0.5)]]))
    assert torch.allclose(found, torch.tensor([[1 - math.log(2), 0.0]]), atol=1e-6)
    found.sum().backward()
    assert torch.allclose(logprobs.grad, torch.tensor([[-1.0, 0.0]]), atol=1e-6)


def test_three_averages_by_hand() -> None:
    values = torch.tensor([[1.0, 3.0], [5.0, 99.0]])
    lengths = MASK.sum(1)
    for average, wanted in {"dapo": 9 / 3, "grpo": (2 + 5) / 2, "dr_grpo": 9 / (2 * 4)}.items():
        denominator = count(lengths, average=average, max_tokens=4)
        found = average_tokens(values, MASK, denominator=denominator, average=average)
        assert found.item() == pytest.approx(wanted), average


def test_beta_without_a_reference_is_refused() -> None:
    zeros = torch.zeros(2, 2)
    with pytest.raises(ValueError, match=r"beta=0\.1 needs reference_logprobs"):
        grpo_loss(zeros, zeros, torch.zeros(2, 1), MASK, denominator=1, beta=0.1)


def naive(
    lp: list[list[float]],
    old: list[list[float]],
    ref: list[list[float]],
    adv: list[float],
    lengths: list[int],
    average: str,
    beta: float,
    longest: int,
) -> float:
    """The published equations, token by token."""
    total = 0.0
    for i, n in enumerate(lengths):
        for t in range(n):
            r = math.exp(lp[i][t] - old[i][t])
            gain = min(r * adv[i], min(max(r, 0.8), 1.28) * adv[i])
            d = ref[i][t] - lp[i][t]
            gain -= beta * (math.exp(d) - d - 1)
            weight = {
                "dapo": 1 / max(1, sum(lengths)),
                "grpo": 1 / (max(1, n) * len(lengths)),
                "dr_grpo": 1 / (len(lengths) * longest),
            }[average]
            total -= weight * gain
    return total


@settings(deadline=None, derandomize=True, max_examples=60)
@given(
    st.lists(st.integers(0, 5), min_size=2, max_size=6),
    st.sampled_from(["dapo", "grpo", "dr_grpo"]),
    st.sampled_from([0.0, 0.04]),
    st.integers(0, 2**31),
    st.integers(1, 5),
)
def test_equals_the_naive_loop_however_it_is_cut(
    lengths: list[int], average: str, beta: float, seed: int, cut: int
) -> None:
    """Value and gradient: of the whole, and summed over two micro-batches."""
    generator = torch.Generator().manual_seed(seed)
    b, t = len(lengths), 5
    lp, old, ref = (torch.randn(b, t, generator=generator).double() * 0.5 - 2 for _ in range(3))
    adv = torch.randn(b, generator=generator).double()
    mask = torch.arange(t) < torch.tensor(lengths)[:, None]
    denominator = count(torch.tensor(lengths), average=average, max_tokens=7)
    wanted = naive(*(x.tolist() for x in (lp, old, ref, adv)), lengths, average, beta, 7)

    def loss(part: slice, x: torch.Tensor) -> torch.Tensor:
        return grpo_loss(
            x[part],
            old[part],
            adv[part, None],
            mask[part],
            denominator=denominator,
            average=average,
            clip_high=0.28,
            beta=beta,
            reference_logprobs=ref[part],
        )

    whole, parts = lp.clone().requires_grad_(), lp.clone().requires_grad_()
    total = loss(slice(None), whole)
    assert total.item() == pytest.approx(wanted, abs=1e-9)
    total.backward()
    for part in (slice(0, cut), slice(cut, None)):
        loss(part, parts).backward()
    assert torch.allclose(whole.grad, parts.grad, rtol=1e-12, atol=1e-12)
    assert whole.grad[~mask].eq(0).all()


def test_token_sums_count_what_the_clip_stops() -> None:
    ratios = torch.tensor([[1.5, 1.5, 1.0], [0.5, 1.5, 9.0]])
    mask = torch.tensor([[True, True, True], [True, True, False]])
    found = token_sums(ratios.log(), torch.zeros(2, 3), torch.tensor([[1.0], [-1.0]]), mask)
    assert found["tokens"] == 5
    assert found["clipped"] == 3  # two above with A > 0, one below with A < 0
    assert found["ratio"] == pytest.approx(1.5 + 1.5 + 1.0 + 0.5 + 1.5)
