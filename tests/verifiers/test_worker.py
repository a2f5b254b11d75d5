import asyncio
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from assay.verifiers import Math, Status
from assay.verifiers.maths.worker import Worker, WorkerError, WorkerLimits

pytestmark = pytest.mark.slow

BOMB = r"\boxed{9^{9^{9^{9}}} + x}"
GOLD = "1 + x"
LIMITS = WorkerLimits(cpu_s=0.5)
SURD = (r"\boxed{\sqrt{117}}", r"3\sqrt{13}")


def test_a_bomb_is_a_timeout_and_the_next_answer_is_fine() -> None:
    math = Math(limits=LIMITS)
    verdict = math.verify(BOMB, GOLD)
    assert (verdict.status, verdict.score) == (Status.TIMEOUT, 0.0)
    assert math.verify(*SURD).score == 1.0


def test_the_main_thread_runs_on_while_another_waits() -> None:
    """A power of nine holds the interpreter's lock: in our process nothing else would run."""
    math = Math(limits=LIMITS)
    found: list[Status] = []
    slow = r"\boxed{9^{9^{9^{9}}}}", r"9^{9^{9^{8}}}"  # a tower is tried if the reference has one
    thread = threading.Thread(target=lambda: found.append(math.verify(*slow).status))
    thread.start()
    ticks = 0
    while thread.is_alive():
        time.sleep(0.01)
        ticks += 1
    assert found == [Status.TIMEOUT]
    assert ticks >= 10


def test_it_works_from_an_event_loop() -> None:
    math = Math(limits=LIMITS)

    async def judged() -> list[Status]:
        calls = [asyncio.to_thread(math.verify, BOMB, GOLD), asyncio.to_thread(math.verify, *SURD)]
        return [v.status for v in await asyncio.gather(*calls)]

    assert asyncio.run(judged()) == [Status.TIMEOUT, Status.CORRECT]


def test_threads_share_one_worker() -> None:
    math = Math()
    replies = [rf"\boxed{{{k}x + \frac{{x}}{{2}}}}" for k in range(12)]
    golds = [rf"\frac{{{2 * k + 1}x}}{{2}}" for k in range(12)]
    with ThreadPoolExecutor(6) as threads:
        verdicts = list(threads.map(math.verify, replies, golds))
    assert [v.score for v in verdicts] == [1.0] * 12


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_children_start_workers_of_their_own(method: str) -> None:
    math = Math()
    assert math.verify(*SURD).score == 1.0  # the parent's worker is up when the child is made
    with multiprocessing.get_context(method).Pool(2) as pool:
        verdicts = pool.starmap(math.verify, [(r"\boxed{(x+2)^2}", "x^2+4x+4")] * 2)
    assert [v.score for v in verdicts] == [1.0, 1.0]
    assert math.verify(r"\boxed{(x-2)^2}", "x^2-4x+4").score == 1.0


def test_a_worker_killed_from_outside_is_replaced() -> None:
    worker = Worker()
    question = {"op": "same", "gold": "x+1", "answer": "1+x", "digits": None}
    assert worker.ask(question).kind == "same"
    assert worker._process is not None
    os.kill(worker._process.pid, signal.SIGKILL)
    assert worker.ask(question).kind == "same"
    worker.close()
    worker.close()


def test_memory_is_bounded() -> None:
    worker = Worker(WorkerLimits(cpu_s=20.0, memory_mib=400))
    bomb = {"op": "same", "gold": "x", "answer": r"x + 2^{40000000000}", "digits": None}
    assert worker.ask(bomb).kind in {"memory", "unparseable", "different", "crash"}
    assert worker.ask({"op": "check", "gold": "x+1"}).kind == "same"
    worker.close()


def test_starvation_is_not_the_replys_fault() -> None:
    """A worker that is stopped gets no CPU time: nothing can be said about the answer."""
    worker = Worker(WorkerLimits(cpu_s=5.0, wall_s=0.5))
    assert worker.ask({"op": "check", "gold": "x+1"}).kind == "same"
    assert worker._process is not None
    os.kill(worker._process.pid, signal.SIGSTOP)
    with pytest.raises(WorkerError, match="overloaded"):
        worker.ask({"op": "check", "gold": "x+2"})
    assert worker.ask({"op": "check", "gold": "x+2"}).kind == "same"
    worker.close()


def test_no_worker_outlives_its_process() -> None:
    code = (
        "import os, signal\n"
        "from assay.verifiers.maths.worker import Worker\n"
        "w = Worker(); w.ask({'op': 'check', 'gold': 'x+1'})\n"
        "print(w._process.pid, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    pid = int(found.stdout)
    for _ in range(600):
        if not _alive(pid):
            return
        time.sleep(0.05)
    pytest.fail(f"worker {pid} is still there")


def _alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] != b"Z"
    except OSError:
        return False
