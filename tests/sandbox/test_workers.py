"""Boxes in other processes: forked, spawned, pickled; and interpreters that end with them open."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from operator import methodcaller
from pathlib import Path

import pytest

from assay.sandbox.backends.docker import connect

pytestmark = pytest.mark.slow

HANG_S = 120

WORKERS = '''
"""What a data loader does: workers that each get a copy of a dataset, and keep it."""
import multiprocessing, sys, threading
from assay.sandbox import Sandbox


class Checked:
    def __init__(self, box):
        self.box = box

    def __getitem__(self, index):
        return self.box.run(f"print({index} ** 2)").stdout.strip()


def work(dataset, todo, done):
    for index in iter(todo.get, None):
        done.put((index, dataset[index]))


def busy(box, stop):
    while not stop.is_set():
        box.run("")


if __name__ == "__main__":
    context = multiprocessing.get_context("fork")
    box = Sandbox(slots=2, **dict([sys.argv[1].split("=")]))
    dataset = Checked(box)
    assert dataset[3] == "9"
    stop = threading.Event()
    runner = threading.Thread(target=busy, args=(box, stop))  # forks happen in the midst of runs
    runner.start()
    todo, done = context.Queue(), context.Queue()
    workers = [context.Process(target=work, args=(dataset, todo, done)) for _ in range(2)]
    for worker in workers:
        worker.start()
    for index in [*range(12), None, None]:
        todo.put(index)
    found = dict(done.get(timeout=60) for _ in range(12))
    for worker in workers:
        worker.join(60)
        assert worker.exitcode == 0, worker.exitcode
    assert found == {index: str(index ** 2) for index in range(12)}
    assert dataset[4] == "16"  # the parent's slots are still its own
    stop.set()
    runner.join()
    print("fine")
'''

LEAVES = """
import asyncio, sys, threading
from assay.sandbox import Limits, Sandbox

box = Sandbox(slots=3, limits=Limits(cpu_s=300), **dict([sys.argv[1].split("=")]))
box.run_many(["", ""])
next(box.run_many(iter(lambda: "print(1)", None), stream=True))


async def leave():
    try:
        await asyncio.wait_for(box.arun("while True: pass"), 0.5)
    except TimeoutError:
        print("left", flush=True)


threading.excepthook = lambda args: None  # the box is closed under them
threading.Thread(target=box.run, args=("while True: pass",), daemon=True).start()
stream = box.run_many(["while True: pass"] * 9, stream=True)
threading.Thread(target=next, args=(stream,), daemon=True).start()
asyncio.run(leave())
"""


@pytest.fixture(
    params=[
        pytest.param("docker", marks=pytest.mark.docker),
        pytest.param("bwrap", marks=pytest.mark.bwrap),
    ]
)
def option(request: pytest.FixtureRequest) -> str:
    """Argument of a Sandbox under each backend, as name=value."""
    if request.param == "bwrap":
        return "backend=bwrap"
    return f"image={request.getfixturevalue('image')}"


def run_script(tmp_path: Path, text: str, option: str) -> tuple[str, set[str]]:
    """What a script printed, and the slots that it left."""
    script = tmp_path / "script.py"
    script.write_text(text)
    client = subprocess.Popen(
        [sys.executable, str(script), option],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        said, _ = client.communicate(timeout=HANG_S)
    except subprocess.TimeoutExpired:
        os.killpg(client.pid, signal.SIGKILL)
        said = client.communicate()[0]
        pytest.fail(f"it hangs: {said}")
    assert client.returncode == 0, said
    deadline = time.monotonic() + 20
    name, _, value = option.partition("=")
    while (
        left := slots_left(client.pid, value if name == "image" else "")
    ) and time.monotonic() < deadline:
        time.sleep(0.1)
    return said, left


def slots_left(session: int, image: str) -> set[str]:
    """Processes of the session of a client that is gone, and its image's containers."""
    left = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == session and fields[0] != "Z":
            left.add(stat.parent.name)
    if image:
        client = connect()
        digest = client.inspect_image(image)["Id"]
        for found in client.containers(filters={"label": "assay.sandbox=1"}):
            pid = found["Labels"]["assay.sandbox.pid"].partition("-")[0]
            if found["ImageID"] == digest and not os.path.exists(f"/proc/{pid}"):
                left.add(found["Id"])
        client.close()
    return left


def test_workers_of_a_data_loader(tmp_path: Path, option: str) -> None:
    said, left = run_script(tmp_path, WORKERS, option)
    assert said.splitlines()[-1] == "fine"
    assert not left


def test_an_interpreter_that_ends_waits_for_nothing_and_leaves_nothing(
    tmp_path: Path, option: str
) -> None:
    """Its box is not closed, and three programs run that would take five minutes."""
    said, left = run_script(tmp_path, LEAVES, option)
    assert said == "left\n"
    assert not left


@pytest.mark.bwrap
def test_pickled_boxes_in_a_pool_of_processes(make_bwrap) -> None:
    context = multiprocessing.get_context("spawn")
    with make_bwrap(slots=1, idle_s=7.0) as own, ProcessPoolExecutor(1, context) as pool:
        assert own.run("print(0)").stdout == "0\n"
        calls = [pool.submit(methodcaller("run", f"print({i})"), own) for i in range(6)]
        assert [call.result(HANG_S).stdout for call in calls] == [f"{i}\n" for i in range(6)]
        assert pool.submit(repr, own).result(HANG_S) == "Sandbox(not started, slots=1)"
        copy = own.__reduce__()[0](*own.__reduce__()[1])
        assert (copy.slots, copy.idle_s, copy.limits) == (1, 7.0, own.limits)
        assert own.run("print(1)").stdout == "1\n"


@pytest.mark.bwrap
@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_fork_in_the_midst_of_everything_has_no_lock_that_is_held(make_bwrap) -> None:
    with make_bwrap(slots=1) as own:
        own.run("")
        own._lock.acquire()  # as another thread may hold them at the moment of a fork
        own._pool._lock.acquire()
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                code = 0 if own.run("print(2)").stdout == "2\n" else 2
                own.close()
            finally:
                os._exit(code)
        own._pool._lock.release()
        own._lock.release()
        assert os.waitpid(pid, 0)[1] == 0
        assert own.run("print(3)").stdout == "3\n"
