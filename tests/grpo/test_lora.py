"""Adapters: trained alone, saved, resumed, merged, and off for the reference."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from assay.grpo import (
    Batch,
    CheckpointError,
    GRPOConfig,
    Learner,
    LoRA,
    ModelError,
    Row,
    choose_forward,
    load_model,
    merge_lora,
    sample,
)
from assay.grpo.logprobs import FORWARDS, full_forward
from assay.grpo.reference import Reference

torch.set_num_threads(1)
SMALL = LoRA(rank=2, alpha=4.0)


def batch() -> Batch:
    """Two prompts of two lengths, with replies of three."""

    def row(prompt: tuple[int, ...], *reply: int) -> Row:
        n = len(reply)
        return Row(prompt, reply, (True,) * n, (0.0,) * n, (1.0,) * n)

    first, second = (5, 6, 7), (8, 9)
    return Batch.of([[row(first, 10, 11), row(first, 12)], [row(second, 13, 14, 15)]])


def moved(model: Any) -> Any:
    """Adapters that change something: B is 0 at first."""
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for p in model.parameters():
            if p.requires_grad:
                p.copy_(0.3 * torch.randn(p.shape, generator=generator))
    return model


def logprobs(model: Any) -> torch.Tensor:
    with torch.no_grad():
        return full_forward(model, batch(), 1.0)[0]


def test_new_adapters_change_nothing_and_are_all_that_is_trained(model_dir: Path) -> None:
    """Rank 2 on 7 layers of 2 blocks: 2 x 2 x (4 x (32 + 32) + 3 x (32 + 48)) = 1984."""
    plain, _ = load_model(model_dir)
    model, _ = load_model(model_dir, lora=SMALL)
    assert not model.training
    assert torch.equal(logprobs(model), logprobs(plain))
    assert sum(p.numel() for p in model.parameters() if p.requires_grad) == 1984


@pytest.mark.parametrize("name", ["padded", "shared"])
def test_forwards_agree_and_the_frozen_weights_get_no_gradient(model_dir: Path, name: str) -> None:
    model = moved(load_model(model_dir, lora=SMALL)[0])
    found = []
    for forward in (FORWARDS[name], full_forward):
        model.zero_grad()
        values, _ = forward(model, batch(), 1.0)
        values.square().sum().backward()
        assert all(p.grad is None for p in model.parameters() if not p.requires_grad)
        found.append(torch.cat([p.grad.flatten() for p in model.parameters() if p.requires_grad]))
    assert float((found[0] - found[1]).norm() / found[1].norm()) < 1e-5


def test_the_shared_prefix_is_chosen_and_the_sampler_agrees(model_dir: Path) -> None:
    """Prompts of two lengths, so that one of them is padded in the sampler."""
    model = moved(load_model(model_dir, lora=SMALL)[0])
    name, forward = choose_forward(model)
    assert name == "shared"
    prompts = [[5, 6, 7], [5, 6, 7], [8, 9]]
    samples = sample(model, prompts, max_new_tokens=4, seed=1)
    rows = [
        Row(tuple(p), tuple(s.ids), (True,) * 4, tuple(s.logprobs), (0.0,) * 4)
        for p, s in zip(prompts, samples, strict=True)
    ]
    with torch.no_grad():
        found, _ = forward(model, Batch.of([rows[:2], rows[2:]]), 1.0)
    assert found[0].tolist() == [pytest.approx(s.logprobs, abs=1e-5) for s in samples[:2]]
    assert found[1, 0].tolist() == pytest.approx(samples[2].logprobs, abs=1e-5)


def test_merged_and_alone(model_dir: Path, tmp_path: Path) -> None:
    model = moved(load_model(model_dir, lora=SMALL)[0])
    wanted = logprobs(model)
    merged = merge_lora(model)
    assert torch.allclose(logprobs(merged), wanted, atol=1e-5)
    assert torch.equal(logprobs(model), wanted)
    merged.save_pretrained(tmp_path)
    load_model(model_dir)[1].save_pretrained(tmp_path)
    assert torch.equal(logprobs(load_model(tmp_path)[0]), logprobs(merged))
    with pytest.raises(ValueError, match="has no adapters to merge"):
        merge_lora(merged)


def run(model: Any, tokenizer: Any, digits: Any, out: Path, steps: int, **more: Any) -> Learner:
    config = GRPOConfig(
        steps=steps,
        prompts_per_step=2,
        group_size=4,
        max_new_tokens=3,
        learning_rate=1e-2,
        warmup_steps=0,
        beta=0.1,
        save_every=1,
    )
    learner = Learner(model, tokenizer, digits(2, 4), config, out, progress=False, **more)
    learner.train()
    return learner


def test_a_run_with_adapters_resumes_and_its_checkpoint_loads(
    model_dir: Path, tmp_path: Path, digits: Any
) -> None:
    def start() -> Any:
        return load_model(model_dir, lora=SMALL)

    torch.manual_seed(0)
    model, tokenizer = start()
    first = {n: p.clone() for n, p in model.named_parameters() if p.requires_grad}
    run(model, tokenizer, digits, tmp_path / "run", 1)
    again, _ = start()
    learner = run(again, tokenizer, digits, tmp_path / "run", 2, resume=True)
    assert learner.step == 2
    straight, _ = start()
    straight.load_state_dict(first, strict=False)
    run(straight, tokenizer, digits, tmp_path / "straight", 2)
    for (name, a), b in zip(again.named_parameters(), straight.parameters(), strict=True):
        assert torch.equal(a, b), name
    checkpoint = tmp_path / "run" / "checkpoints" / "step-000002"
    assert not (checkpoint / "model.safetensors").exists()
    loaded, _ = load_model(checkpoint)
    assert torch.equal(logprobs(loaded), logprobs(again))
    assert sum(p.numel() for p in loaded.parameters() if p.requires_grad) == 1984
    wider, _ = load_model(model_dir, lora=replace(SMALL, rank=3))
    with pytest.raises(CheckpointError, match="other layers or ranks"):
        run(wider, tokenizer, digits, tmp_path / "run", 3, resume=True)
    with pytest.raises(ModelError, match="holds adapters already"):
        load_model(checkpoint, lora=SMALL)


def test_adapters_without_their_base(model_dir: Path, tmp_path: Path) -> None:
    model, tokenizer = load_model(model_dir, lora=SMALL)
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    settings = tmp_path / "adapter_config.json"
    found = json.loads(settings.read_text())
    settings.write_text(json.dumps({**found, "base_model_name_or_path": "/nowhere/at/all"}))
    with pytest.raises(ModelError, match="belong to the model in '/nowhere/at/all', which is not"):
        load_model(tmp_path)
    settings.write_text("{}")
    with pytest.raises(ModelError, match="names no base model"):
        load_model(tmp_path)


def test_adapters_are_their_own_reference(model_dir: Path, tmp_path: Path) -> None:
    plain = logprobs(load_model(model_dir)[0])
    model = moved(load_model(model_dir, lora=SMALL)[0])
    changed = logprobs(model)
    reference = Reference(model)
    with reference.reading() as read:
        assert torch.equal(logprobs(read), plain)
    assert torch.equal(logprobs(model), changed)
    reference.refresh(model)
    reference.save(tmp_path)
    with torch.no_grad():
        for p in model.parameters():
            p.add_(0.1 if p.requires_grad else 0.0)
    later = logprobs(model)
    other = Reference(model)
    other.load(tmp_path)
    for kept in (reference, other):
        with kept.reading() as read:
            assert torch.equal(logprobs(read), changed)
        assert torch.equal(logprobs(model), later)


def test_a_reference_of_all_weights(model_dir: Path, tmp_path: Path) -> None:
    """Weights w, then 2 w."""
    model, _ = load_model(model_dir)
    first = [p.clone() for p in model.parameters()]
    reference = Reference(model)
    reference.save(tmp_path)
    with torch.no_grad():
        for p in model.parameters():
            p.mul_(2)
    reference.refresh(model)
    with reference.reading() as read:
        for p, q in zip(read.parameters(), first, strict=True):
            assert torch.equal(p, 2 * q)
    reference.load(tmp_path)
    with reference.reading() as read:
        assert all(torch.equal(p, q) for p, q in zip(read.parameters(), first, strict=True))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"rank": 0}, "rank must be at least 1, got 0"),
        ({"alpha": 0.0}, "alpha must be above 0"),
        ({"targets": ()}, "targets must name at least one"),
    ],
)
def test_settings_out_of_range(settings: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        LoRA(**settings)


def test_layers_that_are_not_there(model_dir: Path) -> None:
    with pytest.raises(ModelError, match=r"cannot give .* adapters: .*nothing"):
        load_model(model_dir, lora=LoRA(targets=("nothing",)))


def test_without_peft_the_remedy_is_named(model_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "peft", None)  # as if it were not installed
    with pytest.raises(ImportError, match=r"LoRA needs peft, .*: run pip install '\.\[lora\]' in"):
        load_model(model_dir, lora=LoRA())


def test_adapters_begin_by_their_own_seed(model_dir: Path) -> None:
    """Whatever was drawn before; and nothing that is drawn after depends on them."""

    def made(before: int, seed: int) -> tuple[torch.Tensor, float]:
        torch.manual_seed(before)
        model, _ = load_model(model_dir, lora=replace(SMALL, seed=seed))
        first = torch.cat([p.detach().flatten() for p in model.parameters() if p.requires_grad])
        return first, float(torch.rand(()))

    (one, drawn), (two, other), (three, _) = made(1, 0), made(2, 0), made(1, 7)
    assert torch.equal(one, two)
    assert not torch.equal(one, three)
    assert drawn != other
