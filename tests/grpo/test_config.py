"""Settings are checked where they are given: ranges, contradictions, what would do nothing."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, fields
from typing import Any

import numpy as np
import pytest

from assay.grpo import GRPOConfig, Objective


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("steps", -1),
        ("prompts_per_step", 0),
        ("learning_rate", 0.0),
        ("schedule", "step"),
        ("max_rollout_s", -1.0),
        ("num_iterations", 0),
        ("minibatches", 65),
        ("advantage_std", "unbiased"),
        ("temperature", 0.0),
        ("max_none_share", 1.5),
        ("tokens_per_batch", 0),
    ],
)
def test_settings_out_of_range(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"{name} must be .*got {value!r}"):
        GRPOConfig(**{name: value})


def test_settings_are_plain_json() -> None:
    config = GRPOConfig(clip_high=0.28, loss="dr_grpo")
    assert GRPOConfig(**json.loads(json.dumps(config.to_json()))) == config


def test_the_learning_rate_follows_its_schedule() -> None:
    """Linear to the first step after the last, where it would be 0; cosine along half a period."""
    steps = {"steps": 9, "warmup_steps": 2, "learning_rate": 0.8}
    rates = {
        name: [GRPOConfig(**steps, schedule=name).rate(step) for step in range(1, 11)]
        for name in ("constant", "linear", "cosine")
    }
    assert rates["constant"] == pytest.approx([0.4, *[0.8] * 9])
    assert rates["linear"] == pytest.approx([0.4, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.0])
    turned = [0.4 * (1 + math.cos(math.pi * k / 8)) for k in range(9)]
    assert rates["cosine"] == pytest.approx([0.4, *turned])


@pytest.mark.parametrize(
    ("setting", "reason"),
    [
        ({"group_size": "8"}, "group_size must be of type int, got '8'"),
        ({"group_size": True}, "group_size must be of type int, got True"),
        ({"steps": 2.5}, "steps must be of type int, got 2.5"),
        ({"learning_rate": "1e-6"}, "learning_rate must be of type float, got '1e-6'"),
        ({"keep_best": 1}, "keep_best must be of type bool, got 1"),
        ({"clip_high": "0.28"}, "clip_high must be of type float, got '0.28'"),
        ({"dual_clip": True}, "dual_clip must be of type float, got True"),
        ({"eval_temperature": "0"}, "eval_temperature must be of type float, got '0'"),
    ],
)
def test_a_setting_of_another_type_is_named(setting: Any, reason: str) -> None:
    with pytest.raises(TypeError, match=reason):
        GRPOConfig(**setting)


def test_numbers_of_any_kind_are_taken_and_plain_json() -> None:
    settings = {"group_size": np.int64(4), "beta": np.float32(0.5), "clip_high": np.float32(0.5)}
    config = GRPOConfig(**settings, temperature=1)
    assert (config.group_size, config.temperature) == (4, 1)
    assert GRPOConfig(**json.loads(json.dumps(config.to_json()))) == config


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"group_size": 1}, r"group_size must be at least 2, got 1: .*others"),
        ({"loss": "mean"}, r"loss must be one of .*, got 'mean'"),
        ({"clip": 1.5}, r"clip must be in \(0, 1\], .*, got 1.5"),
        ({"clip_high": 0.0}, "clip_high must be above 0"),
        ({"chat_template_kwargs": 5}, "chat_template_kwargs must be None or a dict of JSON values"),
        ({"chat_template_kwargs": {"tools": {1}}}, "chat_template_kwargs must be None or a dict"),
        ({"surrogate": "cispo", "clip": 0.1}, r"clip=0.1 has no effect .* use cispo_cap"),
        ({"surrogate": "sapo", "clip_high": 0.3}, "clip_high=0.3 has no effect"),
        ({"cispo_cap": 4.0}, r"cispo_cap=4.0 has no effect .* set surrogate='cispo'"),
        ({"surrogate": "cispo", "cispo_cap": 0.28}, "cispo_cap must be at least 1"),
        ({"sapo_temperature": 2.0}, "sapo_temperature=2.0 has no effect"),
        ({"surrogate": "gmpo", "ratio": "sequence"}, "leave ratio='token'"),
        ({"surrogate": "gmpo", "dual_clip": 3.0}, "dual_clip=3.0 has no effect"),
        ({"dual_clip": 1.25, "clip_high": 0.28}, r"above 1 \+ clip_high \(1.28\), got 1.25"),
        ({"beta": -0.1}, "beta must be at least 0"),
        ({"kl": "k2"}, "kl='k2' has no effect with beta=0"),
        ({"kl_in": "reward"}, "kl_in='reward' has no effect with beta=0"),
        ({"kl_correction": True}, "kl_correction=True has no effect with beta=0"),
        ({"beta": 0.1, "kl": "k1"}, "gradient of mean zero"),
        ({"beta": 0.1, "kl_in": "reward", "kl_correction": True}, "leave kl_correction=False"),
        ({"beta": 0.1, "kl_in": "reward", "advantage": "gdpo"}, "set kl_in='loss'"),
        ({"beta": 0.1, "kl_in": "reward", "advantage": "maxrl"}, "makes rewards negative"),
        ({"entropy_bonus": -1.0}, "entropy_bonus must be at least 0"),
        ({"top_entropy": 0.0}, r"top_entropy must be in \(0, 1\]"),
        ({"correction_cap": 2.0}, "correction_cap=2.0 has no effect"),
        ({"correction": "token_mask", "correction_cap": 0.5}, "correction_cap must be at least 1"),
        ({"advantage": "leave_one_out", "advantage_std": "batch"}, "advantage_std='batch' has no"),
        ({"advantage": "gdpo", "advantage_std": "none"}, "advantage_std must be one of"),
        ({"reward_weights": {"a": 1.0}}, "or weigh the rewards in the environment"),
        ({"advantage": "gdpo", "reward_weights": {"a": math.nan}}, "a finite number for each name"),
        ({"advantage": "gdpo", "reward_weights": [1.0]}, "a finite number for each name"),
        ({"hard_weight": 0.0}, "hard_weight must be above 0"),
        ({"hard_weight": 2.0, "easy_weight": 2.0}, "easy_weight must be 1 where hard_weight is"),
        ({"difficulty_slope": 5.0}, "difficulty_slope=5.0 has no effect with hard_weight=easy_we"),
        ({"easy_weight": 0.4, "difficulty_middle": 2.0}, r"difficulty_middle must be in \[0, 1\]"),
        ({"easy_weight": 0.4, "advantage": "process"}, "advantage='process' compares steps"),
        ({"keep_best": True}, "keep_best needs evaluations, and eval_every is 0"),
        ({"early_stop": 3}, "early_stop needs evaluations"),
        ({"reference_every": 3}, "reference_every refreshes .* beta is 0"),
        ({"rollout_chunks": 65}, r"at most prompts_per_step \(64\), got 65"),
        ({"eval_temperature": 0.0, "eval_samples": 4}, "the same one each time"),
        ({"eval_temperature": -1.0}, r"eval_temperature must be at least 0, got -1\.0"),
    ],
)
def test_refused(options: dict[str, Any], words: str) -> None:
    """With the rule and the remedy; those of the objective by its own class too."""
    ours = {f.name for f in fields(Objective)}
    for kind in (Objective, GRPOConfig) if options.keys() <= ours else (GRPOConfig,):
        with pytest.raises(ValueError, match=words):
            kind(**options)


@pytest.mark.parametrize(
    "options",
    [
        {"ratio": "sequence", "clip": 3e-4, "clip_high": 4e-4, "loss": "grpo"},
        {"surrogate": "gmpo", "clip": 0.4, "loss": "grpo"},
        {"surrogate": "cispo", "cispo_cap": 4.0, "ratio": "sequence"},
        {"beta": 0.1, "kl": "k1", "kl_correction": True},
        {"beta": 0.1, "kl": "k1", "kl_in": "reward", "advantage": "reinforce_pp"},
        {"advantage": "gdpo", "advantage_std": "sample", "reward_weights": {"a": 2.0}},
        {"easy_weight": 0.4, "hard_weight": 1.5, "difficulty_middle": 0.5},
        {"clip_high": 0.28, "dual_clip": 3.0, "top_entropy": 0.2, "mask_truncated": True},
    ],
)
def test_accepted_and_plain_json(options: dict[str, Any]) -> None:
    objective = Objective(**options)
    assert Objective(**json.loads(json.dumps(asdict(objective)))) == objective
