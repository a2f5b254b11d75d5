"""Settings are checked where they are given."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest

from assay.grpo import GRPOConfig


def test_a_group_of_one_is_refused_with_the_reason() -> None:
    with pytest.raises(ValueError, match=r"group_size must be at least 2, got 1: .*others"):
        GRPOConfig(group_size=1)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("steps", -1),
        ("prompts_per_step", 0),
        ("learning_rate", 0.0),
        ("schedule", "step"),
        ("max_rollout_s", -1.0),
        ("clip", 1.5),
        ("clip_high", 0.0),
        ("beta", -0.1),
        ("num_iterations", 0),
        ("minibatches", 65),
        ("loss", "ppo"),
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
    ],
)
def test_a_setting_of_another_type_is_named(setting: Any, reason: str) -> None:
    with pytest.raises(TypeError, match=reason):
        GRPOConfig(**setting)


def test_whole_numbers_of_any_kind_are_taken() -> None:
    config = GRPOConfig(group_size=np.int64(4), temperature=1, beta=np.float32(0.5))
    assert (config.group_size, config.temperature) == (4, 1)
