"""The pool's line: who is served when, what is started when, and what is closed."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable

import pytest

from assay.sandbox import Limits, RunStatus, Sandbox, SandboxUnavailable
from assay.sandbox.backends.bwrap import BwrapBackend
from assay.sandbox.backends.slot import Slot, SlotBroken
from assay.sandbox.pool import pool as pool_module
from assay.sandbox.pool.pool import (
    FAILURES_TO_OPEN,
    RUNS_MEANWHILE,
    RUNS_PER_SLOT,
    STARTS_AT_ONCE,
    Pool,
)

HANG_S = 60.0


class Counting(BwrapBackend):
    """Counts starts, and those at one time; may take its time over them, or fail."""

    def __init__(self, delay_s: float = 0.0) -> None:
        super().__init__(Limits(memory_mib=64))
        self.delay_s = delay_s
        self.fails = False
        self.starts = self.now = self.most = 0
        self.lock = threading.Lock()

    def start(self) -> Slot:
        with self.lock:
            self.starts += 1
            self.now += 1
            self.most = max(self.most, self.now)
        try:
            time.sleep(self.delay_s)
            if self.fails:
                raise SlotBroken("the disk is full")
            return super().start()
        finally:
            with self.lock:
                self.now -= 1


BACKENDS = ("bwrap",)  # the pool is the same for every backend
pytestmark = [pytest.mark.usefixtures("make_bwrap"), pytest.mark.slow]


def soon(condition: Callable[[], object]) -> bool:
    deadline = time.monotonic() + 20
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.005)
    return True


def start_threads(bodies: list[Callable[[], None]], pool: Pool) -> list[threading.Thread]:
    """Let callers join the line one after another."""
    threads = []
    for number, body in enumerate(bodies, 1):
        threads.append(threading.Thread(target=body))
        threads[-1].start()
        assert soon(lambda number=number: len(pool._line) == number)
    return threads


def join(threads: list[threading.Thread]) -> None:
    for thread in threads:
        thread.join(HANG_S)
        assert not thread.is_alive()


@pytest.mark.parametrize("fresh", [set(), {0}, {2, 5}, set(range(8))])
def test_slots_go_to_those_who_wait_in_their_order(fresh: set[int]) -> None:
    """A retry wants a slot that has run nothing: while it starts, those behind use the others."""
    pool = Pool(Counting(), 1)
    served: list[int] = []

    def caller(number: int) -> Callable[[], None]:
        def body() -> None:
            with pool.lend(fresh=number in fresh) as slot:
                assert slot.runs == 0 or number not in fresh
                slot.runs += 1
                served.append(number)

        return body

    try:
        with pool.lend() as slot:
            slot.runs += 1
            threads = start_threads([caller(number) for number in range(8)], pool)
        join(threads)
    finally:
        pool.close()
    assert sorted(served) == list(range(8))
    for kind in (fresh, set(range(8)) - fresh):
        assert [number for number in served if number in kind] == sorted(kind)


def test_retries_of_all_callers_at_once_do_not_wait_for_each_other() -> None:
    backend = Counting()
    pool = Pool(backend, 2)
    served: list[int] = []

    def body() -> None:
        for _ in range(3):
            with contextlib.suppress(SlotBroken), pool.lend() as slot:
                slot.runs += 1
                raise SlotBroken("the guest ended")
            with pool.lend(fresh=True) as slot:
                assert slot.runs == 0
                slot.runs += 1
        served.append(1)

    threads = [threading.Thread(target=body) for _ in range(8)]
    for thread in threads:
        thread.start()
    join(threads)
    pool.close()
    assert len(served) == 8


def test_at_most_two_slots_start_at_once() -> None:
    backend = Counting(delay_s=0.2)
    pool = Pool(backend, 6)
    gate = threading.Barrier(6)

    def body() -> None:
        with pool.lend():
            gate.wait(HANG_S)  # all six are lent at one time

    threads = [threading.Thread(target=body) for _ in range(6)]
    for thread in threads:
        thread.start()
    join(threads)
    pool.close()
    assert (backend.starts, backend.most) == (6, STARTS_AT_ONCE)


def test_a_worn_slot_serves_until_its_replacement_is_there() -> None:
    backend = Counting()
    pool = Pool(backend, 1)
    with pool.lend() as first:
        first.runs = RUNS_PER_SLOT
    backend.delay_s = 0.5
    with pool.lend() as slot:
        assert slot is first  # nobody waits for the start
        slot.runs += 1
    assert soon(lambda: list(pool._idle) not in ([], [first]))
    with pool.lend() as second:
        assert second is not first
        assert second.runs == 0
    assert soon(lambda: first._stream.fileno() == -1)
    pool.close()
    assert backend.starts == 2


def test_a_worn_slot_in_use_is_closed_when_it_comes_back() -> None:
    pool = Pool(Counting(), 1)

    with pool.lend() as first:
        first.runs = RUNS_PER_SLOT
    with pool.lend() as slot:
        assert slot is first
        assert soon(lambda: first in pool._spent)
        assert len(pool._idle) == 1
        other = start_threads([lambda: lend_once(pool)], pool)
        assert pool._lent == {first}  # never more at one time than there are slots
    join(other)
    assert soon(lambda: first._stream.fileno() == -1)
    pool.close()


def test_a_slot_is_not_worn_for_ever() -> None:
    backend = Counting()
    pool = Pool(backend, 1)
    with pool.lend() as first:
        first.runs = RUNS_PER_SLOT + RUNS_MEANWHILE
    with pool.lend() as second:
        assert second is not first
    pool.close()


def test_slots_that_work_serve_on_while_no_new_one_starts(caplog: pytest.LogCaptureFixture) -> None:
    """Worn ones too, past their last run, until one starts again."""
    backend = Counting()
    pool = Pool(backend, 3)
    with pool.lend() as first:
        first.runs = RUNS_PER_SLOT
        backend.fails = True
    for runs in (RUNS_PER_SLOT, RUNS_PER_SLOT + 1, RUNS_PER_SLOT + RUNS_MEANWHILE, 9_999):
        assert soon(lambda: not pool._starting)
        with pool.lend() as slot:
            assert slot is first
            slot.runs = runs
    assert soon(lambda: pool._open_until)
    assert "1 of 3 serve alone and none is started for 30 s: the disk is full" in caplog.text
    with pool.lend() as slot:
        waiting = start_threads([lambda: lend_once(pool)], pool)
    join(waiting)
    with pytest.raises(SandboxUnavailable, match="the disk is full"), pool.lend(fresh=True):
        pass
    assert backend.starts == 1 + FAILURES_TO_OPEN
    backend.fails = False
    pool._open_until = 0.0  # the pause is over
    with pool.lend(fresh=True) as slot:
        assert slot is not first
    pool.close()


def test_those_who_wait_are_refused_when_the_last_slot_breaks() -> None:
    backend = Counting()
    pool = Pool(backend, 2)
    refused, body = refusals(pool)
    with contextlib.suppress(SlotBroken), pool.lend():
        backend.fails = True
        with pytest.raises(SandboxUnavailable), pool.lend(fresh=True):
            pass
        threads = start_threads([body] * 3, pool)
        assert not refused
        raise SlotBroken("the guest ended")
    join(threads)
    pool.close()
    assert len(refused) == 3


def lend_once(pool: Pool) -> None:
    with pool.lend():
        pass


def refusals(pool: Pool) -> tuple[list[str], Callable[[], None]]:
    """Borrow a slot in each call, and collect why there was none."""
    refused: list[str] = []

    def body() -> None:
        try:
            lend_once(pool)
        except SandboxUnavailable as error:
            refused.append(str(error))

    return refused, body


def test_the_open_breaker_sends_everybody_away_at_once() -> None:
    backend = Counting(delay_s=0.1)
    backend.fails = True
    pool = Pool(backend, 2)
    refused, body = refusals(pool)
    threads = [threading.Thread(target=body) for _ in range(32)]
    for thread in threads:
        thread.start()
    join(threads)
    pool.close()
    assert len(refused) == 32
    assert all("3 bwrap sandboxes in a row did not start: the disk is full" in r for r in refused)
    assert backend.starts <= 4


def test_closing_sends_everybody_away() -> None:
    pool = Pool(Counting(), 1)
    refused, body = refusals(pool)
    with pool.lend():
        threads = start_threads([body] * 4, pool)
        pool.close()
    join(threads)
    assert refused == ["the sandbox is closed: make a new one"] * 4


def test_no_thread_to_start_slots_with_is_an_error_and_no_hang(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pool = Pool(Counting(), 1)

    def refuse(self: object, call: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(pool_module.Threads, "submit", refuse)
    with pytest.raises(SandboxUnavailable, match="can't start new thread"), pool.lend():
        pass
    pool.close()


def test_a_single_run_is_not_starved_by_a_large_batch(make_box) -> None:
    """Each of the batch's threads has one run in the line, so at most two go before it."""
    done: list[str] = []

    def counted(program: str):
        result = own.run(program)
        done.append(program)
        return result

    with make_box(slots=2) as own:
        own.run_many(["", ""])
        batch = threading.Thread(
            target=lambda: own.map(counted, ["import time; time.sleep(0.02)"] * 200)
        )
        batch.start()
        assert soon(lambda: len(done) > 10)
        waits = []
        for _ in range(10):
            before = len(done)
            assert own.run("print(1)").stdout == "1\n"
            waits.append(len(done) - before)
        assert len(done) < 200
        batch.join(HANG_S)
    assert len(done) == 200
    # Two that run, two in the line, and what is counted a moment late.
    assert max(waits) <= 10


def test_idle_slots_are_closed_and_come_back(make_box, backend_name: str) -> None:
    before = threading.active_count()
    with make_box(slots=3, idle_s=0.5) as own:
        assert threading.active_count() <= before  # nothing is idle yet
        found = own.run_many([f"import time; time.sleep(0.3); print({i})" for i in range(3)])
        assert [r.stdout for r in found] == ["0\n", "1\n", "2\n"]
        pool = own._pool
        assert pool._idle
        assert soon(lambda: not pool._idle)
        assert soon(lambda: not pool._shrinking)
        assert own.run("print(3)").stdout == "3\n"
        assert (len(pool._idle), own.backend) == (1, backend_name)
        assert soon(lambda: not pool._idle)


def test_slots_in_use_are_not_idle(make_box) -> None:
    with make_box(slots=2, idle_s=1.0) as own:
        own.run_many(["", ""])
        slots = set(own._pool._idle) | set(own._pool._lent)
        end = time.monotonic() + 2.5
        while time.monotonic() < end:
            assert own.run("print(1)").status is RunStatus.OK
        assert len(own._pool._idle) == 1
        assert set(own._pool._idle) <= slots  # the one in use stayed


@pytest.mark.parametrize("idle_s", [0, -1.0, float("nan")])
def test_idle_time_is_positive(idle_s: float) -> None:
    with pytest.raises(ValueError, match="idle_s must be positive"):
        Sandbox(idle_s=idle_s)
