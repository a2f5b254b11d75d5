"""The objective refuses what contradicts itself and what would do nothing."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import pytest

from assay.grpo.config import Objective


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"loss": "mean"}, r"loss must be one of .*, got 'mean'"),
        ({"clip": 1.5}, r"clip must be in \(0, 1\], .*, got 1.5"),
        ({"clip_high": 0.0}, "clip_high must be above 0"),
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
        ({"entropy_bonus": -1.0}, "entropy_bonus must be at least 0"),
        ({"top_entropy": 0.0}, r"top_entropy must be in \(0, 1\]"),
        ({"correction_cap": 2.0}, "correction_cap=2.0 has no effect"),
        ({"correction": "token_mask", "correction_cap": 0.5}, "correction_cap must be at least 1"),
        ({"advantage": "leave_one_out", "advantage_std": "batch"}, "advantage_std='batch' has no"),
        ({"advantage": "gdpo", "advantage_std": "none"}, "advantage_std must be one of"),
        ({"reward_weights": {"a": 1.0}}, "or weigh the rewards in the environment"),
        ({"hard_weight": 0.0}, "hard_weight must be above 0"),
        ({"hard_weight": 2.0, "easy_weight": 2.0}, "easy_weight must be 1 where hard_weight is"),
        ({"difficulty_slope": 5.0}, "difficulty_slope=5.0 has no effect with hard_weight=easy_we"),
        ({"easy_weight": 0.4, "difficulty_middle": 2.0}, r"difficulty_middle must be in \[0, 1\]"),
        ({"easy_weight": 0.4, "advantage": "process"}, "advantage='process' compares steps"),
    ],
)
def test_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Objective(**options)


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
