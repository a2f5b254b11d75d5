"""Lists, streams and asyncio: order, back-pressure, early ends, failures half-way."""

from __future__ import annotations

import asyncio
import inspect
import itertools
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from assay.sandbox import Limits, RunStatus, Sandbox, SandboxUnavailable
from assay.sandbox.pool.batch import AHEAD

BACKENDS = ("bwrap",)  # batches are the host's affair
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def pair(make_box) -> Iterator[Sandbox]:
    with make_box(slots=2, limits=Limits(cpu_s=5.0, memory_mib=64)) as found:
        found.run_many(["", ""])
        yield found


def numbers(taken: list[int]) -> Iterator[str]:
    """Programs without end; says how many were taken."""
    for number in itertools.count():
        taken.append(number)
        yield f"print({number})"


def soon(condition) -> bool:
    """Whether something comes true within some seconds."""
    deadline = time.monotonic() + 20
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def no_thread(name: str) -> bool:
    return not [t for t in threading.enumerate() if t.name.startswith(name)]


def test_a_generator_is_a_batch(pair: Sandbox) -> None:
    found = pair.run_many(f"print({i})" for i in range(7))
    assert [r.stdout for r in found] == [f"{i}\n" for i in range(7)]
    assert pair.run_many([]) == []
    assert list(pair.run_many([], stream=True)) == []


def test_one_program_is_no_batch(pair: Sandbox) -> None:
    with pytest.raises(ValueError, match="many programs, got one text: 'exit"):
        pair.run_many("exit(1)")


def test_a_stream_keeps_the_order(pair: Sandbox) -> None:
    programs = [f"import time; time.sleep({0.2 * (i % 3 == 0)}); print({i})" for i in range(9)]
    found = pair.run_many(programs, stream=True)
    assert [r.stdout for r in found] == [f"{i}\n" for i in range(9)]


def test_a_stream_takes_only_some_items_ahead(pair: Sandbox) -> None:
    taken: list[int] = []
    stream = pair.run_many(numbers(taken), stream=True)
    time.sleep(0.1)
    assert taken == []  # nothing before the first result is asked for
    for fetched in range(1, 40):
        assert next(stream).stdout == f"{fetched - 1}\n"
        assert len(taken) <= fetched + 2 * AHEAD
    time.sleep(0.5)
    assert len(taken) <= 39 + 2 * AHEAD
    stream.close()
    assert soon(lambda: no_thread("assay-feed") and no_thread("assay-run"))
    assert len(taken) <= 39 + 2 * AHEAD + 1


def test_results_come_while_the_next_item_is_waited_for(pair: Sandbox) -> None:
    """Items may depend on results: here each is made from the one before it."""
    said: list[str] = ["1"]

    def chain() -> Iterator[str]:
        for length in range(1, 5):
            assert soon(lambda length=length: len(said) == length)
            yield f"print(2 * {said[-1]})"

    for result in pair.run_many(chain(), stream=True):
        said.append(result.stdout.strip())
    assert said == ["1", "2", "4", "8", "16"]


def test_an_abandoned_stream_ends(pair: Sandbox) -> None:
    taken: list[int] = []
    for result in pair.run_many(numbers(taken), stream=True):
        if result.stdout == "3\n":
            break
    del result
    assert soon(lambda: no_thread("assay-feed") and no_thread("assay-run"))
    assert pair.run("print(1)").stdout == "1\n"


def test_an_exception_of_the_items_comes_after_the_results_before_it(pair: Sandbox) -> None:
    def broken() -> Iterator[str]:
        yield "import time; time.sleep(0.3); print(1)"
        yield "print(2)"
        raise LookupError("no third one")

    stream = pair.run_many(broken(), stream=True)
    assert [next(stream).stdout, next(stream).stdout] == ["1\n", "2\n"]
    with pytest.raises(LookupError, match="no third one"):
        next(stream)
    assert list(stream) == []


def test_an_exception_of_the_function_ends_a_stream(pair: Sandbox) -> None:
    calls: list[int] = []

    def half(number: int) -> float:
        calls.append(number)
        return 1 / (3 - number)

    stream = pair.map(half, itertools.count(), stream=True)
    assert [next(stream), next(stream), next(stream)] == [1 / 3, 1 / 2, 1]
    with pytest.raises(ZeroDivisionError):
        next(stream)
    assert soon(lambda: no_thread("assay-run"))
    with pytest.raises(TypeError):
        pair.map(half, 3, stream=True)  # at once, not when the first result is fetched


def test_awaited_calls_give_what_the_plain_ones_give(pair: Sandbox) -> None:
    code = "def add(a, b): return a + b"

    async def ask() -> list[bool]:
        stdio, calls, tests = await asyncio.gather(
            pair.acheck_stdio("print(int(input()) + 1)", [("1", "2"), ("4", "5")]),
            pair.acheck_calls(code, "add", [((1, 2), 3)]),
            pair.acheck_tests(code, "assert add(1, 2) == 4"),
        )
        return [stdio.solved, calls.solved, tests.solved]

    assert asyncio.run(ask()) == [True, True, False]
    result = asyncio.run(
        pair.arun("print(input())", "hello", limits=Limits(cpu_s=1.0, memory_mib=64))
    )
    assert result.stdout == "hello\n"
    with pytest.raises(ValueError, match="at least one case"):
        asyncio.run(pair.acheck_stdio("", []))
    assert inspect.iscoroutinefunction(pair.arun)
    assert inspect.signature(pair.arun) == inspect.signature(pair.run)
    assert pair.arun.__name__ == "arun"


def test_a_thousand_pending_calls_leave_the_loop_free(pair: Sandbox) -> None:
    async def ask() -> tuple[list[str], int]:
        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            while True:
                await asyncio.sleep(0.01)
                ticks += 1

        ticker = asyncio.ensure_future(tick())
        found = await asyncio.gather(*[pair.arun(f"print({i})") for i in range(1000)])
        ticker.cancel()
        return [r.stdout for r in found], ticks

    before = threading.active_count()
    said, ticks = asyncio.run(ask())
    assert said == [f"{i}\n" for i in range(1000)]
    assert ticks >= 10
    assert threading.active_count() <= before + 2


def test_awaited_calls_are_made_in_their_order(make_box) -> None:
    async def ask() -> list[int]:
        ended: list[int] = []

        async def one(number: int) -> None:
            await single.arun("")
            ended.append(number)

        await asyncio.gather(*[one(i) for i in range(30)])
        return ended

    with make_box(slots=1) as single:
        assert asyncio.run(ask()) == list(range(30))


def test_cancelling_a_waiting_call_drops_it(make_box) -> None:
    async def ask() -> float:
        busy = asyncio.ensure_future(single.arun("import time; time.sleep(1)"))
        await asyncio.sleep(0.2)
        waiting = [asyncio.ensure_future(single.arun("while True: pass")) for _ in range(50)]
        last = asyncio.ensure_future(single.arun("print(1)"))
        await asyncio.sleep(0.2)
        for call in waiting:
            call.cancel()
        assert (await busy).status is RunStatus.OK
        assert (await last).stdout == "1\n"
        ended = await asyncio.gather(*waiting, return_exceptions=True)
        return sum(isinstance(one, asyncio.CancelledError) for one in ended)

    with make_box(slots=1, limits=Limits(cpu_s=30.0)) as single:
        single.run("")
        began = time.monotonic()
        assert asyncio.run(ask()) == 50
        assert time.monotonic() - began < 25  # one of the loops would have taken 30


def test_a_running_call_that_is_cancelled_frees_its_slot_at_its_limit(make_box) -> None:
    async def ask() -> str:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(single.arun("while True: pass"), 0.3)
        return (await single.arun("print(1)")).stdout

    with make_box(slots=1, limits=Limits(cpu_s=1.0)) as single:
        assert asyncio.run(ask()) == "1\n"


def test_closing_the_box_ends_awaited_calls(make_box) -> None:
    async def ask() -> list[object]:
        calls = [asyncio.ensure_future(own.arun("while True: pass")) for _ in range(20)]
        await asyncio.sleep(0.5)
        await asyncio.to_thread(own.close)
        return await asyncio.gather(*calls, return_exceptions=True)

    before = threading.active_count()
    own = make_box(slots=2, limits=Limits(cpu_s=60.0))
    own.run("")
    ended = asyncio.run(ask())
    assert len(ended) == 20
    assert all(isinstance(one, SandboxUnavailable) for one in ended)
    assert soon(lambda: threading.active_count() <= before)


class Failing(Sandbox):
    """A box that can be had for some programs, and not for the others."""

    fails = frozenset[str]()

    def run(self, code: str, stdin: str = "", **options: Any):
        if code in self.fails:
            raise SandboxUnavailable("the daemon went away")
        return super().run(code, stdin, **options)


@pytest.fixture(scope="module")
def failing(make_bwrap) -> Iterator[Failing]:
    """A box under bubblewrap; what it fails at is set by each test."""
    with Failing(backend="bwrap", slots=2) as found:
        yield found


@pytest.mark.bwrap
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("fails", [{1}, {3, 4}, {0, 1}, {0, 1, 2, 3}])
def test_what_was_run_is_never_lost(failing: Failing, fails: set[int], stream: bool) -> None:
    failing.fails = frozenset(f"print({i})" for i in fails)
    found = list(failing.run_many([f"print({i})" for i in range(5)], stream=stream))
    assert [i for i, r in enumerate(found) if r.status is RunStatus.SANDBOX_ERROR] == sorted(fails)
    assert all(r.stdout == f"{i}\n" for i, r in enumerate(found) if i not in fails)
    assert all(r.reason == "the daemon went away" for i, r in enumerate(found) if i in fails)


@pytest.mark.bwrap
@pytest.mark.parametrize("stream", [False, True])
def test_where_nothing_was_run_it_raises(failing: Failing, stream: bool) -> None:
    failing.fails = frozenset(["print(1)"])
    with pytest.raises(SandboxUnavailable, match="the daemon went away"):
        list(failing.run_many(["print(1)"] * 3, stream=stream))


@pytest.mark.bwrap
def test_an_endless_stream_of_failures_raises(failing: Failing) -> None:
    failing.fails = frozenset(["print(1)"])
    with pytest.raises(SandboxUnavailable, match="the daemon went away"):
        next(failing.run_many(itertools.repeat("print(1)"), stream=True))
    assert soon(lambda: no_thread("assay-feed"))


def test_cut_output_says_so(pair: Sandbox) -> None:
    bounds = Limits(output_bytes=100, memory_mib=64)
    whole = pair.run("print('x' * 99)", limits=bounds)
    cut = pair.run("import os; os.write(2, b'y' * 101)", limits=bounds)
    both = pair.run(
        "import os, time; os.write(1, b'x' * 100); time.sleep(0.2); os.write(2, b'y' * 300)",
        limits=bounds,
    )
    assert (len(whole.stdout), whole.stdout_truncated, whole.stderr_truncated) == (
        100,
        False,
        False,
    )
    assert (cut.status, len(cut.stderr)) == (RunStatus.OUTPUT_LIMIT, 100)
    assert (cut.stdout_truncated, cut.stderr_truncated) == (False, True)
    assert (len(both.stdout), both.stdout_truncated, both.stderr_truncated) == (100, False, True)
