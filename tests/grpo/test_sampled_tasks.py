"""A curriculum in the learner: what it chose is chosen again when a run is resumed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from assay.envs import FunctionPolicy, Prioritised, Refill, Rows, TargetRate, Task, TextEnv
from assay.grpo import CheckpointError, GRPOConfig, Learner, list_checkpoints, load_model
from assay.grpo.tasks import SampledTasks
from assay.verifiers import FunctionVerifier

torch.set_num_threads(1)
CONFIG: dict[str, Any] = {
    "prompts_per_step": 4,
    "group_size": 4,
    "max_new_tokens": 1,
    "learning_rate": 3e-3,
}


def puzzles() -> TextEnv:
    """Twelve tasks: a reply that begins with a digit up to the task's own is right."""
    tasks = [Task(f"{i}?", str(i), id=str(i)) for i in range(12)]
    return TextEnv(
        Rows(tasks),
        FunctionVerifier(lambda reply, gold: reply[:1].isdigit() and int(reply[0]) <= int(gold)),
    )


class Noted(SampledTasks):
    """It writes down which tasks each step had."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.seen: dict[int, list[str]] = {}

    def __call__(self, policy: Any, step: int) -> Any:
        found = super().__call__(policy, step)
        self.seen[step] = [group.task.id for group in found]
        return found


def train(
    model_dir: Path, out: Path, steps: int, *, resume: bool = False, refill: bool = False
) -> Noted:
    model, tokenizer = load_model(model_dir)
    config, env = GRPOConfig(steps=steps, **CONFIG), puzzles()
    tasks = Noted(env, config, TargetRate(env.source, target=0.3, seed=5))
    rollout = Refill(tasks, config.prompts_per_step, attempts=2) if refill else tasks
    Learner(model, tokenizer, rollout, config, out, resume=resume).train()
    return tasks


def test_it_is_resumed_inside_of_what_plays_more_tasks(model_dir: Path, tmp_path: Path) -> None:
    whole = train(model_dir, tmp_path / "whole", 5, refill=True)
    train(model_dir, tmp_path / "halves", 2, refill=True)
    rest = train(model_dir, tmp_path / "halves", 5, resume=True, refill=True)
    assert rest.seen == {step: tasks for step, tasks in whole.seen.items() if step > 4}
    assert rest.seen
    plain = Refill(lambda policy, step: [], 1)
    plain.load_state_dict(plain.state_dict(3))
    with pytest.raises(ValueError, match="the wrapped rollout keeps none"):
        plain.load_state_dict(whole.state_dict(10))


def test_a_resumed_run_trains_on_the_tasks_of_the_unbroken_one(
    model_dir: Path, tmp_path: Path
) -> None:
    whole = train(model_dir, tmp_path / "whole", 7)
    train(model_dir, tmp_path / "halves", 3)
    kept = list_checkpoints(tmp_path / "halves" / "checkpoints")[-1]
    rates = json.loads((kept / "tasks.json").read_text())["rates"]["tasks"]
    assert {t for step in (1, 2, 3) for t in whole.seen[step]} == set(rates)
    rest = train(model_dir, tmp_path / "halves", 7, resume=True)
    assert rest.seen == {step: whole.seen[step] for step in range(4, 8)}
    assert rest.state_dict(7) == whole.state_dict(7)


def test_a_run_without_a_sampler_is_not_resumed_with_one(
    model_dir: Path, digits: Any, tmp_path: Path
) -> None:
    model, tokenizer = load_model(model_dir)
    Learner(model, tokenizer, digits(4, 4), GRPOConfig(steps=1, **CONFIG), tmp_path).train()
    with pytest.raises(CheckpointError, match="keeps no state of its tasks"):
        train(model_dir, tmp_path, 2, resume=True)


def test_a_step_that_was_broken_off_is_not_counted() -> None:
    env, right = puzzles(), FunctionPolicy(lambda messages: "0")
    tasks = SampledTasks(env, GRPOConfig(**CONFIG), Prioritised(env.source))
    first = tasks(right, 1)
    at_one = tasks.state_dict(1)
    assert sum(p + f for p, f in at_one["rates"]["tasks"].values()) == 16
    tasks(right, 2)  # its updates fail: the learner saves what there was after step 1
    assert tasks.state_dict(1) == at_one
    again = SampledTasks(env, GRPOConfig(**CONFIG), Prioritised(env.source))
    again.load_state_dict(at_one)
    assert [g.task.id for g in again(right, 2)] == [g.task.id for g in tasks(right, 2)]
    assert [g.task.id for g in first] != [g.task.id for g in again(right, 3)]
