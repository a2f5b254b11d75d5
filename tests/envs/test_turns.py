"""Episodes of several turns: what is said, what it earns, whose tokens are whose."""

import json
import math

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.wrappers import RecordEpisodeStatistics, TimeLimit

from assay.envs import (
    Completion,
    FunctionPolicy,
    Generated,
    Rows,
    State,
    Task,
    TextEnv,
    Turn,
    play,
)
from assay.verifiers import Exact, Verdict, Verifier


class Guess(TextEnv):
    """Guess a number from 0 to 99; higher or lower is said after each guess."""

    def __init__(self, max_turns: int = 8, render_mode: str | None = None) -> None:
        super().__init__(
            Generated(draw, name="Guess"), Exact(), max_turns=max_turns, render_mode=render_mode
        )

    def begin(self, task: Task) -> State:
        return State(task, data={"guesses": 0})

    def respond(self, state: State, reply: str) -> Turn:
        state.data["guesses"] += 1
        if not reply.strip().isdecimal():
            return Turn.end(Verdict.wrong("no number"))
        guess, secret = int(reply), int(state.task.reference)
        if guess == secret:
            return Turn.end(reward=0.5)
        return Turn.say("higher" if guess < secret else "lower", reward=-0.1)


def draw(rng) -> Task:
    secret = int(rng.integers(100))
    return Task(f"Guess my number, hint {int(rng.integers(10**9))}.", reference=str(secret))


def halving(messages) -> str:
    low, high = 0, 99
    for said, heard in zip(messages[1::2], messages[2::2], strict=True):
        middle = int(said["content"])
        low, high = (middle + 1, high) if heard["content"] == "higher" else (low, middle - 1)
    return str((low + high) // 2)


def test_gymnasiums_checker_and_wrappers_take_it() -> None:
    check_env(Guess(), skip_render_check=True)
    env = RecordEpisodeStatistics(TimeLimit(Guess(max_turns=50), max_episode_steps=2))
    env.reset(seed=0)
    secret = int(env.unwrapped._state.task.reference)
    assert env.step(str((secret + 1) % 100))[2:4] == (False, False)
    *_, terminated, truncated, info = env.step(str((secret + 2) % 100))
    assert (terminated, truncated, info["episode"]["l"]) == (False, True, 2)


def test_a_policy_plays_until_the_environment_ends_the_episode() -> None:
    env = Guess()
    groups = play(env, FunctionPolicy(halving), [env.task(i) for i in range(5)], 2)
    for group in groups:
        for episode in group.episodes:
            assert episode.reward == 1.0
            assert not episode.truncated
            turns = episode.turns
            assert [m["role"] for m in turns] == ["assistant", "user"] * (len(turns) // 2) + [
                "assistant"
            ]
            assert episode.step_rewards == (-0.1,) * (len(turns) // 2) + (0.5,)


def test_steps_earn_the_turns_reward_and_the_last_the_total_too() -> None:
    env = Guess()
    env.reset(seed=3)
    secret = int(env.clone()[0].task.reference)
    wrong = str((secret + 7) % 100)
    said, reward, terminated, truncated, info = env.step(wrong)
    assert said in ("higher", "lower")
    assert (reward, terminated, truncated) == (-0.1, False, False)
    assert [m["role"] for m in info["messages"]] == ["user", "assistant", "user"]
    assert "status" not in info
    _, reward, terminated, truncated, info = env.step(str(secret))
    assert (reward, terminated, truncated, info["status"]) == (1.5, True, False, "correct")
    with pytest.raises(RuntimeError, match="call reset"):
        env.step("1")


def test_the_environments_own_verdict_stands_and_a_limit_of_turns_truncates() -> None:
    env = Guess(max_turns=2)
    env.reset(seed=0)
    *_, terminated, truncated, info = env.step("what?")
    assert (terminated, truncated, info["reason"]) == (True, False, "no number")
    env.reset(seed=0)
    env.step("100")
    _, reward, terminated, truncated, info = env.step("100")
    assert (terminated, truncated, info["status"]) == (False, True, "incorrect")
    assert reward == pytest.approx(-0.1)
    with pytest.raises(ValueError, match="max_turns must be at least 1, got 0"):
        Guess(max_turns=0)


@pytest.mark.parametrize(
    ("turn", "words"),
    [
        (None, "respond must return Turn.say"),
        (((), True, None, 0.0), "respond must return Turn.say"),
        (Turn.end(0.0), r"Turn.end\(reward=1.0\), got 0.0"),  # the rubric's would be paid instead
        (Turn.end(reward=float("inf")), "must be a finite number or None, got inf"),
        (Turn.end(reward=float("nan")), "must be a finite number or None, got nan"),
        (Turn.end(reward="1"), "must be a finite number or None, got '1'"),
        (Turn.say(5), "content must be text"),
        (Turn("Go on."), "a message needs 'role' and 'content', got 'G'"),
    ],
)
def test_what_is_no_turn_is_named(turn, words) -> None:
    class Odd(Guess):
        def respond(self, state: State, reply: str) -> Turn:
            return turn

    env = Odd()
    env.reset(seed=0)
    with pytest.raises((TypeError, ValueError), match=words):
        env.step("5")


def test_a_record_of_an_episode_has_plain_numbers() -> None:
    """NumPy's cannot be written as JSON, and the run ended where its episodes are."""
    state = State(Task("?", "1"))
    state.take(Turn.end(reward=np.float32(0.5)))
    assert json.dumps(state.episode(Verdict.correct()).to_json())


def test_a_lone_verifiers_batch_is_held_to_its_range_and_length() -> None:
    class Batch(Verifier):
        def verify_many(self, replies, references):
            return [Verdict.wrong("raw", score=float(r)) for r in replies if r != "-"]

    env = TextEnv(Rows([Task("?", "1")]), Batch())
    env.reset()
    assert math.isnan(env.step("7.0")[1])
    (group,) = play(env, FunctionPolicy(lambda messages: "0.5"), [env.task(0)], 2)
    assert group.rewards == (0.5, 0.5)
    with pytest.raises(ValueError, match="Batch must return 2 Verdicts, got 0"):
        play(env, FunctionPolicy(lambda messages: "-"), [env.task(0)], 2)


def test_a_clone_is_restored_as_often_as_one_likes() -> None:
    env = Guess(render_mode="ansi")
    env.reset(seed=5)
    env.step("50")
    saved = env.clone()
    first = [env.step("51"), env.reset()]
    for _ in range(2):
        env.restore(saved)
        assert [env.step("51"), env.reset()] == first
    env.restore(saved)
    assert env.render().endswith(("higher", "lower"))


class Extending:
    """Writes token 7 for each turn after the tokens so far and two for what was said."""

    def __init__(self, *, anew: bool = False) -> None:
        self.anew = anew

    def __call__(self, conversations, /):
        return self.extend(conversations, [()] * len(conversations))

    def extend(self, conversations, prefixes, /):
        found = []
        for messages, prefix in zip(conversations, prefixes, strict=True):
            known = [9] * len(prefix) if self.anew else list(prefix)
            found.append(
                Completion(halving(messages), "stop", (*known, 1, 2), (7, 0), (-0.5, -0.1))
            )
        return found


def test_tokens_are_those_that_the_policy_wrote_turn_after_turn() -> None:
    env = Guess()
    ((episode,),) = [g.episodes for g in play(env, Extending(), [env.task(0)], 1)]
    turns = len(episode.step_rewards)
    assert turns > 1
    assert [s.author for s in episode.spans] == ["environment", "model"] * turns
    assert [s.ids for s in episode.spans] == [(1, 2), (7, 0)] * turns
    with pytest.raises(ValueError, match=r"turn 2 of .* other tokens than those"):
        play(env, Extending(anew=True), [env.task(0)], 1)


def test_a_reply_that_is_cut_off_ends_the_episode() -> None:
    env = Guess()
    cut = [Completion("5", "length")]
    ((episode,),) = [g.episodes for g in play(env, lambda c: cut, [env.task(0)], 1)]
    assert episode.truncated
    assert len(episode.turns) == 1
