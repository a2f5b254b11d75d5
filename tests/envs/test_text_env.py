"""TextEnv and GroupVectorEnv: Gymnasium's contract, groups, and faults that are not zeros."""

import math
import warnings

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from assay.envs import Generated, GroupVectorEnv, Rows, Task, TextEnv, Unicode
from assay.verifiers import FunctionVerifier, Status, Verdict, Verifier


class Parrot(Verifier):
    """Right where the reply is the reference; ``broken`` is a fault of ours."""

    def judge(self, reply, reference):
        if reply == "broken":
            return Verdict.fault(Status.SANDBOX_ERROR, "gone")
        return Verdict.correct() if reply == reference else Verdict.wrong("no")

    def check_reference(self, reference):
        return None if reference else "an empty reference"


def sums(rng):
    a, b = (int(n) for n in rng.integers(1000, size=2))
    return Task(f"{a}+{b}=", reference=str(a + b))


@pytest.fixture
def env():
    return TextEnv(Generated(sums, name="sums"), Parrot(), render_mode="ansi")


def test_gymnasiums_checker_finds_nothing(env) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message=".*different from the unwrapped version.*")
        warnings.filterwarnings("ignore", message=".*render_mode.*")
        check_env(env, skip_render_check=True)


def test_a_right_reply_ends_the_episode_with_full_reward(env) -> None:
    _, info = env.reset(seed=3, options={"task": 7})
    reference = env.task(7).reference
    _, reward, terminated, truncated, after = env.step(reference)
    assert (reward, terminated, truncated) == (1.0, True, False)
    assert after["status"] == "correct"
    assert info["messages"] == [{"role": "user", "content": env.task(7).text}]
    assert "correct 1.0" in env.render()


def test_info_and_observation_never_hold_the_reference(env) -> None:
    observation, info = env.reset(seed=0)
    reference = next(env.task(i).reference for i in range(5))
    assert "reference" not in info
    assert reference not in repr((observation, info))


def test_a_fault_of_ours_is_nan_never_zero(env) -> None:
    env.reset(seed=0)
    _, reward, *_, info = env.step("broken")
    assert math.isnan(reward)
    assert info["status"] == "sandbox_error"


def test_the_seed_decides_the_task_and_later_resets_go_on_from_it(env) -> None:
    def questions():
        return [env.reset(seed=5)[0], env.reset()[0], env.reset()[0]]

    first = questions()
    assert questions() == first
    assert len(set(first)) == 3
    assert env.reset(seed=6)[0] not in first


def test_an_index_is_a_whole_number_numpys_too(env) -> None:
    assert env.task(np.int64(3)) == env.task(3)
    for index in (1.0, "1", None):
        with pytest.raises(TypeError, match="cannot be interpreted as an integer"):
            env.task(index)


def test_an_episode_has_one_step(env) -> None:
    with pytest.raises(RuntimeError, match="reset"):
        env.step("x")
    env.reset(seed=0)
    env.step("x")
    with pytest.raises(RuntimeError, match="reset"):
        env.step("x")


def test_bad_references_are_refused_when_data_is_loaded() -> None:
    tasks = [Task("a", "1", id="one"), Task("b", "", id="two")]
    with pytest.raises(ValueError, match=r"1 of 2 references.*\n  row 1 \(two\): an empty"):
        TextEnv(Rows(tasks), Parrot(), name="me/X-v0")


def test_unicode_holds_any_text() -> None:
    space = Unicode(5)
    assert all(t in space for t in ("", "é∫🙂", "\ud800"))
    assert "123456" not in space
    assert 3 not in space
    space.seed(0)
    assert all(space.sample() in space for _ in range(200))


class TestGroups:
    """P tasks times G copies."""

    @pytest.fixture
    def group(self, env):
        return GroupVectorEnv(env, num_envs=6, group_size=3)

    def test_copies_of_a_task_stand_together(self, group, env) -> None:
        observations, infos = group.reset(seed=4)
        assert observations[:3] == (env.reset(seed=4)[0],) * 3
        assert observations[3:] == (env.reset(seed=5)[0],) * 3
        assert list(infos["task"][:3]) == [infos["task"][0]] * 3

    def test_a_step_gives_rewards_in_order_and_groups(self, group, env) -> None:
        group.reset(options={"tasks": [0, 1]})
        zero, one = env.task(0).reference, env.task(1).reference
        _, rewards, terminated, truncated, infos = group.step([zero, "x", "broken", zero, one, one])
        assert rewards.dtype == np.float64
        np.testing.assert_array_equal(rewards, [1, 0, np.nan, 0, 1, 1])
        assert terminated.all()
        assert not truncated.any()
        assert list(infos["status"])[:3] == ["correct", "incorrect", "sandbox_error"]
        assert [g.rewards for g in group.groups] == [(1.0, 0.0, None), (0.0, 1.0, 1.0)]
        assert group.groups[0].task == env.task(0)

    def test_the_whole_batch_goes_to_the_rubric_once(self) -> None:
        sizes = []

        class Counting(Parrot):
            def verify_many(self, replies, references):
                sizes.append(len(replies))
                return super().verify_many(replies, references)

        vector = GroupVectorEnv(
            TextEnv(Generated(sums, name="s"), Counting()), num_envs=8, group_size=4
        )
        vector.reset(seed=0)
        vector.step(["x"] * 8)
        assert sizes == [8]

    @pytest.mark.parametrize(
        ("call", "words"),
        [
            (lambda g: g.reset(seed=[1, 1, 2, 3, 3, 3]), "equal within each group"),
            (lambda g: g.reset(seed=[1, 2, 3]), "6 entries, got 3"),
            (lambda g: g.reset(options={"tasks": [1]}), "name 2 tasks, got 1"),
            (lambda g: (g.reset(seed=0), g.step(["x"])), "expected 6 replies, got 1"),
            (lambda g: (g.reset(seed=0), g.step("abcdef")), "got one text: 'abcdef'"),
            (lambda g: GroupVectorEnv(g.env, num_envs=7, group_size=3), "multiple of group_size"),
        ],
    )
    def test_what_does_not_fit_the_groups_is_refused(self, group, call, words) -> None:
        with pytest.raises((ValueError, TypeError), match=words):
            call(group)


def test_a_verifier_that_raises_costs_no_reward() -> None:
    env = TextEnv(Rows([Task("a", "1")]), FunctionVerifier(lambda reply, gold: 1 / 0))
    env.reset(seed=0)
    _, reward, *_, info = env.step("x")
    assert math.isnan(reward)
    assert info["status"] == "verifier_error"
    assert info["reason"] == "ZeroDivisionError: division by zero"
