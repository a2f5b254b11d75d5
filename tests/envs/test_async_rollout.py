"""Groups from a policy that is awaited: none waits for another, and nothing is left running."""

import asyncio
import itertools
import signal
import threading
from contextlib import aclosing

import pytest

from assay.envs import Completion, Rows, Span, Task, TextEnv, Turn, arollout, scheduled
from assay.verifiers import FunctionVerifier, Status


def equal(reply, gold):
    return reply == gold


ENV = TextEnv(Rows([Task(str(i), reference=str(i)) for i in range(6)]), FunctionVerifier(equal))
TASKS = [ENV.task(i) for i in range(6)]


async def parrot(conversation):
    return Completion(conversation[-1]["content"])


def run(policy, tasks=TASKS, group_size=2, *, env=ENV, **settings):
    """All groups, in the order in which they came; and nothing runs afterwards."""

    async def main():
        found = [g async for g in arollout(env, policy, tasks, group_size, **settings)]
        assert asyncio.all_tasks() == {asyncio.current_task()}
        return found

    found = asyncio.run(main())
    assert not [t for t in threading.enumerate() if t.name.startswith(("assay-t", "assay-j"))]
    return found


def test_a_straggler_keeps_nobody_waiting() -> None:
    async def policy(conversation):
        if conversation[-1]["content"] == "0":
            await others.wait()
        return await parrot(conversation)

    async def main(*, ordered):
        came = []
        async for group in arollout(ENV, policy, TASKS, 2, at_once=3, ordered=ordered):
            came.append(group.task.id)
            if len(came) == 5:
                others.set()
        return came

    others = asyncio.Event()
    assert asyncio.run(main(ordered=False))[-1] == "0"
    assert others.is_set()
    assert asyncio.run(main(ordered=True)) == ["0", "1", "2", "3", "4", "5"]


def test_a_failure_costs_one_episode_its_reward_and_nothing_else() -> None:
    calls = itertools.count()

    async def policy(conversation):
        if conversation[-1]["content"] == "3" and next(calls) == 0:
            raise ConnectionError("server gone")
        return await parrot(conversation)

    groups = {g.task.id: g for g in run(policy)}
    assert sorted(map(str, groups["3"].rewards)) == ["1.0", "None"]
    (failed,) = [e for e in groups["3"].episodes if e.reward is None]
    assert failed.status is Status.VERIFIER_ERROR
    assert failed.verdict.reason == "the policy failed: ConnectionError: server gone"
    assert (failed.truncated, failed.turns) == (True, ())
    assert sum(g.masked for g in groups.values()) == 1


def test_a_turn_that_failed_is_tried_again() -> None:
    calls = []

    async def policy(conversation):
        calls.append(conversation)
        if len(calls) < 3:
            raise ConnectionError("server gone")
        return await parrot(conversation)

    (group,) = run(policy, TASKS[:1], 1, retries=2, pause_s=0)
    assert (group.rewards, len(calls)) == ((1.0,), 3)
    calls.clear()
    (group,) = run(policy, TASKS[:1], 1, retries=1, pause_s=0)
    assert (group.rewards, len(calls)) == ((None,), 2)


def test_what_a_group_lacks_when_its_time_is_over_has_no_reward() -> None:
    class Chat(TextEnv):
        def respond(self, state, reply):
            return Turn.say("go on") if reply == "hm" else Turn.end()

    async def policy(conversation):
        if len(conversation) == 1 and next(asked) % 2:
            return Completion("hm")
        if len(conversation) == 3:
            await asyncio.Event().wait()  # for ever
        return await parrot(conversation)

    asked = itertools.count()
    env = Chat(ENV.source, ENV.rubric, max_turns=9)
    groups = run(policy, TASKS[:2], 2, env=env, timeout_s=2.5)
    for group in groups:
        (late,) = [e for e in group.episodes if e.reward is None]
        assert late.verdict.reason == "not over 2.5 s after its group began"
        assert [m["content"] for m in late.turns] == ["hm", "go on"]
        assert sorted(map(str, group.rewards)) == ["1.0", "None"]


def test_a_policy_that_cancels_itself_ends_its_own_episode_alone() -> None:
    async def policy(conversation):
        if conversation[-1]["content"] == "1":
            raise asyncio.CancelledError
        return await parrot(conversation)

    groups = {g.task.id: g.rewards for g in run(policy)}
    assert groups.pop("1") == (None, None)
    assert set(groups.values()) == {(1.0, 1.0)}


def test_in_flight_is_bounded_and_endless_tasks_are_taken_as_there_is_room() -> None:
    async def policy(conversation):
        now.append(1)
        most.append(len(now))
        for _ in range(20):
            await asyncio.sleep(0)
        now.pop()
        return await parrot(conversation)

    def tasks():
        for task in scheduled(ENV, seed=3):
            taken.append(task)
            yield task

    async def main():
        async with aclosing(arollout(ENV, policy, tasks(), 2, at_once=5)) as groups:
            async for _ in groups:
                if len(taken) > 40:
                    break
                seen = len(taken)
                for _ in range(500):
                    await asyncio.sleep(0)
                assert len(taken) - seen <= 8  # nobody takes groups: no more are begun
        assert asyncio.all_tasks() == {asyncio.current_task()}

    now, most, taken = [], [], []
    asyncio.run(main())
    assert max(most) == 5


def test_cancellation_leaves_nothing_running() -> None:
    asked, ended = [], []

    async def policy(conversation):
        try:
            asked.append(conversation)
            if len(asked) == 4:
                started.set()
            await asyncio.Event().wait()
        finally:
            ended.append(conversation[-1]["content"])

    async def main():
        async def consume():
            async for _ in arollout(ENV, policy, TASKS, 2, at_once=4):
                pass

        consumer = asyncio.create_task(consume())
        await started.wait()
        await asyncio.sleep(0)
        consumer.cancel()
        with pytest.raises(asyncio.CancelledError):
            await consumer
        assert asyncio.all_tasks() == {asyncio.current_task()}

    started = asyncio.Event()
    asyncio.run(main())
    assert len(ended) == 4


def test_an_interrupt_ends_it_and_leaves_nothing_running() -> None:
    asked = itertools.count()

    async def policy(conversation):
        if next(asked) == 5:
            signal.raise_signal(signal.SIGINT)
        return await parrot(conversation)

    with pytest.raises(KeyboardInterrupt):
        run(policy, scheduled(ENV), at_once=4)
    assert not [t for t in threading.enumerate() if t.name.startswith(("assay-t", "assay-j"))]


def test_what_a_verifier_the_environment_or_the_tasks_raise_is_raised() -> None:
    class Gone(FunctionVerifier):
        def verify_many(self, replies, references):
            raise OSError("no sandbox")

    class Broken(TextEnv):
        def respond(self, state, reply):
            raise ZeroDivisionError

    def tasks():
        yield TASKS[0]
        raise LookupError("no more rows")

    async def wrong(conversation):
        return "text"

    with pytest.raises(OSError, match="no sandbox"):
        run(parrot, env=TextEnv(ENV.source, Gone(equal)))
    with pytest.raises(ZeroDivisionError):
        run(parrot, env=Broken(ENV.source, ENV.rubric))
    with pytest.raises(LookupError, match="no more rows"):
        run(parrot, tasks())
    with pytest.raises(TypeError, match="gives a Completion, got 'text'"):
        run(wrong)


def test_judging_goes_on_while_replies_are_awaited() -> None:
    """The last reply comes only after the first group was judged, in another thread."""

    class Signals(FunctionVerifier):
        def verify_many(self, replies, references):
            loop.call_soon_threadsafe(judged.set)
            return super().verify_many(replies, references)

    async def policy(conversation):
        nonlocal loop
        loop = asyncio.get_running_loop()
        if conversation[-1]["content"] == "1":
            await judged.wait()
        return await parrot(conversation)

    loop, judged = None, asyncio.Event()
    groups = run(policy, TASKS[:2], env=TextEnv(ENV.source, Signals(equal)))
    assert [g.task.id for g in groups] == ["0", "1"]


class Extending:
    """Writes token 7 after the tokens so far."""

    async def __call__(self, conversation, /):
        return await self.extend(conversation, ())

    async def extend(self, conversation, prefix, /):
        return Completion("x", prompt_ids=(*prefix, 1), ids=(7,), logprobs=(-0.5,))


def test_tokens_are_extended_turn_after_turn() -> None:
    class Chat(TextEnv):
        def respond(self, state, reply):
            return Turn.say("more")

    (group,) = run(Extending(), TASKS[:1], 1, env=Chat(ENV.source, ENV.rubric, max_turns=2))
    turn = [Span("environment", (1,)), Span("model", (7,), (-0.5,))]
    assert list(group.episodes[0].spans) == turn * 2


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"at_once": 0}, "at_once must be at least 1, got 0"),
        ({"retries": -1}, "retries must be at least 0, got -1"),
        ({"timeout_s": 0.0}, "timeout_s must be above 0, or None, got 0.0"),
    ],
)
def test_settings_out_of_range_are_refused_at_once(settings, words) -> None:
    with pytest.raises(ValueError, match=words):
        arollout(ENV, parrot, TASKS, 1, **settings)


def test_a_policy_that_is_not_async_is_refused() -> None:
    assert run(parrot, []) == []
    with pytest.raises(TypeError, match="must be async"):
        arollout(ENV, lambda conversation: Completion("x"), TASKS, 1)
