"""KL estimates, mismatch weights and entropy masks: by hand, by loops, and in expectation."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.grpo.loss import kl_estimate, mismatch_weights, penalised_rewards, top_entropy_mask

torch.set_num_threads(1)

NAN = float("nan")


def expected_gradient(estimator: Any, *, corrected: bool = False) -> torch.Tensor:
    """Over all tokens of a small vocabulary, each as often as the policy draws it."""
    z = torch.tensor([0.3, -1.0, 0.5, 2.0], dtype=torch.float64, requires_grad=True)
    q = torch.tensor([1.0, 0.2, -0.5, 0.1], dtype=torch.float64).log_softmax(0)
    lp = z.log_softmax(0)
    kl = kl_estimate(lp, q, estimator)
    kl = kl * (lp - lp.detach()).exp() if corrected else kl
    (lp.detach().exp() * kl).sum().backward()
    return z.grad


def test_estimators_have_the_gradients_that_their_table_says() -> None:
    z = torch.tensor([0.3, -1.0, 0.5, 2.0], dtype=torch.float64, requires_grad=True)
    q = torch.tensor([1.0, 0.2, -0.5, 0.1], dtype=torch.float64).log_softmax(0)
    lp = z.log_softmax(0)
    (reverse,) = torch.autograd.grad((lp.exp() * (lp - q)).sum(), z, retain_graph=True)
    (forward,) = torch.autograd.grad((q.exp() * (q - lp)).sum(), z)
    assert torch.allclose(expected_gradient("k1"), torch.zeros(4).double(), atol=1e-12)
    assert torch.allclose(expected_gradient("k2"), reverse)
    assert torch.allclose(expected_gradient("k3"), forward)
    assert torch.allclose(expected_gradient("k1", corrected=True), reverse)
    assert torch.allclose(expected_gradient("k3", corrected=True), reverse)


def test_k3_of_nearly_equal_policies_keeps_its_digits() -> None:
    """Half the square of d = 0.0001, 5e-9, where float32 knows exp(-d) to 6e-8 only."""
    k3 = kl_estimate(torch.tensor([1e-4]), torch.tensor([0.0]), "k3")
    assert k3.item() == pytest.approx(5e-9, rel=0.01)


def test_a_token_the_reference_never_says_is_pulled_back() -> None:
    """D = 30: k3's slope is 1; verl's cut at 10 would leave none. d = -30: finite, no slope."""
    lp = torch.tensor([0.0, -30.0], requires_grad=True)
    k3 = kl_estimate(lp, torch.tensor([-30.0, 0.0]), "k3")
    k3.sum().backward()
    assert k3.isfinite().all()
    assert lp.grad.tolist() == [1.0, 0.0]


def test_the_penalty_is_taken_off_the_reward() -> None:
    """Distances .5 and -.1 over two tokens, beta .1: .04 off; the last is not the policy's."""
    lp, ref = torch.tensor([[-1.0, -2.0, NAN]]), torch.tensor([[-1.5, -1.9, 0.0]])
    mask = torch.tensor([[True, True, False]])
    found = penalised_rewards(torch.tensor([1.0]), lp, ref, mask, beta=0.1)
    assert found.tolist() == pytest.approx([0.96])
    assert penalised_rewards(torch.tensor([NAN]), lp, ref, mask, beta=0.1).isnan().all()


def naive_weight(r: float, how: str, cap: float, floor: float) -> float:
    if how.endswith("truncate"):
        return min(max(r, floor), cap)
    return r if floor <= r <= cap else 0.0


@settings(deadline=None, derandomize=True)
@given(
    st.sampled_from(["token_truncate", "token_mask", "sequence_truncate", "sequence_mask"]),
    st.sampled_from([1.2, 3.0]),
    st.sampled_from([0.0, 0.5]),
    st.integers(0, 2**31),
)
def test_mismatch_weights_are_the_loop(how: Any, cap: float, floor: float, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    trainer, sampler = (torch.randn(3, 5, generator=generator).double() * 0.5 for _ in range(2))
    mask = torch.rand(3, 5, generator=generator) < 0.7
    sampler[0, 0] = NAN  # an engine that did not say
    found = mismatch_weights(trainer, sampler, mask, how, cap, floor=floor)
    for i in range(3):
        gaps = (trainer[i] - sampler[i]).tolist()
        logs = [0.0 if math.isnan(v) else v for v in gaps]
        total = sum(v for v, on in zip(logs, mask[i].tolist(), strict=True) if on)
        for t in range(5):
            r = math.exp(total if how.startswith("sequence") else logs[t])
            wanted = naive_weight(r, how, cap, floor) if mask[i, t] else 0.0
            assert found[i, t].item() == pytest.approx(wanted, rel=1e-12)


def test_no_correction_is_a_weight_of_1() -> None:
    mask = torch.tensor([[True, False]])
    found = mismatch_weights(torch.zeros(1, 2), torch.full((1, 2), NAN), mask, "none")
    assert found.tolist() == [[1.0, 0.0]]


@settings(deadline=None, derandomize=True)
@given(
    st.lists(st.integers(0, 6), min_size=1, max_size=20),
    st.sampled_from([0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 1.0]),
)
def test_top_entropy_is_the_quantile(values: list[int], share: float) -> None:
    """Equal to the threshold that interpolation gives; at least the share of tokens is in."""
    entropies = torch.tensor([*values, 99], dtype=torch.float64)
    mask = torch.tensor([True] * len(values) + [False])
    found = top_entropy_mask(entropies, mask, share)
    assert not found[-1]
    place = (len(values) - 1) * (1 - share)
    threshold = sorted(values)[math.ceil(round(place, 9))]
    assert found[:-1].tolist() == [v >= threshold for v in values]
    assert found.sum() >= math.floor(share * len(values) + 1e-9)


def test_a_share_of_none_or_more_than_all_is_refused() -> None:
    with pytest.raises(ValueError, match=r"share must be in \(0, 1\], got 0"):
        top_entropy_mask(torch.zeros(1), torch.ones(1).bool(), 0)
