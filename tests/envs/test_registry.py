"""Ids: made here and in Gymnasium, and errors that help."""

import gymnasium as gym
import pytest

from assay.envs import (
    GroupVectorEnv,
    Task,
    TextEnv,
    UnknownEnvironment,
    environment,
    make,
    make_group,
    register,
    specs,
)


@environment("tests/Echo-v0", rubric=lambda reply, gold: reply == gold)
def echo(rng):
    """Say a number again."""
    n = str(rng.integers(10**6))
    return Task(f"Say {n}", reference=n)


def test_ten_lines_make_an_environment_everywhere() -> None:
    env = make("tests/Echo-v0")
    assert env.name == "tests/Echo-v0"
    plain = gym.make("tests/Echo-v0", split="test")
    question, _ = plain.reset(seed=0)
    assert plain.step(question.removeprefix("Say "))[1] == 1.0
    assert isinstance(plain.unwrapped, TextEnv)
    vector = gym.make_vec("tests/Echo-v0", num_envs=4, group_size=2)
    assert isinstance(vector, GroupVectorEnv)
    first, *rest = vector.reset(seed=0)[0]
    assert first == rest[0] != rest[1] == rest[2]
    grouped = make_group("tests/Echo-v0", prompts=3, group_size=2)
    assert grouped.num_envs == 6
    assert "Say a number again." in [s.summary for s in specs()]


def test_an_unknown_id_names_the_nearest() -> None:
    with pytest.raises(UnknownEnvironment, match="Did you mean assay/GSM8K-v0"):
        make("assay/GMS8K-v0")
    with pytest.raises(UnknownEnvironment, match="assay/Arithmetic-v0"):
        make("arithmetics")
    with pytest.raises(UnknownEnvironment, match="Known: "):
        make("zzz/qqqqqqqqqqqq-v0")


@pytest.mark.parametrize(
    ("id_", "words"),
    [("NoNamespace-v0", "must look like"), ("a/b", "must look like"), ("tests/Echo-v0", "already")],
)
def test_ids_that_cannot_be_registered(id_, words) -> None:
    with pytest.raises(ValueError, match=words):
        register(id_, "nowhere:Nothing")


def test_an_unknown_argument_lists_the_known() -> None:
    with pytest.raises(ValueError, match="takes no 'dta'; it takes split, seed"):
        make("tests/Echo-v0", dta="x")
