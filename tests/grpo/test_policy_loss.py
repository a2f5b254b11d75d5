"""The loss of the family: by hand, and against a loop over tokens, value and gradient."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.grpo import Objective, policy_loss
from assay.grpo.loss import loss_denominator, merge_sums, policy_sums

torch.set_num_threads(1)

SURROGATES: list[dict[str, Any]] = [
    {},
    {"clip": 0.1, "clip_high": 0.28},
    {"dual_clip": 1.5},
    {"ratio": "sequence", "clip": 0.05},
    {"ratio": "sequence", "clip": 0.05, "dual_clip": 1.2},
    {"surrogate": "gmpo", "clip": 0.3, "clip_high": 0.4},
    {"surrogate": "cispo", "cispo_cap": 1.3, "cispo_floor": 0.7},
    {"surrogate": "cispo", "ratio": "sequence", "cispo_cap": 1.1},
    {"surrogate": "sapo"},
    {"off_policy_mask_threshold": 0.02},
    {"off_policy_mask_threshold": 0.1, "ratio": "sequence", "clip": 0.05},
    {"surrogate": "sapo", "ratio": "sequence", "sapo_temperature": 2.0},
]
PENALTIES: list[dict[str, Any]] = [
    {},
    {"beta": 0.1},
    {"beta": 0.1, "kl": "k2"},
    {"beta": 0.1, "kl": "k1", "kl_correction": True},
    {"beta": 0.1, "kl": "k3", "kl_correction": True},
    {"beta": 0.1, "kl_in": "reward"},
    {"entropy_bonus": 0.01},
]


def clip(x: float, low: float, high: float) -> float:
    return min(max(x, low), high)


def gain(o: Objective, log_r: float, log_s: float, a: float, logp: float) -> tuple[float, float]:
    """A token's gain and its derivative by log p, from the papers; log_s: mean of the reply."""
    r = math.exp(log_s if o.ratio == "sequence" else log_r)
    high = o.clip if o.clip_high is None else o.clip_high
    if o.surrogate == "gmpo":
        bound = log_r > high if a > 0 else log_r < -o.clip
        return math.exp(log_s) * a, 0.0 if bound else math.exp(log_s) * a
    if o.surrogate == "cispo":
        weight = clip(r, o.cispo_floor, o.cispo_cap)
        return weight * a * logp, weight * a
    if o.surrogate == "sapo":
        tau = o.sapo_temperature if a > 0 else o.sapo_temperature_negative
        gate = 1 / (1 + math.exp(-tau * (r - 1)))
        return 4 / tau * gate * a, 4 * gate * (1 - gate) * r * a
    if a > 0:
        return (r * a, r * a) if r < 1 + high else ((1 + high) * a, 0.0)
    if r < 1 - o.clip:
        return (1 - o.clip) * a, 0.0
    if o.dual_clip is not None and r > o.dual_clip:
        return o.dual_clip * a, 0.0
    return r * a, r * a


def penalty(o: Objective, log_r: float, d: float) -> tuple[float, float]:
    """KL of a token and its derivative by log p, with d = log p - log q."""
    kl, slope = {
        "k1": (d, 1.0),
        "k2": (d * d / 2, d),
        "k3": (math.exp(-d) - 1 + d, 1 - math.exp(-d)),
    }[o.kl]
    if o.kl_correction:
        r = math.exp(log_r)
        return r * kl, r * kl + r * slope
    return kl, slope


def naive(
    o: Objective, x: dict[str, list[list[Any]]], longest: int
) -> tuple[float, list[list[float]]]:
    """Loss and gradient by log p, one token at a time."""
    rows = range(len(x["mask"]))
    on = [[t for t, there in enumerate(x["mask"][i]) if there] for i in rows]
    total, slopes = 0.0, [[0.0] * len(row) for row in x["mask"]]
    for i in rows:
        logs = [x["lp"][i][t] - x["old"][i][t] for t in on[i]]
        if o.surrogate == "gmpo":
            high = o.clip if o.clip_high is None else o.clip_high
            signs = [x["adv"][i][t] > 0 for t in on[i]]
            logs = [
                min(v, high) if up else max(v, -o.clip) for v, up in zip(logs, signs, strict=True)
            ]
        log_s = sum(logs) / max(1, len(logs))
        limit = math.inf if o.off_policy_mask_threshold is None else o.off_policy_mask_threshold
        for t in on[i]:
            weight = {
                "dapo": 1 / max(1, sum(map(len, on))),
                "bnpo": 1 / max(1, sum(map(len, on))),
                "grpo": 1 / len(on[i]) / len(on),
                "dr_grpo": 1 / (len(on) * longest),
            }[o.loss]
            log_r = x["lp"][i][t] - x["old"][i][t]
            value, slope = gain(o, log_r, log_s, x["adv"][i][t], x["lp"][i][t])
            if x["adv"][i][t] < 0 and -log_s > limit:
                value = slope = 0.0
            if o.beta and o.kl_in == "loss":
                kl, kl_slope = penalty(o, log_r, x["lp"][i][t] - x["ref"][i][t])
                value, slope = value - o.beta * kl, slope - o.beta * kl_slope
            value += o.entropy_bonus * x["entropy"][i][t]
            total, slopes[i][t] = total - weight * value, -weight * slope
    return total, slopes


def tensors(b: int, t: int, seed: int, *, constant: bool) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    lp, old, ref = (torch.randn(b, t, generator=generator).double() * 0.3 - 2 for _ in range(3))
    adv = torch.randn(b, t, generator=generator).double()
    return {
        "lp": lp,
        "old": old,
        "ref": ref,
        "adv": adv[:, :1].expand(b, t) if constant else adv,
        "entropy": torch.rand(b, t, generator=generator).double(),
        "mask": torch.rand(b, t, generator=generator) < 0.7,
    }


def loss_of(x: dict[str, torch.Tensor], o: Objective, denominator: float) -> torch.Tensor:
    return policy_loss(
        x["lp"],
        x["old"],
        x["adv"],
        x["mask"],
        o,
        denominator=denominator,
        reference_logprobs=x["ref"],
        entropy=x["entropy"],
    )


@settings(deadline=None, derandomize=True, max_examples=150)
@given(
    st.sampled_from(SURROGATES),
    st.sampled_from(PENALTIES),
    st.sampled_from(["dapo", "grpo", "bnpo", "dr_grpo"]),
    st.integers(2, 5),
    st.integers(0, 2**31),
    st.booleans(),
)
def test_equals_the_naive_loop_however_it_is_cut(
    surrogate: dict[str, Any],
    kl: dict[str, Any],
    average: Any,
    b: int,
    seed: int,
    constant: bool,
) -> None:
    """Value and gradient: of the whole, and summed over micro-batches padded differently."""
    o = Objective(loss=average, **surrogate, **kl)
    x = tensors(b, 6, seed, constant=constant)
    x["entropy"].requires_grad_()
    denominator = loss_denominator(x["mask"].sum(1), average=average, max_tokens=9)
    value, slopes = naive(o, {k: v.tolist() for k, v in x.items()}, 9)

    whole = x["lp"].clone().requires_grad_()
    found = loss_of({**x, "lp": whole}, o, denominator)
    assert found.dtype == torch.float64
    assert found.item() == pytest.approx(value, abs=1e-12)
    found.backward()
    assert torch.allclose(
        whole.grad, torch.tensor(slopes, dtype=torch.float64), rtol=1e-10, atol=1e-12
    )

    parts = x["lp"].clone().requires_grad_()
    for part in (slice(0, 1), slice(1, None)):
        padded = {
            k: torch.nn.functional.pad(v[part], (2, 3), value=0 if k == "mask" else float("nan"))
            for k, v in {**x, "lp": parts}.items()
        }
        loss_of(padded, o, denominator).backward()
    assert torch.allclose(parts.grad, whole.grad, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("options", SURROGATES)
def test_first_update_is_reinforce(options: dict[str, Any]) -> None:
    """Where p = p_old the ratio is exactly 1, and every surrogate's gradient is -A."""
    x = tensors(3, 5, 0, constant=False)
    lp = x["old"].clone().float().requires_grad_()
    old, adv, mask = lp.detach(), x["adv"].float(), x["mask"]
    policy_loss(lp, old, adv, mask, Objective(**options), denominator=1.0).backward()
    assert torch.allclose(lp.grad, -adv.masked_fill(~mask, 0.0), rtol=1e-6, atol=0)
    sums = policy_sums(lp, old, adv, mask, Objective(**options))
    assert sums["min_ratio"] == sums["max_ratio"] == 1.0
    assert sums["ratio"] == sums["tokens"] == mask.sum()
    assert sums["clipped_low"] == sums["clipped_high"] == sums["clipped_dual"] == 0


@pytest.mark.parametrize("far", [200.0, -200.0])
@pytest.mark.parametrize("options", SURROGATES)
def test_a_ratio_out_of_all_bounds_stays_finite(far: float, options: dict[str, Any]) -> None:
    """exp(200) is infinite in float32, and infinity times 0 NaN; max_ratio shows it."""
    lp = torch.tensor([[far, -1.0]], requires_grad=True)
    old, ref, mask = torch.tensor([[0.0, -1.0]]), torch.full((1, 2), -1.0), torch.ones(1, 2).bool()
    for sign in (1.0, 0.0, -1.0):
        lp.grad = None
        o, adv = Objective(**options, beta=0.1), torch.full((1, 2), sign)
        loss = policy_loss(lp, old, adv, mask, o, denominator=2.0, reference_logprobs=ref)
        loss.backward()
        assert loss.isfinite()
        assert lp.grad.isfinite().all()
    sums = policy_sums(lp, old, adv, mask, Objective(**options))
    assert sums["max_ratio"] == (math.inf if far > 0 else 1.0)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"reference_logprobs": None}, r"beta=0\.1 needs reference_logprobs, got None"),
        ({"entropy": None}, r"entropy_bonus=0\.1 needs entropy with a gradient, got None"),
        ({"entropy": torch.zeros(2, 3)}, "got entropies without a gradient"),
        ({"advantages": torch.zeros(2)}, r"advantages must be \[B, T\] = \[2, 3\].*got \[2\]"),
        ({"mask": torch.ones(2, 3)}, r"mask must be of bool.*use mask\.bool\(\)"),
    ],
)
def test_what_is_missing_is_named(change: dict[str, Any], words: str) -> None:
    lp = torch.zeros(2, 3, requires_grad=True)
    inputs: dict[str, Any] = {
        "advantages": torch.zeros(2, 3),
        "mask": torch.ones(2, 3).bool(),
        "reference_logprobs": torch.zeros(2, 3),
        "entropy": torch.zeros(2, 3, requires_grad=True),
        **change,
    }
    o = Objective(beta=0.1, entropy_bonus=0.1)
    with pytest.raises(ValueError, match=words):
        policy_loss(lp, lp.detach(), objective=o, denominator=1.0, **inputs)


def test_sums_say_what_was_cut_and_merge() -> None:
    ratios = torch.tensor([[1.5, 1.5, 0.9], [0.5, 4.0, 9.0]])
    mask = torch.tensor([[True, True, True], [True, True, False]])
    adv = torch.tensor([[1.0], [-1.0]]).expand(2, 3)
    o = Objective(dual_clip=3.0, beta=0.1)
    zero = torch.zeros(2, 3)
    whole = policy_sums(ratios.log(), zero, adv, mask, o, reference_logprobs=zero)
    assert (whole["clipped_low"], whole["clipped_high"], whole["clipped_dual"]) == (1, 2, 1)
    far, fallen = Objective(off_policy_mask_threshold=0.1), ratios.where(ratios < 2, 0.4)
    found = policy_sums(fallen.log(), zero, adv, mask, far)
    cut = [found[f"clipped_{bound}"] for bound in ("low", "high", "dual", "off_policy")]
    assert cut == [0, 2, 0, 2]  # each token once
    assert (whole["tokens"], whole["advantage"]) == (5, 1)
    assert whole["min_ratio"] == pytest.approx(0.5)
    assert whole["max_ratio"] == pytest.approx(4.0)
    logs = [math.log(r) for r in (1.5, 1.5, 0.9, 0.5, 4.0)]
    assert whole["kl_k1"] == pytest.approx(sum(logs), abs=1e-6)
    assert whole["kl_k2"] == pytest.approx(sum(d * d / 2 for d in logs))
    assert whole["kl_k3"] == pytest.approx(sum(math.exp(-d) - 1 + d for d in logs))
    merged: dict[str, float] = {}
    for i in range(2):
        row = ratios[i : i + 1].log(), zero[:1], adv[i : i + 1], mask[i : i + 1]
        merge_sums(merged, policy_sums(*row, o, reference_logprobs=zero[:1]))
    assert merged == pytest.approx(whole)
