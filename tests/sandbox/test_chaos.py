"""Containers, daemons and clients that die under load: right results or none, never wrong ones.

ASSAY_CHAOS_PROGRAMS sets how many programs each test runs (default 200).
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

from assay.sandbox import Limits, Result, RunStatus, Sandbox, SandboxUnavailable
from assay.sandbox.backends.docker import DockerBackend, connect

pytestmark = [
    pytest.mark.usefixtures("collected"),
    pytest.mark.docker,
    pytest.mark.timeout(600),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
    pytest.mark.slow,
]

COUNT = int(os.environ.get("ASSAY_CHAOS_PROGRAMS", "200"))
PROGRAMS = [f"import time; time.sleep(0.03); print({i})" for i in range(COUNT)]
LOCAL = "unix:///var/run/docker.sock"


def judge(found: list[Result]) -> Counter[str]:
    """Count the statuses; each result must be right, or honestly none."""
    for i, result in enumerate(found):
        assert result.status in (RunStatus.OK, RunStatus.SANDBOX_ERROR), result
        if result.status is RunStatus.OK:
            assert result.stdout == f"{i}\n"
    count = Counter(result.status.value for result in found)
    again = sum(result.attempts > 1 for result in found)
    print(f"{dict(count)}, {again} of them run again")  # noqa: T201 - the figures, with -s
    return count


def containers(url: str, pid: int) -> list[str]:
    """Those of a client, running or not."""
    with contextlib.closing(connect(60, url)) as client:
        found = client.containers(all=True, filters={"label": "assay.sandbox=1"})
    return [c["Id"] for c in found if c["Labels"]["assay.sandbox.pid"].startswith(f"{pid}-")]


def wait_until_none(find, *arguments: object) -> None:
    deadline = time.monotonic() + 30
    while (left := find(*arguments)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert left == []


def kill_at_random(url: str, done: list[int], killed: list[str], stop: threading.Event) -> None:
    """Kill a container of ours for each few programs that are done, as an operator may."""
    draw = random.Random(0)  # noqa: S311 - no secret
    due = 0
    with contextlib.closing(connect(60, url)) as client:
        while not stop.wait(0.01):
            if len(done) < due:
                continue
            own = containers(url, os.getpid())
            if own:
                victim = draw.choice(own)
                with contextlib.suppress(Exception):  # just gone by itself
                    client.kill(victim)
                    killed.append(victim)
                    due = len(done) + draw.randrange(1, 20)


def test_containers_killed_at_random(image: str, second) -> None:
    done: list[int] = []
    killed: list[str] = []
    stop = threading.Event()
    with Sandbox(image, hosts=[second.url], slots=4) as box:
        box.run("")

        def run(program: str) -> Result:
            try:
                return box.run(program)
            except SandboxUnavailable as error:
                return Result(RunStatus.SANDBOX_ERROR, reason=str(error))
            finally:
                done.append(1)

        killer = threading.Thread(target=kill_at_random, args=(second.url, done, killed, stop))
        killer.start()
        try:
            found = box.map(run, PROGRAMS)
        finally:
            stop.set()
            killer.join()
    print(f"{len(killed)} containers killed under {COUNT} programs")  # noqa: T201
    assert len(killed) > COUNT / 40
    assert judge(found)["sandbox_error"] <= COUNT / 50
    wait_until_none(containers, second.url, os.getpid())


@pytest.mark.parametrize(
    ("way", "number"), [("DOCKER_HOST", signal.SIGTERM), ("hosts", signal.SIGKILL)]
)
def test_a_daemon_that_is_started_again(
    image: str, second, way: str, number: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stopped by an upgrade, or crashed."""

    def restart() -> None:
        second.stop(number)
        time.sleep(2)
        second.start()

    shims = set(second.processes("containerd-shim"))
    if way == "DOCKER_HOST":
        monkeypatch.setenv("DOCKER_HOST", second.url)
    with Sandbox(image, hosts=[second.url] if way == "hosts" else None, slots=3) as box:
        box.run("")
        restarter = threading.Timer(0.5, restart)
        restarter.start()
        found = box.run_many(PROGRAMS)
        restarter.join()
    assert judge(found) == {"ok": COUNT}
    wait_until_none(containers, second.url, os.getpid())
    if number == signal.SIGTERM:  # a daemon that crashed may forget what it was just starting
        wait_until_none(lambda: list(set(second.processes("containerd-shim")) - shims))


@pytest.mark.parametrize("way", ["DOCKER_HOST", "hosts"])
def test_a_full_disk_of_the_daemon_stops_no_slot_that_works(
    image: str,
    start_daemon,
    way: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    daemon = start_daemon(disk_mib=512)
    if way == "DOCKER_HOST":
        monkeypatch.setenv("DOCKER_HOST", daemon.url)
    with Sandbox(image, hosts=[daemon.url] if way == "hosts" else None, slots=4) as box:
        box.run_many(["import time; time.sleep(1)"] * 2)
        daemon.fill_disk()
        found = box.run_many(PROGRAMS)
    assert judge(found) == {"ok": COUNT}
    assert "no space left on device" in caplog.text
    daemon.end()


CLIENT = """
import sys
from assay.sandbox import Sandbox
box = Sandbox(sys.argv[1], slots=2)
box.run("")
print("ready", flush=True)
box.run_many(["import os\\nwhile True: os.fork()", "while True: pass"] * 10)
"""


def client_of(image: str, *before: str) -> subprocess.Popen[str]:
    """A client with busy slots, in a process of its own."""
    command = [*before, sys.executable, "-c", CLIENT, image]
    client = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert client.stdout is not None
    assert client.stdout.readline() == "ready\n"
    time.sleep(0.5)
    client.stdout.close()
    return client


def test_a_client_that_is_stopped_and_then_killed(image: str) -> None:
    client = client_of(image)
    client.send_signal(signal.SIGSTOP)
    time.sleep(0.5)
    assert containers(LOCAL, client.pid)  # it may go on
    client.kill()
    client.wait()
    wait_until_none(containers, LOCAL, client.pid)


def test_a_client_killed_in_a_pid_namespace_of_its_own(image: str) -> None:
    """As in a container, where process numbers mean nothing to others."""
    if os.geteuid() or shutil.which("unshare") is None:
        pytest.skip("needs root and unshare")
    before = labelled()
    client = client_of(image, "unshare", "--pid", "--fork", "--kill-child", "--mount-proc")
    own = labelled() - before
    assert own
    client.kill()
    client.wait()
    wait_until_none(lambda: list(own & labelled()))


def labelled() -> set[str]:
    with contextlib.closing(connect()) as client:
        found = client.containers(all=True, filters={"label": "assay.sandbox=1"})
    return {container["Id"] for container in found}


HALF_WAY = """
import sys, time
from assay.sandbox import Limits
from assay.sandbox.backends.docker import DockerBackend
backend = DockerBackend(sys.argv[1], Limits(), host=sys.argv[2])
print(backend._client.create_container(**backend._description(backend._client))["Id"], flush=True)
time.sleep(600)
"""


def test_what_a_client_made_but_never_started_is_swept_by_the_next(image: str, second) -> None:
    """It has no stream that could end it; on another machine's daemon too."""
    client = subprocess.Popen(
        [sys.executable, "-c", HALF_WAY, image, second.url], stdout=subprocess.PIPE, text=True
    )
    assert client.stdout is not None
    made = client.stdout.readline().strip()
    DockerBackend(image, Limits(), host=second.url).close()
    assert containers(second.url, client.pid) == [made]  # its client lives
    client.kill()
    client.wait()
    client.stdout.close()
    DockerBackend(image, Limits(), host=second.url).close()
    assert containers(second.url, client.pid) == []


def test_nothing_of_a_box_is_left_on_the_machine(image: str, second) -> None:
    mounts, shims = set(second.mounts()), set(second.processes("containerd-shim"))
    with Sandbox(image, hosts=[second.url], slots=2) as box:
        box.run_many(["import os\nos.fork()\nopen('/tmp/a', 'w').write('x')"] * 10)
        assert set(second.processes("containerd-shim")) > shims
    wait_until_none(containers, second.url, os.getpid())
    wait_until_none(lambda: list(set(second.processes("containerd-shim")) - shims))
    assert set(second.mounts()) <= mounts
    assert list(Path(second.root, "data", "containers").iterdir()) == []
