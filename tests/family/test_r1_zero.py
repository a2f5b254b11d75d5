"""R1-Zero: the tasks, the two rules, and that what is not paid is only watched."""

from pathlib import Path

import numpy as np
import pytest
import torch

from assay.envs import Completion, play
from assay.family import r1_zero
from assay.family._worked import mean_rewards, tagged, working
from assay.grpo.loading import character_tokenizer
from assay.study import Trial

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def test_a_sum_is_worked_out_digit_by_digit() -> None:
    assert working(47, 38) == "7+8=15 4+3+1=8"
    assert working(92, 81) == "2+1=3 9+8=17"


def test_the_base_model_reads_the_format_seldom_and_every_form_is_right() -> None:
    env = r1_zero.environment("train")
    found = [env.rubric.verify(t.solution, t.reference) for t in map(env.task, range(1000))]
    assert all(verdict.parts["accuracy"] == 1.0 for verdict in found)
    share = np.mean([verdict.parts["format"] for verdict in found])
    assert share == pytest.approx(0.10, abs=3 * (0.1 * 0.9 / 1000) ** 0.5)  # 3 standard errors


@pytest.mark.parametrize(
    ("weights", "bare", "wrong"),
    [
        ({"accuracy": 1.0, "format": 1.0}, 0.5, 0.5),
        ({"accuracy": 1.0, "format": 0.0}, 1.0, 0.0),
        ({"accuracy": 0.0, "format": 1.0}, 0.0, 1.0),
    ],
)
def test_rules_weigh_the_same_and_those_without_weight_are_watched(
    weights: dict[str, float], bare: float, wrong: float
) -> None:
    rubric = r1_zero.environment("train", weights).rubric
    said = {"85": bare, tagged("7+8=15 4+3+1=8", "86"): wrong, tagged("47+38", "85"): 1.0}
    verdicts = rubric.verify_many(list(said), ["85"] * 3)
    assert [verdict.score for verdict in verdicts] == list(said.values())
    assert [tuple(verdict.parts.values()) for verdict in verdicts] == [(1, 0), (0, 1), (1, 1)]


def test_tags_are_one_token_each_and_come_back() -> None:
    tokenizer = character_tokenizer(r1_zero.THINK)
    text = tagged("7+8=15", "85") + "<thin"
    ids = tokenizer(text)["input_ids"]
    assert len(ids) == 1 + 6 + 1 + 1 + 2 + 1 + 5
    assert tokenizer.decode(ids) == text
    plain = character_tokenizer()
    assert len(tokenizer) == len(plain) + 4
    assert plain("7+8")["input_ids"] == tokenizer("7+8")["input_ids"]


@pytest.mark.parametrize("word", ["", "x", "é!", "a\rb"])
def test_words_that_are_no_token_are_refused(word: str) -> None:
    with pytest.raises(ValueError, match="words must be texts of two or more"):
        character_tokenizer(["<think>", word])


def test_every_arm_shows_both_rules_and_the_length(tmp_path: Path) -> None:
    start = tmp_path / "start"
    start.mkdir()
    r1_zero.STUDY.prepare(Trial(0, True, start, start))
    for i, arm in enumerate(r1_zero.STUDY.arms.values()):
        outcome = arm(Trial(0, True, tmp_path / str(i), start))
        assert set(outcome.curves) == {"tokens", "accuracy", "format"}
        assert [x for x, _ in outcome.curves["format"]] == [0, 1, 2]


def test_mean_rewards_of_a_rollout() -> None:
    env = r1_zero.environment("test")
    tasks = [env.task(0)]
    right = tasks[0].reference

    def policy(conversations):
        said = [right, tagged("1+1", "1")]
        return [Completion(text, ids=(1, 2, 3), logprobs=(0.0, 0.0, 0.0)) for text in said]

    groups = play(env, policy, tasks, 2)
    assert mean_rewards(groups) == {"tokens": 3.0, "accuracy": 0.5, "format": 0.5}
