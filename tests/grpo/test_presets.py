"""Presets are valid, change something each, and train."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
import torch

from assay.envs import Episode, EpisodeGroup, Refill, Span, Task
from assay.grpo import PRESETS, GRPOConfig, Learner, load_model, read_metrics
from assay.verifiers import Status, Verdict

pytestmark = pytest.mark.slow

torch.set_num_threads(1)
DEFAULTS = {f.name: f.default for f in fields(GRPOConfig)}
# What a machine of the paper's has room for; the rest is the preset's.
SMALL: dict[str, Any] = {
    "steps": 2,
    "prompts_per_step": 16,
    "group_size": 4,
    "max_new_tokens": 3,
    "learning_rate": 1e-3,
    "warmup_steps": 0,
}


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_is_valid_and_says_only_what_differs(name: str) -> None:
    preset = PRESETS[name]
    config = preset.config()
    assert preset.name == name
    assert config != GRPOConfig()
    for field, value in preset.overrides.items():
        assert getattr(config, field) == value
        assert value != DEFAULTS[field], f"{field} is {value!r} without the preset"


def test_values_are_those_of_the_papers() -> None:
    dapo, zero = PRESETS["dapo"].config(), PRESETS["r1_zero"].config()
    assert (dapo.clip, dapo.clip_high, dapo.beta, dapo.loss) == (0.2, 0.28, 0.0, "dapo")
    assert dapo.mask_truncated
    assert dapo.max_refills
    assert (1 - zero.clip, 1 + zero.upper_clip) == (0.0, 11.0)  # of its epsilon of 10: -9 and 11
    assert zero.prompts_per_step * zero.group_size == 8192
    assert zero.prompts_per_step // zero.minibatches == 32
    assert zero.reference_every * zero.minibatches == 400
    math = PRESETS["deepseek_math"].config()
    assert (math.prompts_per_step * math.group_size, math.group_size, math.beta) == (1024, 64, 0.04)
    assert PRESETS["r1"].config() == replace(zero, temperature=0.7)


def test_what_is_given_goes_before_the_preset() -> None:
    config = PRESETS["dapo"].config(clip_high=None, steps=7)
    assert (config.upper_clip, config.steps, config.mask_truncated) == (0.2, 7, True)
    with pytest.raises(ValueError, match=r"clip=0.0003 has no effect with surrogate='sapo'"):
        PRESETS["gspo"].config(surrogate="sapo", ratio="token")


def test_presets_cannot_be_changed() -> None:
    with pytest.raises(TypeError):
        PRESETS["mine"] = PRESETS["dapo"]  # type: ignore[index]  # that is the point
    with pytest.raises(AttributeError):
        PRESETS["dapo"].name = "x"  # type: ignore[misc]  # that is the point


class Letters:
    """Stands where an environment does: replies of letters earn more, by name and by turn."""

    def __init__(self, config: GRPOConfig) -> None:
        self.config = config

    def __call__(self, policy: Any, step: int) -> list[EpisodeGroup]:
        """Roll out the step's tasks."""
        size = self.config.group_size
        tasks = [Task(f"{step}.{i}?", "", id=f"{i}") for i in range(self.config.prompts_per_step)]
        replies = iter(policy([task.messages for task in tasks for _ in range(size)]))
        return [
            EpisodeGroup(t, tuple(judged(t, next(replies)) for _ in range(size))) for t in tasks
        ]


def judged(task: Task, reply: Any) -> Episode:
    text = reply.text
    parts = {"letter": float(text[:1].isalpha()), "low": sum(c < "a" for c in text) / 3}
    status = Status.CORRECT if parts["letter"] else Status.INCORRECT
    verdict = Verdict(status, sum(parts.values()) / 2, "", parts=parts)
    cut_off = text[-1:].isdigit()  # all are, at 3 tokens; but masked they would teach nothing
    spans = (Span("environment", reply.prompt_ids), Span("model", reply.ids, reply.logprobs))
    turn = {"role": "assistant", "content": text}
    return Episode(task.id, (turn,), verdict, (verdict.score,), cut_off, spans)


@pytest.fixture(scope="module")
def plain(model_dir: Path, tmp_path_factory: Any) -> list[dict[str, Any]]:
    return trained(model_dir, GRPOConfig(**SMALL), tmp_path_factory.mktemp("plain"))


def trained(model_dir: Path, config: GRPOConfig, out: Path) -> list[dict[str, Any]]:
    """What each step says that does not depend on the clock."""
    model, tokenizer = load_model(model_dir)
    rollout: Any = Letters(config)
    if config.max_refills:
        rollout = Refill(rollout, config.prompts_per_step, attempts=2)
    before = [p.clone() for p in model.parameters()]
    Learner(model, tokenizer, rollout, config, out, progress=False, trackers=()).train()
    assert any(not torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))
    names = ("loss", "grad_norm", "lr", "updates", "kl", "clip_fraction", "reward")
    rows = read_metrics(out / "metrics.jsonl")[1:]
    return [{n: row[n] for n in names if n in row} for row in rows]


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_trains_and_is_not_the_default(
    name: str, model_dir: Path, plain: Any, tmp_path: Path
) -> None:
    config = PRESETS[name].config(**SMALL)
    found = trained(model_dir, config, tmp_path)
    assert len(found) == 2
    assert found != plain
