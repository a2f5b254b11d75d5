"""From tasks and a policy to judged groups."""

import itertools
import threading
import time

import pytest

from assay.envs import (
    Completion,
    FunctionPolicy,
    Rows,
    Source,
    State,
    Task,
    TextEnv,
    Turn,
    play,
    rollout,
    scheduled,
    stream,
)
from assay.envs.datasets.source import _shuffled
from assay.verifiers import FunctionVerifier, Verdict


def equal(reply, gold):
    return reply == gold


ENV = TextEnv(Rows([Task(str(i), reference=str(i)) for i in range(5)]), FunctionVerifier(equal))
PARROT = FunctionPolicy(lambda messages: messages[-1]["content"])


def test_a_policy_must_answer_everything() -> None:
    with pytest.raises(ValueError, match="expected 2 completions, got 0"):
        play(ENV, lambda conversations: [], [ENV.task(0)], 2)


@pytest.mark.parametrize(("groups", "size"), [(0, 1), (1, 0)])
def test_empty_rollouts_are_refused(groups, size) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        rollout(ENV, PARROT, groups, size)


class Countdown(TextEnv):
    """Ends after as many turns as the task says."""

    def respond(self, state: State, reply: str) -> Turn:
        left = int(state.task.reference) - len(state.step_rewards) - 1
        return Turn.say(str(left)) if left else Turn.end(Verdict.correct())


def counting_down(turns) -> Countdown:
    tasks = [Task(f"{n} turns", reference=n, id=str(i)) for i, n in enumerate(turns)]
    return Countdown(Rows(tasks), FunctionVerifier(equal), max_turns=99)


class Watched:
    """Says ``x``, and remembers how many conversations it was given at a time."""

    def __init__(self) -> None:
        self.batches = []

    def __call__(self, conversations, /):
        self.batches.append(len(conversations))
        return [Completion("x") for _ in conversations]


def test_a_stream_gives_what_playing_them_all_gives() -> None:
    tasks = [ENV.task(i) for i in range(5)]
    assert list(stream(ENV, PARROT, tasks, 3, at_once=2)) == play(ENV, PARROT, tasks, 3)
    assert list(stream(ENV, PARROT, [], 3)) == []


def test_a_long_episode_keeps_no_group_from_ending_and_others_take_their_place() -> None:
    env, policy = counting_down([4, 1, 1, 1, 1]), Watched()
    tasks = [env.task(i) for i in range(5)]
    found = [g.task.id for g in stream(env, policy, tasks, 2, at_once=2)]
    assert sorted(found) == ["0", "1", "2", "3", "4"]
    assert found[:3] == ["1", "2", "3"]
    assert policy.batches == [4, 4, 4, 4]
    ordered = stream(env, Watched(), tasks, 2, at_once=2, ordered=True)
    assert [g.task.id for g in ordered] == ["0", "1", "2", "3", "4"]


def test_a_stream_takes_tasks_as_it_has_room_and_may_be_left() -> None:
    taken = []

    def endless():
        for task in scheduled(ENV, first=2, seed=1):
            taken.append(task)
            yield task

    groups = stream(ENV, PARROT, endless(), 2, at_once=3)
    first = [next(groups) for _ in range(4)]
    groups.close()
    assert {g.task.id for g in first} <= {t.id for t in taken}
    assert len(taken) <= 4 + 3 * 3
    assert not [t for t in threading.enumerate() if t.name.startswith("assay-judge")]


def test_judging_goes_on_while_the_policy_writes() -> None:
    judged = threading.Event()

    class Signals(FunctionVerifier):
        def verify_many(self, replies, references):
            judged.set()
            return super().verify_many(replies, references)

    def policy(conversations):
        if len(calls) == 1:  # the first group is being judged during the second call
            assert judged.wait(60)
        calls.append(len(conversations))
        return [Completion("x")] * len(conversations)

    calls: list[int] = []
    env = TextEnv(ENV.source, Signals(equal))
    assert len(list(stream(env, policy, [env.task(0), env.task(1)], 2, at_once=1))) == 2


def test_how_long_judging_takes_changes_nothing_that_a_policy_is_asked() -> None:
    class Slow(FunctionVerifier):
        def verify_many(self, replies, references):
            time.sleep(next(delays))
            return super().verify_many(replies, references)

    def asked(times):
        nonlocal delays
        delays = itertools.cycle(times)
        env, seen = counting_down([3, 1, 2, 1, 3, 2, 1]), []
        env.rubric = Slow(equal)

        def policy(conversations):
            seen.append([c[0]["content"] for c in conversations])
            return [Completion("x")] * len(conversations)

        tasks = scheduled(env, 7, seed=4)
        ids = [g.task.id for g in stream(env, policy, tasks, 2, at_once=3, ordered=True)]
        return seen, ids

    delays = itertools.cycle([0])
    assert asked([0.0]) == asked([0.05, 0.0, 0.01])


def test_what_a_verifier_raises_ends_a_stream() -> None:
    class Gone(FunctionVerifier):
        def verify_many(self, replies, references):
            raise OSError("no sandbox")

    env = TextEnv(ENV.source, Gone(equal))
    with pytest.raises(OSError, match="no sandbox"):
        list(stream(env, PARROT, scheduled(env), 2, at_once=1))
    with pytest.raises(ValueError, match="at least 1, got 2 and 0"):
        stream(ENV, PARROT, [], 2, at_once=0)


class Million(Source):
    """A million rows, made when they are asked for."""

    size = 1_000_000

    def __init__(self) -> None:
        self.made = 0

    def task(self, index: int) -> Task:
        self.made += 1
        return Task(f"say {index}", reference=str(index), id=str(index))


def test_a_million_tasks_are_shuffled_once_an_epoch_and_made_as_they_are_asked() -> None:
    source, before = Million(), _shuffled.cache_info().misses
    env = TextEnv(source, FunctionVerifier(equal))
    parrot = FunctionPolicy(lambda messages: messages[-1]["content"].removeprefix("say "))
    ids = set()
    for step in range(50):
        groups = rollout(env, parrot, 2, 64, first=2 * step, seed=5)
        assert [g.rewards for g in groups] == [(1.0,) * 64] * 2
        ids |= {g.task.id for g in groups}
    assert len(ids) == source.made == 100
    assert _shuffled.cache_info().misses - before == 1
