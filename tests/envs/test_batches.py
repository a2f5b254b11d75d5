"""What waits goes together, in shares: nobody waits for a straggler who did not go with it."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from assay.envs import Completion, Rows, Task, TextEnv, Turn, arollout
from assay.envs.batches import BatchingQueue
from assay.verifiers import FunctionVerifier


class Work:
    """Doubles numbers; each call waits to be let go, and is kept."""

    def __init__(self, *, wait: bool = False) -> None:
        self.calls: list[list[int]] = []
        self.go = threading.Event()
        if not wait:
            self.go.set()

    def __call__(self, pieces):
        self.calls.append(pieces)
        assert self.go.wait(30)
        if -1 in pieces:
            raise LookupError
        return [2 * piece for piece in pieces]


def gathered(work, pieces, threads, largest=None):
    async def main():
        with ThreadPoolExecutor(threads) as pool:
            batches = BatchingQueue(work, pool, threads, largest)
            return await asyncio.gather(*map(batches.do, pieces), return_exceptions=True)

    return asyncio.run(main())


def test_each_thread_takes_its_share_of_what_waits() -> None:
    """Of 10 pieces 4 threads take 3, 2, 2 and 1; the last 2 wait for the first to be free."""
    work = Work(wait=True)
    threading.Timer(0.3, work.go.set).start()
    assert gathered(work, range(10), 4) == [2 * i for i in range(10)]
    assert sorted(map(len, work.calls[:4])) == [1, 2, 2, 3]
    work = Work()
    gathered(work, range(10), 4, 1)
    assert [len(call) for call in work.calls] == [1] * 10


def test_what_a_call_raises_is_for_those_in_it_alone() -> None:
    found = gathered(Work(), [1, -1, 3, 4], 2)  # calls of 2, 1 and 1
    assert [isinstance(one, LookupError) for one in found] == [True, True, False, False]
    assert found[2:] == [6, 8]


def test_who_is_cancelled_while_waiting_is_not_begun() -> None:
    async def main():
        with ThreadPoolExecutor(1) as pool:
            batches = BatchingQueue(work, pool, 1)
            first = asyncio.create_task(batches.do(1))
            while not work.calls:
                await asyncio.sleep(0.01)
            others = [asyncio.create_task(batches.do(i)) for i in (2, 3)]
            await asyncio.sleep(0)
            others[0].cancel()
            first.cancel()
            work.go.set()
            return await asyncio.gather(first, *others, return_exceptions=True)

    work = Work(wait=True)
    first, second, third = asyncio.run(main())
    assert isinstance(first, asyncio.CancelledError)
    assert isinstance(second, asyncio.CancelledError)
    assert (third, work.calls) == (6, [[1], [3]])


# -- in a rollout ----------------------------------------------------------------------------------


class Parrot:
    """Repeats the prompt; ``answered`` is set once it has done so for 48 episodes."""

    def __init__(self) -> None:
        self.answered, self.count = threading.Event(), 0

    async def __call__(self, conversation, /):
        self.count += 1
        if self.count == 48:
            self.answered.set()
        return Completion(conversation[0]["content"])


TASKS = [Task(str(i), reference=str(i), id=str(i)) for i in range(24)]


class Together(TextEnv):
    """Two turns; keeps how many were answered at once."""

    def __init__(self, wait: threading.Event, slow: str = "0") -> None:
        super().__init__(Rows(TASKS), FunctionVerifier(str.__eq__), max_turns=2)
        self.wait, self.slow, self.sizes = wait, slow, []

    def respond_many(self, states, replies):
        self.sizes.append(len(replies))
        if self.slow in replies:
            assert self.wait.wait(30)
        return [Turn.say("go on") for _ in states]


def played(env, policy, came=lambda groups: None, **settings):
    async def main():
        groups = []
        async for group in arollout(env, policy, TASKS, 2, **settings):
            groups.append(group)
            came(groups)
        return groups

    return asyncio.run(asyncio.wait_for(main(), 60))


def test_turns_that_are_ready_are_answered_together() -> None:
    """While the first turns are being answered the other 46 episodes come to wait, or nearly."""
    policy = Parrot()
    env = Together(policy.answered)
    groups = played(env, policy, threads=1)
    assert sum(env.sizes) == 48 * 2
    assert max(env.sizes) > 40
    assert {g.rewards for g in groups} == {(1.0, 1.0)}


def test_a_turn_that_takes_long_keeps_back_only_its_own_batch() -> None:
    """Of 16 episodes in flight a thread takes at most 4: with the two slow ones at most 6 wait."""
    go = threading.Event()
    env = Together(go, slow="3")
    groups = played(env, Parrot(), lambda g: len(g) == 17 and go.set(), threads=4, at_once=16)
    assert sorted(int(g.task.id) for g in groups) == list(range(24))
    assert "3" in [g.task.id for g in groups[17:]]


def test_groups_that_wait_are_judged_together() -> None:
    class Sized(FunctionVerifier):
        def verify_many(self, replies, references):
            sizes.append(len(replies))
            assert policy.answered.wait(30)
            return super().verify_many(replies, references)

    sizes, policy = [], Parrot()
    groups = played(TextEnv(Rows(TASKS), Sized(str.__eq__)), policy, threads=1)
    assert sum(sizes) == 48
    assert len(sizes) < 12  # of 24 groups; how many wait as the first ends is the scheduler's
    assert all(g.episodes[0].completion == g.task.text and g.rewards == (1, 1) for g in groups)


def test_a_next_that_finds_nothing_ends_the_rollout() -> None:
    class Ends(TextEnv):
        def respond(self, state, reply):
            return next(iter(()))

    with pytest.raises(RuntimeError, match="StopIteration was raised"):
        played(Ends(Rows(TASKS), FunctionVerifier(str.__eq__)), Parrot())
