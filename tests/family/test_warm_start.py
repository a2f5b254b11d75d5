"""A warm start ends when sampled replies are right often enough."""

from typing import Any

import pytest

from assay.envs import Task
from assay.family.trainers import warm_start
from assay.grpo import ModelPolicy, evaluate


def test_warm_start_stops_at_its_target(model: Any, tokenizer: Any, digits: Any) -> None:
    tasks = [Task(f"{s}.{i}?", "", solution=str(i)) for s in range(7) for i in range(4)]
    seen: list[Any] = []
    done = warm_start(
        model,
        tokenizer,
        tasks,
        digits(20, 1),
        target=0.7,
        max_steps=200,
        check_every=10,
        batch_size=16,
        max_new_tokens=2,
        learning_rate=1e-2,
        progress=seen.append,
    )
    assert done == seen[-1]
    assert done.steps < 200
    assert done.pass_at_1 >= 0.7 > seen[0].pass_at_1
    policy = ModelPolicy(model, tokenizer, max_new_tokens=2, seed=5)
    score = evaluate(policy, digits(20, 1))
    assert score.pass_at_1 > 0.5
    assert score.truncated < 0.5  # it has learned to end, too


def test_warm_start_needs_solutions(model: Any, tokenizer: Any) -> None:
    with pytest.raises(ValueError, match="task 'x' has none"):
        warm_start(model, tokenizer, [Task("1+1=", "2", id="x")])
    with pytest.raises(ValueError, match="at least one task"):
        warm_start(model, tokenizer, [])


def test_a_target_that_is_not_reached_is_an_error(model: Any, tokenizer: Any, digits: Any) -> None:
    tasks = [Task("1.1?", "", solution="x")]  # no reply of which earns anything
    with pytest.raises(RuntimeError, match=r"a warm start of 3 steps reached a pass@1 of 0\.\d+"):
        warm_start(
            model, tokenizer, tasks, digits(20, 1), target=1.0, max_steps=3, max_new_tokens=2
        )
