"""The gradient of an optimizer step does not depend on how it is computed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from assay.grpo import GRPOConfig, Row, load_model
from assay.grpo.logprobs import full_forward, read_rows, shared_forward
from assay.grpo.update import accumulate_gradient

torch.set_num_threads(1)


def rows() -> list[Row]:
    """Four prompts with replies of many lengths; the second group has no variance."""
    made = []
    for p, lengths in enumerate([(3, 5, 1), (2, 2, 4), (6, 1, 1), (2, 3, 4)]):
        for i, n in enumerate(lengths):
            advantage = 0.0 if p == 1 else (1.0, -0.5, -0.5)[i]
            ids = tuple(10 + (7 * p + 3 * i + t) % 80 for t in range(n))
            old = tuple(-4.6 - 0.1 * t for t in range(n))
            made.append(Row((5 + p,) * (p + 1), ids, (True,) * n, old, (advantage,) * n))
    return made


def gradient(
    model: Any, rows: list[Row], forward: Any = full_forward, reference: Any = None, **settings: Any
) -> torch.Tensor:
    model.zero_grad()
    config = GRPOConfig(max_new_tokens=8, **settings)
    if reference is not None:
        read = read_rows(reference, full_forward, rows, temperature=1.0, budget=1000)
        rows = [replace(r, reference=x.logprobs) for r, x in zip(rows, read, strict=True)]
    accumulate_gradient(model, forward, rows, config)
    return torch.cat([p.grad.flatten() for p in model.parameters()])


def assert_close(found: torch.Tensor, wanted: torch.Tensor) -> None:
    assert wanted.norm() > 0
    assert float((found - wanted).norm() / wanted.norm()) < 1e-6


@pytest.mark.parametrize("loss", ["dapo", "grpo", "dr_grpo"])
@pytest.mark.parametrize("beta", [0.0, 0.1])
def test_micro_batches_do_not_change_it(model: Any, model_dir: Any, loss: Any, beta: float) -> None:
    """One batch; batches of about two groups; one row each. With and without shared prefix."""
    reference = load_model(model_dir)[0] if beta else None
    with torch.no_grad():
        for p in model.parameters():
            p.add_(0.01 * torch.randn(p.shape, generator=torch.Generator().manual_seed(0)))
    settings = {"loss": loss, "beta": beta, "reference": reference}
    wanted = gradient(model, rows(), tokens_per_batch=10_000, **settings)
    for budget in (40, 1):
        for forward in (full_forward, shared_forward):
            found = gradient(model, rows(), forward, tokens_per_batch=budget, **settings)
            assert_close(found, wanted)


def test_groups_without_variance_are_skipped_exactly(model: Any) -> None:
    """Each row as its own batch, so that what is left out cannot even change a padding."""
    settings = {"tokens_per_batch": 1}
    skipped = gradient(model, rows(), **settings)
    # An advantage this small is not skipped, and its gradient is below every rounding.
    kept = [r if r.teaches else replace(r, advantages=(1e-30,) * len(r.reply)) for r in rows()]
    assert torch.equal(skipped, gradient(model, kept, **settings))


def test_skipped_rows_still_count_in_the_denominator(model: Any) -> None:
    """Tokens: 9 + 8 + 8 + 9 = 34, of which the group that is skipped has 8."""
    whole = gradient(model, rows())
    without = gradient(model, [r for r in rows() if r.teaches])
    assert_close(without, whole * 34 / 26)


def test_a_kl_penalty_pulls_on_groups_without_variance(model: Any, model_dir: Any) -> None:
    reference = load_model(model_dir)[0]
    with torch.no_grad():
        model.get_input_embeddings().weight.mul_(1.5)
    flat = [r for r in rows() if not r.teaches]
    assert gradient(model, flat, beta=0.1, reference=reference).norm() > 0
