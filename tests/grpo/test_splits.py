"""Which splits a learner trains and evaluates on, and what it refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from assay import Exact, Rubric, make
from assay.envs import Rows, Task, TextEnv, Uniform
from assay.grpo import GRPOConfig, Learner, held_out_tasks, training_tasks
from assay.grpo.tasks import splits_of

SETTINGS: dict[str, Any] = {"prompts_per_step": 2, "group_size": 2}


def rows(first: int, split: str) -> TextEnv:
    tasks = [Task(f"{n} and 1 more?", str(n + 1)) for n in range(first, first + 4)]
    return TextEnv(Rows(tasks, split), Exact())


def test_training_on_held_out_tasks_is_refused_before_the_model_is_used(tmp_path: Path) -> None:
    config = GRPOConfig(**SETTINGS)
    rollout, held_out = training_tasks(rows(1, ""), config), held_out_tasks(rows(3, ""), 4)
    with pytest.raises(ValueError, match="2 of the held-out prompts are trained on"):
        Learner(None, None, rollout, config, tmp_path / "run", held_out=held_out)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("refills", [0, 2])
@pytest.mark.parametrize("sampled", [False, True])
def test_allowed_overlap_is_counted(refills: int, sampled: bool) -> None:
    env = rows(1, "train")
    config = GRPOConfig(**SETTINGS, allow_overlap=True, max_refills=refills)
    sampler = Uniform(env.source) if sampled else None
    rollout = training_tasks(env, config, sampler)
    found = splits_of(rollout, held_out_tasks(rows(4, "test"), 4), config)
    assert found == {"train": "train", "held_out": "test", "overlap": 1}


@pytest.mark.parametrize("split", ["test", "validation", "dev"])
def test_training_on_a_split_for_evaluation_needs_a_word(split: str) -> None:
    with pytest.raises(ValueError, match="allow_test_split"):
        training_tasks(rows(1, split), GRPOConfig(**SETTINGS))
    assert training_tasks(rows(1, split), GRPOConfig(**SETTINGS, allow_test_split=True))


def test_one_split_of_a_generator_cannot_train_and_evaluate() -> None:
    config = GRPOConfig(**SETTINGS)
    rollout = training_tasks(make("assay/Arithmetic-v1"), config)
    with pytest.raises(ValueError, match="20 of the held-out prompts"):
        splits_of(rollout, held_out_tasks(make("assay/Arithmetic-v1", seed=4), 20), config)
    test = held_out_tasks(make("assay/Arithmetic-v1", split="test"), 20)
    assert splits_of(rollout, test, config)["overlap"] == 0


def test_weights_of_rewards_that_a_rubric_lacks_are_refused_before_training() -> None:
    tasks = Rows([Task("1 and 1 more?", "2")], "train")
    env = TextEnv(tasks, Rubric({"right": Exact(), "form": Exact()}))
    for names, refused in ((("form",), False), (("form", "froms"), True)):
        config = GRPOConfig(advantage="gdpo", reward_weights=dict.fromkeys(names, 1.0), **SETTINGS)
        if not refused:
            training_tasks(env, config)
            continue
        with pytest.raises(ValueError, match=r"names \['froms'\].* it gives \['form', 'right'\]"):
            training_tasks(env, config)


def test_rollouts_of_ones_own_are_taken_as_they_are() -> None:
    assert splits_of(lambda policy, step: [], None, GRPOConfig()) == {}
