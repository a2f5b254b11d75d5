"""GuessNumber: halving always wins, and just so."""

import pytest

from assay.envs import FunctionPolicy, make, play


def halving(messages) -> str:
    words = messages[0]["content"].split()
    low, high = int(words[7]), int(words[9].rstrip("."))
    for said, heard in zip(messages[1::2], messages[2::2], strict=True):
        middle = int(said["content"].strip("*"))
        low, high = (middle + 1, high) if "higher" in heard["content"] else (low, middle - 1)
    return f"**{(low + high) // 2}**"


@pytest.mark.parametrize("level", range(1, 6))
def test_halving_wins_in_time(level) -> None:
    env = make("assay/GuessNumber-v1", level=level)
    groups = play(env, FunctionPolicy(halving), [env.task(i) for i in range(20)], 1)
    assert [g.rewards for g in groups] == [(1.0,)] * 20
    assert max(len(g.episodes[0].turns) for g in groups) <= 2 * env.max_turns - 1


def test_wrong_turns_cost_and_the_last_ends_it() -> None:
    env = make("assay/GuessNumber-v1", turn_cost=0.1)
    env.reset(options={"task": 0})
    number = int(env.task(0).reference)
    said, reward, *_ = env.step("I guess\n0")
    assert (said, reward) == ("My number is higher than 0.", -0.1)
    assert env.step("what?")[:2] == ("That is no guess. Write one whole number.", -0.1)
    _, reward, terminated, truncated, info = env.step(f"<answer>{number + 1}</answer>")
    assert (reward, terminated, truncated, info["status"]) == (-0.1, False, True, "incorrect")
    env.reset(options={"task": 0})
    assert env.step(f"0{number}")[1:3] == (1.0, True)
    with pytest.raises(ValueError, match="turn_cost must be from 0 to 1, got 2"):
        make("assay/GuessNumber-v1", turn_cost=2.0)
    with pytest.raises(ValueError, match="level must be from 1 to 5, got 6"):
        make("assay/GuessNumber-v1", level=6)
