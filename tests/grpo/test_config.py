"""Settings are checked where they are given."""

from __future__ import annotations

import json
from typing import Any

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
