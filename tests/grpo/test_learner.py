"""The loop: it learns, resumes to the bit, and stops in one piece."""

from __future__ import annotations

import os
import shutil
import signal
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from assay.grpo import (
    CheckpointError,
    GRPOConfig,
    Learner,
    ModelPolicy,
    NotFinite,
    TooManyUnscored,
    list_checkpoints,
    load_model,
    read_metrics,
)

torch.set_num_threads(1)
TIMES = ("seconds/rollout", "seconds/update", "seconds/evaluation", "tokens/s")


def config(**settings: Any) -> GRPOConfig:
    defaults: dict[str, Any] = {
        "steps": 3,
        "prompts_per_step": 4,
        "group_size": 4,
        "max_new_tokens": 2,
        "learning_rate": 3e-3,
        "warmup_steps": 2,
    }
    return GRPOConfig(**{**defaults, **settings})


def weights(model: Any) -> torch.Tensor:
    return torch.cat([p.detach().flatten() for p in model.parameters()])


def numbers(path: Path) -> list[dict[str, Any]]:
    """Metrics without the clock's."""
    rows = read_metrics(path / "metrics.jsonl")
    return [{k: v for k, v in row.items() if k not in TIMES} for row in rows]


def test_it_learns(model: Any, tokenizer: Any, digits: Any, tmp_path: Path) -> None:
    """From about one digit in ten to nearly always, in forty steps."""
    settings = config(steps=40, max_new_tokens=1, prompts_per_step=16, group_size=8, eval_every=20)
    Learner(model, tokenizer, digits(16, 8), settings, tmp_path, held_out=digits(32, 1)).train()
    rows = read_metrics(tmp_path / "metrics.jsonl")
    assert [row["step"] for row in rows] == list(range(41))
    assert rows[1]["reward"] < 0.25
    assert sum(row["reward"] for row in rows[-5:]) / 5 > 0.8
    held_out = [row["held_out/pass_at_1"] for row in rows if "held_out/pass_at_1" in row]
    assert len(held_out) == 3
    assert held_out[0] < 0.3
    assert held_out[-1] > 0.8
    # On-policy, the sampler's log-probabilities are the trainer's.
    assert all(row["ratio"] == pytest.approx(1, abs=1e-4) for row in rows[1:] if row["ratio"])
    assert rows[1]["lr"] == pytest.approx(1.5e-3)
    assert rows[2]["lr"] == rows[3]["lr"] == pytest.approx(3e-3)


def test_resume_gives_the_same_bits(model_dir: Path, digits: Any, tmp_path: Path) -> None:
    settings: dict[str, Any] = {"num_iterations": 2, "minibatches": 2, "beta": 0.05, "loss": "grpo"}

    def run(out: Path, steps: int, *, resume: bool = False) -> torch.Tensor:
        model, tokenizer = load_model(model_dir)
        Learner(
            model,
            tokenizer,
            digits(8),
            config(steps=steps, prompts_per_step=8, eval_every=2, **settings),
            out,
            held_out=digits(4, 1),
            resume=resume,
        ).train()
        return weights(model)

    straight = run(tmp_path / "straight", 6)
    half = run(tmp_path / "halves", 3)
    assert not torch.equal(half, straight)
    assert torch.equal(run(tmp_path / "halves", 6, resume=True), straight)
    wanted, found = numbers(tmp_path / "straight"), numbers(tmp_path / "halves")
    assert found[3].pop("held_out/pass_at_1") is not None  # the end of the first half is looked at
    assert [row["step"] for row in found] == list(range(7))
    assert [row.get("loss") for row in found] == [row.get("loss") for row in wanted]


def test_a_missing_reward_does_not_change_the_gradient_of_others(
    model_dir: Path, digits: Any, tmp_path: Path
) -> None:
    """A run in which the last of five has no reward equals one in which it never was."""

    class Drop(digits):  # type: ignore[misc]
        @property
        def _places(self) -> range:
            return range(self.group_size - 1)

        def __call__(self, policy: Any, step: int) -> Any:
            def four_of_five(conversations: Any) -> Any:
                found = policy(conversations)
                return [c for i, c in enumerate(found) if i % 5 != 4]

            return super().__call__(four_of_five, step)

    results = []
    for name, rollout in (("masked", digits(8, 5, none=(4,))), ("absent", Drop(8, 5))):
        model, tokenizer = load_model(model_dir)
        Learner(model, tokenizer, rollout, config(group_size=5), tmp_path / name).train()
        results.append(weights(model))
    assert torch.equal(*results)
    rows = read_metrics(tmp_path / "masked" / "metrics.jsonl")
    assert [row["masked"] for row in rows[1:]] == [8, 8, 8]
    assert not torch.equal(results[0], weights(load_model(model_dir)[0]))


def test_too_many_missing_rewards_stop_the_run(
    model: Any, tokenizer: Any, digits: Any, tmp_path: Path
) -> None:
    before = weights(model)
    learner = Learner(
        model, tokenizer, digits(none=(0, 1, 2)), config(max_none_share=0.5), tmp_path
    )
    with pytest.raises(
        TooManyUnscored, match=r"step 1: 12 of 16 .* 0\.5 .*sandbox_error: the sandbox went away"
    ):
        learner.train()
    assert torch.equal(weights(model), before)


def test_a_gradient_that_is_not_finite_stops_the_run(
    model: Any, tokenizer: Any, digits: Any, tmp_path: Path
) -> None:
    """Log-probabilities that no model gave. The weights stay as they were."""

    class Wrong(digits):  # type: ignore[misc]
        def __call__(self, policy: Any, step: int) -> Any:
            def odd(conversations: Any) -> Any:
                nan = float("nan")
                return [replace(c, logprobs=(nan,) * len(c.ids)) for c in policy(conversations)]

            return super().__call__(odd if step == 2 else policy, step)

    settings = config(max_new_tokens=1)
    learner = Learner(model, tokenizer, Wrong(16, 8), settings, tmp_path)
    with pytest.raises(NotFinite, match=r"step 2: .*lower learning_rate"):
        learner.train()
    kept = list_checkpoints(tmp_path / "checkpoints")
    assert [p.name for p in kept] == ["step-000001"]
    assert torch.equal(weights(load_model(kept[0])[0]), weights(model))
    assert weights(model).isfinite().all()


def test_ctrl_c_leaves_a_whole_checkpoint(model_dir: Path, digits: Any, tmp_path: Path) -> None:
    """A real SIGINT while step 2 rolls out, which is dropped; test_stops.py: in an update."""
    model, tokenizer = load_model(model_dir)

    class Interrupting(digits):  # type: ignore[misc]
        def __call__(self, policy: Any, step: int) -> Any:
            if step == 2:
                os.kill(os.getpid(), signal.SIGINT)
            return super().__call__(policy, step)

    learner = Learner(model, tokenizer, Interrupting(8), config(), tmp_path / "run")
    with pytest.raises(KeyboardInterrupt):
        learner.train()
    kept = list_checkpoints(tmp_path / "run" / "checkpoints")
    assert [p.name for p in kept] == ["step-000001"]
    assert [row["step"] for row in numbers(tmp_path / "run")] == [0, 1]

    def finish(out: Path, *, resume: bool) -> torch.Tensor:
        again, tokenizer = load_model(model_dir)
        Learner(again, tokenizer, digits(8), config(), out, resume=resume).train()
        return weights(again)

    resumed = finish(tmp_path / "run", resume=True)
    assert torch.equal(resumed, finish(tmp_path / "straight", resume=False))


def test_a_checkpoint_is_a_model_directory(
    model: Any, tokenizer: Any, digits: Any, tmp_path: Path
) -> None:
    settings = config(steps=4, save_every=1, keep_checkpoints=2)
    Learner(model, tokenizer, digits(), settings, tmp_path).train()
    kept = list_checkpoints(tmp_path / "checkpoints")
    assert [p.name for p in kept] == ["step-000003", "step-000004"]
    assert sorted(p.name for p in (tmp_path / "checkpoints").iterdir()) == [p.name for p in kept]
    loaded, its_tokenizer = load_model(kept[-1])
    assert torch.equal(weights(loaded), weights(model))
    answer = ModelPolicy(loaded, its_tokenizer, max_new_tokens=2)
    assert answer([[{"role": "user", "content": "1+1="}]])[0].ids


def test_runs_are_not_mixed(model: Any, tokenizer: Any, digits: Any, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="nothing to resume"):
        Learner(model, tokenizer, digits(), config(), tmp_path, resume=True)
    Learner(model, tokenizer, digits(), config(steps=1), tmp_path).train()
    with pytest.raises(CheckpointError, match="already holds a run"):
        Learner(model, tokenizer, digits(), config(), tmp_path)
    with pytest.raises(CheckpointError, match=r"other settings: \{'group_size': 4\}"):
        Learner(model, tokenizer, digits(), config(group_size=8), tmp_path, resume=True)


def test_a_refused_run_leaves_the_reference_of_the_other_alone(
    model_dir: Path, digits: Any, tmp_path: Path
) -> None:
    model, tokenizer = load_model(model_dir)
    Learner(model, tokenizer, digits(), config(steps=1, beta=0.1), tmp_path).train()
    before = (tmp_path / "reference" / "model.safetensors").read_bytes()
    with torch.no_grad():
        model.get_output_embeddings().weight.mul_(2)
    with pytest.raises(CheckpointError, match="already holds a run"):
        Learner(model, tokenizer, digits(), config(beta=0.1), tmp_path)
    assert (tmp_path / "reference" / "model.safetensors").read_bytes() == before
    with pytest.raises(CheckpointError, match="nothing to resume"):
        Learner(model, tokenizer, digits(), config(beta=0.1), tmp_path / "none", resume=True)
    assert not (tmp_path / "none").exists()


def test_a_place_that_cannot_hold_the_run_is_named_before_it_starts(
    model: Any, tokenizer: Any, digits: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match=r"cannot write to .*file.*Give another out_dir"):
        Learner(model, tokenizer, digits(), config(), tmp_path / "file")
    usage = shutil.disk_usage(tmp_path)._replace(free=100_000)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    with pytest.raises(OSError, match=r"0\.1 MiB of free disk, and checkpoints and models"):
        Learner(model, tokenizer, digits(), config(), tmp_path / "run")
    assert not list((tmp_path / "run").iterdir())

    # Three times the weights are one checkpoint; a reference and the best model are more.
    weights = sum(p.numel() * p.element_size() for p in model.parameters())
    usage = usage._replace(free=3 * weights)
    Learner(model, tokenizer, digits(), config(), tmp_path / "plain")
    for settings in (config(beta=0.1), config(keep_best=True, eval_every=1)):
        with pytest.raises(OSError, match="of free disk"):
            Learner(model, tokenizer, digits(), settings, tmp_path / "more", held_out=digits())


def test_checkpoint_of_another_model(
    model: Any, tokenizer: Any, digits: Any, tmp_path: Path
) -> None:
    from assay.grpo import tiny_model

    Learner(model, tokenizer, digits(), config(steps=1), tmp_path / "run").train()
    other, its_tokenizer = load_model(tiny_model(tmp_path / "other", hidden_size=16, layers=1))
    with pytest.raises(CheckpointError, match="no checkpoint of this model"):
        Learner(other, its_tokenizer, digits(), config(), tmp_path / "run", resume=True)


def test_the_chat_template_is_given_its_arguments(
    model: Any, tokenizer: Any, digits: Any, tmp_path: Path
) -> None:
    """In every rollout, and when the run is resumed; what would do nothing is refused."""
    switch = "{% if enable_thinking is false %}!{% endif %}"
    tokenizer = deepcopy(tokenizer)
    tokenizer.chat_template = "{% for m in messages %}{{ m.content }}{% endfor %}" + switch
    settings = config(steps=1, chat_template_kwargs={"enable_thinking": False})
    seen: list[str] = []

    class Reading(digits):  # type: ignore[misc]
        def __call__(self, policy: Any, step: int) -> Any:
            found = super().__call__(policy, step)
            spans = [e.spans[0] for g in self.groups for e in g.episodes]
            seen.extend(tokenizer.decode(span.ids) for span in spans)
            return found

    Learner(model, tokenizer, Reading(), settings, tmp_path / "run").train()
    assert set(seen) == {f"1.{i}?!" for i in range(4)}
    again = config(steps=2, chat_template_kwargs={"enable_thinking": True})
    with pytest.raises(CheckpointError, match="chat_template_kwargs"):
        Learner(model, tokenizer, Reading(), again, tmp_path / "run", resume=True)
    tokenizer.chat_template = None
    with pytest.raises(ValueError, match="the tokenizer has no chat template"):
        Learner(model, tokenizer, Reading(), settings, tmp_path / "none").train()
