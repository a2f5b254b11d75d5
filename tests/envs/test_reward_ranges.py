"""Environments whose rewards are not in [0, 1]: what is paid, logged, filtered and stored."""

import json
from typing import Any

import pytest

from assay.adapters.openrlhf import openrlhf_reward
from assay.adapters.verl import verl_reward
from assay.envs import (
    EpisodeGroup,
    FunctionPolicy,
    GroupRubric,
    ShortReplies,
    Task,
    TextEnv,
    register,
    rollout,
)
from assay.envs.contract import check
from assay.envs.datasets.source import Rows
from assay.envs.filters import flat
from assay.envs.scoring import Scored
from assay.envs.trl.portable import Portable
from assay.envs.trl.reward import EnvironmentReward
from assay.verifiers import Rubric, Status, Verdict


def signed(reply: str, reference: Any) -> float:
    """1 for the answer, -1 for another one, -0.5 for none."""
    return -0.5 if not reply.strip() else 1.0 if reply.strip() == reference else -1.0


def environment(**options: Any) -> TextEnv:
    tasks = [
        Task(f"Say {word}.", reference=word, id=f"say-{word}", solution=word) for word in "abcd"
    ]
    options = {"ranges": {"signed": (-1, 1)}, **options}
    return TextEnv(Rows(tasks), Rubric({"signed": signed}, **options), name="t/Signed-v0")


def played(env: TextEnv, *said: str) -> EpisodeGroup:
    replies = iter(said)
    (group,) = rollout(env, FunctionPolicy(lambda _: next(replies)), 1, len(said))
    return group


def test_a_step_pays_the_score_itself() -> None:
    env = environment()
    env.reset(options={"task": 0})
    assert env.step("b")[1] == -1.0
    env.reset(options={"task": 0})
    _, reward, _, _, info = env.step("a")
    assert (reward, info["status"], info["rewards"]) == (1.0, "correct", {"signed": 1.0})


def test_episodes_keep_their_rewards_on_disk() -> None:
    group = played(environment(), "z", "a", "")
    answer = group.task.reference
    assert group.rewards == (-1.0, signed("a", answer), -0.5)
    for episode in group.episodes:
        assert type(episode).from_json(json.loads(json.dumps(episode.to_json()))) == episode
    scored = Scored(0, "say-a", "0", group.episodes[0].verdict)
    assert Scored.from_json(json.loads(json.dumps(scored.to_json()))).verdict.score == -1.0


def test_an_undeclared_reward_is_no_reward() -> None:
    group = played(environment(ranges={}), "x", "y")
    assert group.rewards == (None, None)
    assert flat(group) == "unscored"
    assert "must be in [0, 1], got -1: declare the range" in group.episodes[0].verdict.reason


def test_a_group_is_flat_by_its_outcomes_in_any_range() -> None:
    answer = played(environment(), "x").task.reference
    assert flat(played(environment(), answer, "x")) is None
    assert flat(played(environment(), answer, answer)) == "all_correct"
    assert flat(played(environment(), "x", "")) == "all_wrong"
    assert flat(played(environment(), "x", ""), "signed") is None


@pytest.mark.parametrize(("low", "high"), [(-1, 1), (0, 10), (-7, 30)])
def test_a_group_rubric_weighs_rewards_of_any_range(low, high) -> None:
    def pays(reply: str, reference: str) -> float:
        return high if reply.strip() == reference else low

    env = environment()
    env.rubric = Rubric({"r": pays}, ranges={"r": (low, high)})
    env.group_rubric = GroupRubric({"short": ShortReplies()}, weights={"short": 1.0})
    answer = played(env, "x").task.reference
    group = played(env, answer, answer + " ", "x")
    assert group.rewards == ((high + 1.0) / 2, high / 2, low / 2)


def test_trl_is_given_the_score_itself() -> None:
    register("t/SignedForTRL-v0", environment)
    logged: dict[str, float] = {}
    reward = EnvironmentReward(Portable("t/SignedForTRL-v0", {}))
    given = reward(
        completions=["a", "b", "", "zzz"], assay_task=[0, 0, 0, 0], log_metric=logged.__setitem__
    )
    assert given == [1.0, -1.0, -0.5, -1.0]
    assert logged["parts/signed"] == -1.5 / 4
    assert logged["status/correct"] == 0.25


def test_other_trainers_are_given_the_score_itself() -> None:
    pytest.importorskip("torch")
    env = environment()
    rows = verl_reward(env)(
        data_sources=["t/Signed-v0"] * 2, solution_strs=["a", "b"], ground_truths=['"a"', '"a"']
    )
    assert [(row["score"], row["acc"]) for row in rows] == [(1.0, 1.0), (-1.0, 0.0)]
    found = openrlhf_reward(env)(["Say a.b", "Say a.a"], ["Say a."] * 2, ['"a"'] * 2)
    assert found["rewards"].tolist() == [-1.0, 1.0]
    assert found["extra_logs"]["acc"].tolist() == [0.0, 1.0]


def test_the_contract_is_that_of_the_declared_range() -> None:
    check(environment())
    env = environment()
    env.rubric = Rubric({"r": lambda reply, _: 0.5}, ranges={"r": (-1, 1)})
    with pytest.raises(Exception, match="what answers nothing earns nothing"):
        check(env)


def test_a_verdict_of_any_range_keeps_status_and_score_apart() -> None:
    with pytest.raises(ValueError, match="does not go with score"):
        Verdict(Status.VERIFIER_ERROR, -1.0)
    assert Verdict(Status.TIMEOUT, -1.0).score == -1.0
