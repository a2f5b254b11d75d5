"""A rollout in chunks: the replies of one that is played whole, judged while others are sampled."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch

from assay.envs import Completion, Generated, Refill, Rows, State, Task, TextEnv, Turn, play
from assay.envs.rollout import play_in_chunks
from assay.grpo import (
    GRPOConfig,
    Learner,
    ModelPolicy,
    load_model,
    read_metrics,
    training_tasks,
)
from assay.grpo.tasks import chunk_sizes
from assay.verifiers import FunctionVerifier

torch.set_num_threads(1)


def exclamations(most: int = 3) -> Generated:
    return Generated(lambda rng: Task("!" * int(rng.integers(1, most + 1)), ""), name="Signs")


class Echo(TextEnv):
    """One to three turns: a task of n signs goes on until n replies are there."""

    def respond(self, state: State, reply: str) -> Turn:
        said = sum(m["role"] == "assistant" for m in state.turns) + 1
        return Turn.end() if said >= len(state.task.text) else Turn.say("?")


def echo(judge: Any) -> Echo:
    return Echo(exclamations(), FunctionVerifier(judge), max_turns=3)


def first_is_letter(reply: str, _: Any) -> bool:
    return reply[:1].isalpha()


@pytest.mark.parametrize("sizes", [[7], [3, 4], [2, 2, 3], [1] * 7])
def test_chunks_are_the_same_to_the_bit_with_threads_and_without(
    pocket: Any, sizes: list[int]
) -> None:
    """Against the same calls of the policy one after the other, nothing beside them."""
    env = echo(first_is_letter)
    tasks = [env.task(i) for i in range(7)]
    model, tokenizer = pocket("ab!?")

    def policy() -> ModelPolicy:
        return ModelPolicy(model, tokenizer, max_new_tokens=8, seed=5)

    found = play_in_chunks(env, policy(), tasks, 4, sizes=sizes)
    alone, plain = policy(), []
    states = [env.begin(task) for task in tasks for _ in range(4)]
    edges = [4 * sum(sizes[:i]) for i in range(len(sizes) + 1)]
    for _ in range(3):
        for start, end in pairwise(edges):
            going = [s for s in states[start:end] if not s.ended]
            if going:
                env.advance(
                    going, alone.extend([s.messages for s in going], [s.ids for s in going])
                )
    plain = [s.episode(v) for s, v in zip(states, env.verdicts(states), strict=True)]
    assert [e for g in found for e in g.episodes] == plain
    assert [g.task for g in found] == tasks
    assert {len(e.turns) for e in plain} >= {1, 3}
    if len(sizes) == 1:
        assert found == play(env, policy(), tasks, 4)


def test_a_batch_of_the_sampler_is_a_chunk_so_that_nothing_changes(
    model: Any, tokenizer: Any
) -> None:
    """Chunks of ``rows_per_batch`` rows are the batches that a whole rollout is sampled in."""
    env = TextEnv(exclamations(3), FunctionVerifier(first_is_letter))
    config = GRPOConfig(prompts_per_step=7, group_size=4, max_new_tokens=3, rows_per_batch=8)
    assert chunk_sizes(config, 7) == [2, 2, 2, 1]

    def policy() -> ModelPolicy:
        return ModelPolicy(model, tokenizer, max_new_tokens=3, rows_per_batch=8)

    chunked = training_tasks(env, config)(policy(), 1)
    tasks = [group.task for group in chunked]
    assert chunked == play(env, policy(), tasks, 4)


def test_sizes() -> None:
    config = GRPOConfig(prompts_per_step=7, rollout_chunks=3)
    assert chunk_sizes(config, 7) == [2, 2, 3]
    assert chunk_sizes(config, 2) == [1, 1]
    assert chunk_sizes(GRPOConfig(prompts_per_step=7), 7) == [7]


def test_the_policy_goes_on_while_a_chunk_is_judged() -> None:
    """The first chunk's verdict waits for the second chunk to be sampled: else it never ends."""
    sampled, order = threading.Event(), []

    def judge(reply: str, _: Any) -> bool:
        if reply == "first":
            assert sampled.wait(60)
        order.append(reply)
        return True

    calls = iter(["first", "second"])

    def policy(conversations: Sequence[Any]) -> list[Completion]:
        name = next(calls)
        if name == "second":
            sampled.set()
            time.sleep(0.01)
        return [Completion(name) for _ in conversations]

    env = TextEnv(exclamations(), FunctionVerifier(judge))
    groups = play_in_chunks(env, policy, [env.task(0), env.task(1)], 1, sizes=[1, 1])
    assert order == ["first", "second"]
    assert [g.rewards for g in groups] == [(1.0,), (1.0,)]


def test_what_breaks_in_a_thread_is_raised(model: Any, tokenizer: Any) -> None:
    class Broken(Echo):
        def advance(self, states: Any, replies: Any) -> None:
            raise ZeroDivisionError("the tool is broken")

    env = Broken(echo(first_is_letter).source, FunctionVerifier(first_is_letter), max_turns=3)
    tasks = [Task("!!!", "", id=str(i)) for i in range(4)]
    asked = ModelPolicy(model, tokenizer, max_new_tokens=1)
    with pytest.raises(ZeroDivisionError, match="the tool is broken"):
        play_in_chunks(env, asked, tasks, 2, sizes=[2, 2])
    with pytest.raises(ValueError, match=r"chunks of \[1, 2\] tasks do not make 4"):
        play_in_chunks(env, asked, tasks, 2, sizes=[1, 2])
    own = ("assay-answer", "assay-judge")  # a sandbox of other tests has threads as well
    assert not [t for t in threading.enumerate() if t.name.startswith(own)]


def test_refills_are_a_setting(model: Any, tokenizer: Any, tmp_path: Any) -> None:
    from assay.grpo import Learner, read_metrics

    env = TextEnv(exclamations(8), FunctionVerifier(first_is_letter))
    config = GRPOConfig(
        steps=2,
        prompts_per_step=5,
        group_size=2,
        max_new_tokens=1,
        max_refills=5,
        max_mismatch=0.01,
    )
    rollout = training_tasks(env, config)
    assert isinstance(rollout, Refill)
    Learner(model, tokenizer, rollout, config, tmp_path / "run").train()
    rows = read_metrics(tmp_path / "run" / "metrics.jsonl")[1:]
    assert [row["groups/kept"] for row in rows] == [5, 5]
    assert sum(row["groups/attempts"] for row in rows) > 2
    assert [row["zero_variance"] for row in rows] == [0.0, 0.0]
    with pytest.raises(ValueError, match="max_refills is set, and the rollout does not refill"):
        Learner(model, tokenizer, rollout.rollout, config, tmp_path / "other")


def test_tasks_with_a_long_prompt_are_left_out_and_counted(model_dir: Path, tmp_path: Path) -> None:
    """Prompts of 2 to 5 characters, a token each, and room for 3."""
    tasks = [Task("?" * (2 + i), "", id=str(i)) for i in range(4)]
    env = TextEnv(Rows(tasks), FunctionVerifier(lambda reply, gold: reply[:1].isdigit()))
    settings = {"steps": 1, "prompts_per_step": 4, "group_size": 4, "max_new_tokens": 2}
    config = GRPOConfig(**settings, max_prompt_tokens=3)
    model, tokenizer = load_model(model_dir)
    rollout = training_tasks(env, config)
    Learner(model, tokenizer, rollout, config, tmp_path).train()
    row = read_metrics(tmp_path / "metrics.jsonl")[-1]
    assert row["prompts/too_long"] == 2
    assert row["tokens/sampled"] <= 2 * 4 * 2
    for name, more, left_out in (("none", {}, 4), ("refilled", {"max_refills": 2}, 12)):
        none = GRPOConfig(**settings, max_prompt_tokens=1, **more)
        Learner(model, tokenizer, training_tasks(env, none), none, tmp_path / name).train()
        row = read_metrics(tmp_path / name / "metrics.jsonl")[-1]
        assert (row["prompts/too_long"], row["tokens/sampled"]) == (left_out, 0)
