"""The study of a judge trained by GRPO: its tasks, its stages, and the reward that it gives."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from assay.envs import Episode, FunctionPolicy, PolicyJudge, Task, Tournament
from assay.family.unified_reward import (
    ACCURACY,
    POLICY,
    STUDY,
    TEMPLATE,
    Gold,
    pairs,
    start,
    teach,
    verdict_and_format,
)
from assay.grpo import load_model
from assay.study import Trial
from assay.verifiers import Verdict

pytestmark = pytest.mark.slow

torch.set_num_threads(1)


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("start")
    start(Trial(seed=0, short=True, folder=folder, start=folder))
    return folder


def test_one_of_each_pair_is_right_and_the_label_says_which() -> None:
    env = pairs("train")
    for index in range(200):
        task = env.task(index)
        asked, _, rest = task.text.partition("= ")
        a, _, b = asked.partition("+")
        first, second = rest[:2], rest[3:5]
        right = {"A": first, "B": second}[task.reference]
        assert (rest[2], rest[5:]) == ("A", "B?")
        assert int(right) == int(a) + int(b)
        assert 1 <= abs(int(first) - int(second)) <= 6
        assert env.rubric.verify(task.solution or "", task.reference).score == 1.0


def test_the_reward_is_half_verdict_and_half_form() -> None:
    rubric = verdict_and_format()
    for reply, score in (
        ("<think>08A</think><answer>A</answer>", 1.0),
        ("<think>08B</think><answer>B</answer>", 0.5),
        ("<answer>A</answer>", 0.5),
        ("A", 0.0),
    ):
        assert rubric.verify(reply, "A").score == score


def test_a_judge_that_knows_agrees_with_one_that_is_told() -> None:
    def told(asked):
        text = asked[0]["content"]
        question, _, rest = text.partition("= ")
        right = sum(int(n) for n in question.split("+"))
        return f"<answer>{'A' if int(rest[:2]) == right else 'B'}</answer>"

    task = Task("3+5=", "")
    said = [
        Episode("", ({"role": "assistant", "content": text},), Verdict.wrong(""))
        for text in ("08", "07", "08", "11")
    ]
    # 08 beats 07 and 11 and ties with itself; two wrong answers tie for the one that knows.
    won = Tournament(Gold(), among="all").rewards(task, said)
    assert won == pytest.approx([2.5 / 3, 0.5 / 3, 2.5 / 3, 0.5 / 3])
    judge = PolicyJudge(FunctionPolicy(told), TEMPLATE)
    assert Tournament(judge, among="all").rewards(task, said) == pytest.approx(won)


def test_a_start_is_decided_by_its_seed(tmp_path) -> None:
    examples = [pairs("train").task(i) for i in range(8)]

    def taught(name: str, seed: int) -> torch.Tensor:
        torch.rand(1)  # whatever else has drawn before
        folder = tmp_path / name
        folder.mkdir()
        teach(Trial(seed, True, folder, folder), "judge", examples, steps=1)
        model = load_model(folder / "judge")[0]
        return torch.cat([p.detach().flatten() for p in model.parameters()])

    one = taught("one", 0)
    assert torch.equal(taught("again", 0), one)
    assert not torch.equal(taught("other", 1), one)


@pytest.mark.filterwarnings("ignore::assay.grpo.guards.TrainingAlarm")
def test_each_arm_goes_through_its_stages(begun, tmp_path) -> None:
    def played(arm: str) -> tuple[Path, list[float]]:
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        folder.mkdir()
        outcome = STUDY.arms[arm](Trial(seed=0, short=True, folder=folder, start=begun))
        assert outcome.curves[POLICY]
        assert ("judge" in outcome.values) == bool(outcome.curves[ACCURACY])
        return folder, [x for x, _ in outcome.curves[ACCURACY]]

    assert played("1: cold start")[1] == [1]
    folder, at = played("3: GRPO on its wrong verdicts")
    assert at == [1, 2, 3]
    assert played("a judge that knows")[1] == []
    # The policy is paid for comparisons alone: its rubric gives nothing, and gold is not asked.
    kept = [json.loads(x) for x in (folder / "policy/samples.jsonl").read_text().splitlines()]
    replies = [r for step in kept for group in step["groups"] for r in group["replies"]]
    assert {reply["rewards"]["rubric"] for reply in replies} == {0.0}
    paid = [r for r in replies if r["rewards"]["won"] is not None]
    assert all(r["reward"] in (None, r["rewards"]["won"] / 2) for r in paid)
