"""Code World Model's setting: calls, hidden tests, hints, and what is never trained on."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from assay.envs import Completion, play
from assay.family import code_world_model as cwm
from assay.grpo import GRPOConfig, load_model, tiny_model
from assay.sandbox import Sandbox
from assay.study import Trial
from assay.verifiers import Status

pytestmark = pytest.mark.slow

TASK = cwm.task_of(3, 4, 3, 5)
RIGHT, BUGGY = cwm.line(3, 4), cwm.line(3, 5)


@pytest.fixture(scope="module")
def env() -> Iterator[cwm.OneLine]:
    with Sandbox() as box:
        yield cwm.OneLine([TASK], box)


def episode(env: cwm.OneLine, *replies: str):
    said = iter(replies)
    (group,) = play(env, lambda c: [Completion(next(said)) for _ in c], [TASK], 1)
    return group.episodes[0]


def test_a_test_shows_what_is_wanted_and_hidden_tests_decide(env: cwm.OneLine) -> None:
    done = episode(env, "t" + BUGGY, "s" + RIGHT)
    assert [m["content"] for m in done.turns] == ["t" + BUGGY, "|no 0:4 1:7|", "s" + RIGHT]
    assert done.reward == 1.0
    assert episode(env, "t" + RIGHT, "s" + RIGHT).turns[1]["content"] == "|ok 0:4 1:7|"
    assert episode(env, "s" + BUGGY).reward == 0.0


def test_a_program_that_knows_only_the_visible_tests_earns_nothing(env: cwm.OneLine) -> None:
    clever = "f=lambda x:{0:4,1:7}[x]"
    done = episode(env, "t" + clever, "s" + clever)
    assert "ok" in done.turns[1]["content"]
    assert done.reward == 0.0


def test_a_turn_without_a_call_ends_the_episode(env: cwm.OneLine) -> None:
    done = episode(env, RIGHT)
    assert (done.status, done.reward) == (Status.UNPARSEABLE, 0.0)
    three = episode(env, *["t" + RIGHT] * 3)
    assert three.truncated
    assert three.reward == 0.0


def test_no_task_is_both_trained_on_and_held_out() -> None:
    train, test = ({t.id for t in cwm.bugs(split)} for split in ("train", "test"))
    assert len(train) + len(test) == 1530
    assert not train & test


def test_a_hint_shows_one_hidden_test_and_asks_the_same() -> None:
    hinted = cwm.hinted(TASK)
    assert hinted.text == BUGGY + "?2:10"
    assert (hinted.id, hinted.reference) == (TASK.id, TASK.reference)


def test_only_the_policys_tokens_of_a_worked_episode_are_trained_on(tmp_path: Path) -> None:
    _, tokenizer = load_model(tiny_model(tmp_path, hidden_size=32, heads=2, layers=1))
    turns = [("t" + BUGGY, "|no 0:4 1:7|"), ("s" + RIGHT, "")]
    row = cwm.worked_row(tokenizer, TASK.text, turns)
    own = [token for token, mine in zip(row.reply, row.written, strict=True) if mine]
    end = tokenizer.eos_token
    assert tokenizer.decode(own) == f"t{BUGGY}{end}s{RIGHT}{end}"
    assert "|no 0:4 1:7|" in tokenizer.decode(row.reply)


def test_easy_tasks_are_left_out_and_unsolved_ones_come_with_a_hint(env: cwm.OneLine) -> None:
    config = GRPOConfig(prompts_per_step=8, group_size=2)
    seen: list[str] = []

    def policy(conversations):
        seen.extend(c[0]["content"] for c in conversations)
        return [Completion("s" + c[0]["content"].partition("?")[0]) for c in conversations]

    chosen = cwm.Chosen(env, config, choosy=True)
    chosen.tasks = [TASK, cwm.task_of(1, 1, 1, 2)]
    chosen.rates.record(chosen.tasks[1].id, 60, 0)
    chosen(policy, 1)
    assert set(seen) == {BUGGY}  # the other is solved nearly always
    seen.clear()
    chosen(policy, 2)
    assert set(seen) == {BUGGY + "?2:10"}  # nobody solved it
    chosen.rates.record(TASK.id, 1, 0)
    seen.clear()
    chosen(policy, 3)
    assert set(seen) == {BUGGY}  # somebody has


def test_arms_run(tmp_path: Path) -> None:
    torch.set_num_threads(1)
    trial = Trial(0, True, tmp_path / "run", tmp_path)
    cwm.start(trial)
    found = cwm.STUDY.arms["three turns, choosy, with hints"](trial)
    assert 1 <= found.values["turns taken"] <= 3
    assert len(found.curves["zero_variance"]) == 2
