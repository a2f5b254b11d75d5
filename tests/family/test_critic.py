"""Generalised advantage estimation and the critic's loss, by hand and by loops."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.family.trainers import gae, value_loss


@settings(deadline=None, derandomize=True)
@given(st.integers(0, 2**31), st.sampled_from([0.0, 0.9, 1.0]), st.sampled_from([0.0, 0.95, 1.0]))
def test_gae_is_the_sum_over_later_tokens(seed: int, gamma: float, lam: float) -> None:
    """A_t is the sum of (gamma lam)^l d_t+l over the policy's tokens, as if no others were."""
    generator = torch.Generator().manual_seed(seed)
    values, rewards = (torch.randn(3, 6, generator=generator).double() for _ in range(2))
    mask = torch.rand(3, 6, generator=generator) < 0.6
    advantages, returns = gae(rewards, values, mask, gamma=gamma, lam=lam)
    assert advantages[~mask].eq(0).all()
    assert returns[~mask].eq(0).all()
    for i in range(3):
        places = [t for t in range(6) if mask[i, t]]
        bounds = [*places[1:], 6][: len(places)]
        v = [values[i, t].item() for t in places] + [0.0]
        r = [rewards[i, t:end].sum().item() for t, end in zip(places, bounds, strict=True)]
        d = [r[n] + gamma * v[n + 1] - v[n] for n in range(len(places))]
        for n, t in enumerate(places):
            wanted = sum((gamma * lam) ** (m - n) * d[m] for m in range(n, len(places)))
            assert advantages[i, t].item() == pytest.approx(wanted, abs=1e-12)
            assert returns[i, t].item() == pytest.approx(wanted + v[n], abs=1e-12)


def test_value_loss_by_hand() -> None:
    """V moved from 0 to 1, clip .2, return 2: 1/2 (0.2 - 2)^2, no gradient; return 0: 1/2."""
    values = torch.tensor([[1.0, 1.0, 5.0]]).double().requires_grad_()
    old, returns = torch.zeros(1, 3).double(), torch.tensor([[2.0, 0.0, 0.0]]).double()
    mask = torch.tensor([[True, True, False]])
    loss = value_loss(values, old, returns, mask, denominator=2.0, clip=0.2)
    loss.backward()
    assert loss.item() == pytest.approx((1.8**2 / 2 + 0.5) / 2)
    assert torch.allclose(values.grad, torch.tensor([[0.0, 0.5, 0.0]]).double())
    free = value_loss(values, old, returns, mask, denominator=2.0, clip=None)
    assert free.item() == pytest.approx(0.5)
