"""GroupVectorEnv against Gymnasium's own SyncVectorEnv, and what groups add to it."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv
from gymnasium.wrappers.vector import RecordEpisodeStatistics
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.envs import Generated, GroupVectorEnv, Rows, State, Task, TextEnv, Turn, register
from assay.envs.vector import batched
from assay.verifiers import Exact, FunctionVerifier


def letter(rng):
    return Task(f"Say {'abc'[int(rng.integers(3))]}{int(rng.integers(10**6))}.", reference="yes")


class Chat(TextEnv):
    """Goes on until ``yes`` or ``no`` is said, three turns at most; each turn earns 0.25."""

    def __init__(self, max_turns: int = 3) -> None:
        rubric = FunctionVerifier(lambda reply, gold: reply == gold)
        super().__init__(Generated(letter, name="Chat"), rubric, max_turns=max_turns)

    def respond(self, state: State, reply: str) -> Turn:
        if reply in ("yes", "no"):
            return Turn.end(reward=0.25)
        return Turn.say(f"turn {len(state.step_rewards) + 1}", reward=0.25)


register("tests/Chat-v0", Chat)
MODES = list(AutoresetMode)


def same(ours, theirs) -> None:
    """Equal in every array and key, however deep."""
    if isinstance(theirs, dict):
        assert set(ours) == set(theirs)
        for key, value in theirs.items():
            same(ours[key], value)
    elif isinstance(theirs, tuple):
        for a, b in zip(ours, theirs, strict=True):
            same(a, b)
    elif isinstance(theirs, np.ndarray):
        assert ours.dtype == theirs.dtype
        np.testing.assert_array_equal(ours, theirs)
    else:
        assert ours == theirs


def test_infos_of_different_kinds_are_kept() -> None:
    infos = batched([{"level": 1, "form": 1.0, "x": 1}, {"level": "hard", "form": None, "x": 0.5}])
    assert infos["level"].tolist() == [1, "hard"]
    np.testing.assert_array_equal(infos["form"], [1.0, np.nan])
    assert infos["x"].tolist() == [1.0, 0.5]
    mixed = batched([{"d": {"a": 1}, "big": 10**30}, {"d": 3, "big": 1}])
    assert mixed["d"].tolist() == [{"a": 1}, 3]
    assert mixed["big"].tolist() == [10**30, 1]
    shapes = batched([{"m": np.zeros(2)}, {"m": np.zeros(3)}])
    assert [m.shape for m in shapes["m"]] == [(2,), (3,)]


@pytest.mark.parametrize("mode", MODES)
def test_without_groups_every_step_is_that_of_gymnasiums_own_vector(mode) -> None:
    theirs = SyncVectorEnv([Chat] * 5, autoreset_mode=mode)
    ours = GroupVectorEnv(Chat(), num_envs=5, autoreset_mode=mode)
    same(ours.reset(seed=7), theirs.reset(seed=7))
    says = np.random.default_rng(0)
    for _ in range(40):
        actions = tuple(str(a) for a in says.choice(["yes", "no", "well", "é"], size=5))
        mine = ours.step(actions)
        same(mine, theirs.step(actions))
        done = mine[2] | mine[3]
        assert sum(len(g.episodes) for g in ours.groups) == done.sum()
        if mode is AutoresetMode.DISABLED and done.any():
            with pytest.raises(RuntimeError, match="has ended"):
                ours.step(actions)  # theirs refuses too, with some copies stepped
            masked = [v.reset(options={"reset_mask": done.copy()}) for v in (ours, theirs)]
            same(*masked)
    theirs.close()
    ours.close()


def test_a_copy_that_is_done_waits_for_its_mates_and_is_paid_with_them() -> None:
    vector = GroupVectorEnv(Chat(), num_envs=4, group_size=2)
    first, _ = vector.reset(seed=0)
    _, rewards, terminated, truncated, infos = vector.step(["yes", "well", "yes", "no"])
    assert rewards.tolist() == [0.25, 0.25, 1.25, 0.25]
    assert terminated.tolist() == [False, False, True, True]
    assert infos["waiting"].tolist() == [True, False, False, False]
    assert infos["_status"].tolist() == [False, False, True, True]
    assert [g.task.text for g in vector.groups] == [first[2]]
    assert vector.waiting.tolist() == [True, False, True, True]

    _, infos = vector.reset(options={"reset_mask": terminated})
    assert infos["_task"].tolist() == [False, False, True, True]
    _, rewards, *_ = vector.step(["no", "well", "well", "well"])
    assert rewards.tolist() == [0.0, 0.25, 0.25, 0.25]  # the reply of who waits is ignored
    _, rewards, terminated, truncated, infos = vector.step(["no", "hm", "yes", "well"])
    assert rewards.tolist() == [1.0, 0.25, 0.25, 0.25]
    assert terminated.tolist() == [True, False, False, False]
    assert truncated.tolist() == [False, True, False, False]
    (group,) = vector.groups
    assert group.rewards == (1.0, 0.0)
    assert [len(e.step_rewards) for e in group.episodes] == [1, 3]


@settings(deadline=None, derandomize=True, max_examples=40)
@given(
    st.integers(1, 3),
    st.integers(1, 4),
    st.sampled_from(MODES),
    st.lists(st.lists(st.sampled_from(["yes", "no", "hm"]), min_size=12, max_size=12), max_size=12),
)
def test_each_copy_is_paid_what_its_episode_earned(prompts, size, mode, says) -> None:
    """Whatever is said: the copies of a group end together, and the sums are the records'."""
    count = prompts * size
    vector = GroupVectorEnv(Chat(), num_envs=count, group_size=size, autoreset_mode=mode)
    vector.reset(seed=1)
    returns = np.zeros(count)
    for actions in says:
        _, rewards, terminated, truncated, _ = vector.step(actions[:count])
        returns += rewards
        ended = (terminated | truncated).reshape(prompts, size)
        assert (ended == ended[:, :1]).all()
        assert len(vector.groups) == ended[:, 0].sum()
        for p, group in zip(np.flatnonzero(ended[:, 0]), vector.groups, strict=True):
            copies = slice(p * size, (p + 1) * size)
            earned = [sum(e.step_rewards) + e.reward for e in group.episodes]
            np.testing.assert_allclose(returns[copies], earned)
            assert [e.truncated for e in group.episodes] == truncated[copies].tolist()
            returns[copies] = 0.0
        if mode is AutoresetMode.DISABLED and ended.any():
            vector.reset(options={"reset_mask": ended.reshape(count)})


def test_a_group_draws_its_next_task_as_one() -> None:
    same_step = GroupVectorEnv(Chat(), num_envs=4, group_size=2, autoreset_mode="SameStep")
    first, _ = same_step.reset(seed=3)
    second, *_, infos = same_step.step(["yes", "no", "hm", "no"])
    assert second[0] == second[1] != first[0]
    assert second[2:] == ("turn 1", first[2])
    assert infos["final_obs"].tolist() == [first[0], first[0], None, None]
    assert infos["final_info"]["status"][:2].tolist() == ["correct", "incorrect"]
    assert same_step.groups[0].task.text == first[0]

    next_step = GroupVectorEnv(Chat(), num_envs=2, group_size=2, autoreset_mode="NextStep")
    next_step.reset(seed=3)
    next_step.step(["yes", "no"])
    observations, rewards, terminated, *_ = next_step.step(["yes", "yes"])
    assert observations == second[:2]
    assert not rewards.any()
    assert not terminated.any()
    assert next_step.groups == []


@pytest.mark.parametrize("mode", MODES)
def test_gymnasiums_statistics_count_each_episode_once(mode) -> None:
    vector = gym.make_vec("tests/Chat-v0", num_envs=4, group_size=2, autoreset_mode=mode)
    assert vector.metadata["autoreset_mode"] is mode
    env = RecordEpisodeStatistics(vector)
    env.reset(seed=0)
    for _ in range(3):
        env.step(("yes", "hm", "no", "hm"))
        *_, infos = env.step(("no", "yes", "no", "yes"))
        assert infos["episode"]["r"].tolist() == [1.25, 1.5, 0.25, 1.5]
        if mode is AutoresetMode.DISABLED:
            env.reset(options={"reset_mask": np.ones(4, dtype=np.bool_)})
        if mode is AutoresetMode.NEXT_STEP:
            env.step(("hm",) * 4)
    assert env.episode_count == 12


def test_a_limit_of_steps_truncates_and_judges() -> None:
    vector = gym.make_vec("tests/Chat-v0", num_envs=2, group_size=2, max_episode_steps=2)
    vector.reset(seed=0)
    vector.step(("hm", "hm"))
    _, rewards, terminated, truncated, infos = vector.step(("yes", "hm"))
    assert (terminated.tolist(), truncated.tolist()) == ([True, False], [False, True])
    assert rewards.tolist() == [1.25, 0.25]
    assert infos["status"].tolist() == ["correct", "incorrect"]
    with pytest.raises(ValueError, match="max_episode_steps must be at least 1, got 0"):
        GroupVectorEnv(Chat(), num_envs=2, max_episode_steps=0)
    single = gym.make("tests/Chat-v0", max_episode_steps=1)
    single.reset(seed=0)
    assert single.step("hm")[2:4] == (False, True)


def test_in_processes_text_is_real_or_refused() -> None:
    vector = gym.make_vec(
        "tests/Chat-v0",
        num_envs=2,
        vectorization_mode="async",
        vector_kwargs={"shared_memory": False, "context": "fork"},
    )
    try:
        assert vector.reset(seed=1)[0] == GroupVectorEnv(Chat(), num_envs=2).reset(seed=1)[0]
    finally:
        vector.close()
    with pytest.raises(ValueError, match="shared_memory=True"):
        AsyncVectorEnv([Chat, Chat], context="fork")


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"reset_mask": [True] * 4}, TypeError, "NumPy array of bools"),
        ({"reset_mask": np.ones(4)}, TypeError, "NumPy array of bools"),
        ({"reset_mask": np.zeros(4, dtype=np.bool_)}, ValueError, "at least one"),
        ({"reset_mask": np.ones(3, dtype=np.bool_)}, ValueError, "4 entries, got 3"),
        ({"reset_mask": np.array([True, False] * 2)}, ValueError, "equal within each group"),
        ({"reset_mask": np.array([True, True, False, False])}, ValueError, "never put a task"),
        ({"tasks": [-1, 0]}, IndexError, "-1"),
        ({"tasks": None}, TypeError, "tasks must be a list of 2 indices, got None"),
        (
            {"tasks": ["0", "1"]},
            TypeError,
            "task '0' cannot be interpreted as an integer: give one",
        ),
    ],
)
def test_what_does_not_fit_is_refused(options, error, words) -> None:
    vector = GroupVectorEnv(Chat(), num_envs=4, group_size=2)
    with pytest.raises(error, match=words):
        vector.reset(options=options)


def test_a_reset_that_is_refused_changes_no_group() -> None:
    vector = GroupVectorEnv(Chat(), num_envs=2)
    before, _ = vector.reset(options={"tasks": [0, 1]})
    with pytest.raises(IndexError, match="-1"):
        vector.reset(seed=5, options={"tasks": [1, -1]})
    assert vector.step(["no", "no"])[0] == before
    assert vector.reset(seed=[3, 4])[0] == vector.reset(seed=3)[0]


def test_seeds_and_sizes_may_be_numbers_of_numpy() -> None:
    vector = GroupVectorEnv(Chat(), num_envs=np.int64(4), group_size=np.int64(2))
    expected, _ = vector.reset(seed=3)
    for seed in (np.int64(3), np.array([3, 4]), np.array([3, 3, 4, 4]), [np.uint8(3), 4]):
        assert vector.reset(seed=seed)[0] == expected
    for seed in ("34", 3.0, {3, 4}):
        with pytest.raises(TypeError, match="seed must be a whole number or a list of these"):
            vector.reset(seed=seed)
    for sizes in ({"num_envs": "4"}, {"num_envs": 4, "group_size": 2.0}):
        with pytest.raises(ValueError, match="must be a positive multiple of group_size, got"):
            GroupVectorEnv(Chat(), **sizes)


def test_a_reply_that_is_no_text_changes_nothing() -> None:
    vector = GroupVectorEnv(Chat(), num_envs=2)
    with pytest.raises(RuntimeError, match="call reset"):
        vector.step(["a", "b"])
    vector.reset(seed=0)
    with pytest.raises(TypeError, match="must be text"):
        vector.step(["yes", 3])
    assert not vector.waiting.any()
    with pytest.raises(ValueError, match="Sometimes"):
        GroupVectorEnv(Chat(), num_envs=2, autoreset_mode="Sometimes")


def test_records_that_are_asked_for_late_are_those_of_the_groups_that_ended() -> None:
    tasks = [Task(f"{i}?", str(i), id=str(i)) for i in range(4)]
    envs = GroupVectorEnv(
        TextEnv(Rows(tasks), Exact()),
        num_envs=4,
        group_size=2,
        autoreset_mode=AutoresetMode.SAME_STEP,
    )
    envs.reset(options={"tasks": [1, 2]})
    envs.step(["1", "0", "2", "2"])  # other tasks are put in the same step
    assert [group.task.id for group in envs.groups] == ["1", "2"]
    assert [group.rewards for group in envs.groups] == [(1.0, 0.0), (1.0, 1.0)]
    assert envs.groups is envs.groups
    assert [e.completion for group in envs.groups for e in group.episodes] == ["1", "0", "2", "2"]
    envs.reset()
    assert envs.groups == []
