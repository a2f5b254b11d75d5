"""The unsafe backend: asked for twice, named everywhere, and careful about whom it kills."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from assay.sandbox import Limits, RunStatus, Sandbox
from assay.sandbox.backends.guest_source import guest_command
from assay.sandbox.guest import cleanup

NAME = "process (UNSAFE)"


def folders() -> set[Path]:
    return {*Path("/tmp").glob("assay-unsafe-*"), *Path(tempfile.gettempdir()).glob("assay-uns*")}


def gone(path: Path | str) -> bool:
    deadline = time.monotonic() + 20
    while os.path.exists(path):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


@pytest.fixture(scope="module")
def unsafe() -> Iterator[Sandbox]:
    """A warm box of one slot, isolated from nothing."""
    limits = Limits(cpu_s=2.0, wall_s=20.0, memory_mib=128)
    with Sandbox(backend="process", unsafe=True, slots=1, limits=limits) as found:
        with pytest.warns(RuntimeWarning, match="UNSAFE: programs run as processes of this"):
            found.run("")
        yield found


@pytest.fixture
def bystander() -> Iterator[subprocess.Popen[bytes]]:
    """A process of the same user that has nothing to do with any of it."""
    with subprocess.Popen(["sleep", "1000"]) as process:
        yield process
        assert process.poll() is None
        process.kill()


def test_it_is_asked_for_twice() -> None:
    with pytest.raises(ValueError, match=r"no isolation at all.*'docker' or.*'bwrap'.*unsafe=True"):
        Sandbox(backend="process")
    for backend in (None, "docker", "bwrap"):
        with pytest.raises(ValueError, match="unsafe=True is for backend='process' only"):
            Sandbox(backend=backend, unsafe=True)
    with pytest.raises(ValueError, match="no image"):
        Sandbox("python:3.12", backend="process", unsafe=True)


def test_the_environment_does_not_choose_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSAY_SANDBOX", "process")
    with pytest.raises(ValueError, match=r"must be 'docker' or 'bwrap'.*, got 'process'"):
        Sandbox()
    with pytest.raises(ValueError, match="unsafe=True is for backend='process' only"):
        Sandbox(unsafe=True)


def test_it_is_named_everywhere(unsafe: Sandbox) -> None:
    result = unsafe.run("print(6 * 7)")
    assert (result.stdout, result.backend, result.image) == ("42\n", NAME, "")
    assert repr(unsafe) == f"Sandbox({NAME}, slots=1)"
    assert unsafe.backend == NAME
    other = Sandbox(backend="process", unsafe=True, slots=2)
    assert repr(other) == f"Sandbox({NAME}, not started, slots=2)"
    assert repr(other.__reduce__()[0](*other.__reduce__()[1])) == repr(other)


def test_it_grades_as_the_others_do(unsafe: Sandbox) -> None:
    code = "def add(a, b): return a + b"
    assert unsafe.check_stdio("print(int(input()) + 1)", [("1", "2")]).solved
    assert unsafe.check_calls(code, "add", [((1, 2), 3)]).solved
    assert unsafe.check_tests(code, "assert add(1, 2) == 3").solved
    assert not unsafe.check_tests("import os; os._exit(0)", "assert add(1, 2) == 3").solved


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("1 / 0", RunStatus.RUNTIME_ERROR),
        ("exit(", RunStatus.COMPILE_ERROR),
        ("while True: pass", RunStatus.TIMEOUT),
        ("x = bytearray(1 << 30)", RunStatus.MEMORY),
        ("while True: print('x' * 9999)", RunStatus.OUTPUT_LIMIT),
    ],
)
def test_programs_end_as_under_the_others(unsafe: Sandbox, code: str, status: RunStatus) -> None:
    cpu_s = 0.5 if status is RunStatus.TIMEOUT else 10.0
    assert unsafe.run(code, limits=Limits(cpu_s=cpu_s, memory_mib=128)).status is status


def test_the_cpu_time_of_children_counts(unsafe: Sandbox) -> None:
    code = "import os\nos.fork()\nwhile True: pass"
    found = unsafe.run(code, limits=Limits(cpu_s=0.5, wall_s=20.0, memory_mib=128))
    assert found.status is RunStatus.TIMEOUT
    assert "CPU" in found.reason


def test_nothing_of_ours_is_in_its_environment(
    unsafe: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_TOKEN", "hunter2")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with Sandbox(backend="process", unsafe=True, slots=1) as other:
            said = other.run("import os; print(dict(os.environ), os.getcwd(), os.listdir())").stdout
            guest = other.run("import os; print(open(f'/proc/{os.getppid()}/environ').read())")
    assert "hunter2" not in said + guest.stdout
    assert "/assay-unsafe-" in said
    assert said.endswith("[]\n")


DAEMONS = """
import os, time
for _ in range(3):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            open(str(os.getpid()), "w").write("left")
            time.sleep(1000)
        os._exit(0)
while len(os.listdir()) < 3:
    time.sleep(0.01)
print(*os.listdir(), os.getcwd())
"""

BOMB = """
import os, signal
for number in range(1, 32):
    if number not in (9, 19):
        signal.signal(number, signal.SIG_IGN)
while True:
    try:
        if os.fork() == 0:
            os.setsid()
    except OSError:
        pass
    os.kill(0, signal.SIGCONT)
"""


def test_what_a_program_started_ends_and_nothing_else(
    unsafe: Sandbox, bystander: subprocess.Popen[bytes]
) -> None:
    found = unsafe.run(DAEMONS)
    *pids, folder = found.stdout.split()
    assert (found.status, found.orphans, len(pids)) == (RunStatus.OK, 3, 3)
    assert not [pid for pid in pids if os.path.exists(f"/proc/{pid}")]
    assert os.listdir(folder) == []
    assert unsafe.run("print(1)").orphans == 0


def test_a_fork_bomb_ends(unsafe: Sandbox, bystander: subprocess.Popen[bytes]) -> None:
    found = unsafe.run(BOMB, limits=Limits(cpu_s=1.0, wall_s=20.0, memory_mib=128, pids=24))
    assert found.status is RunStatus.TIMEOUT
    # Its processes wake those that were stopped, so it may take several rounds to kill them all.
    assert found.orphans >= 1
    after = unsafe.run("print(1)")
    assert (after.stdout, after.orphans, after.attempts) == ("1\n", 0, 1)


def test_closing_leaves_no_folder() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with Sandbox(backend="process", unsafe=True, slots=1) as own:
            folder = own.run("import os; open('left', 'w'); print(os.getcwd())").stdout.strip()
            assert os.path.isdir(folder)
    assert not os.path.exists(folder)


CLIENT = """
import sys, threading, warnings
from assay.sandbox import Limits, Sandbox
warnings.simplefilter("ignore")
box = Sandbox(backend="process", unsafe=True, slots=1, limits=Limits(cpu_s=300.0))
print(box.run("import os; print(os.getppid(), os.getcwd())").stdout, end="", flush=True)
if sys.argv[1] == "busy":
    box.run('''if True:
        import os, time
        open("left", "w")
        if os.fork() == 0:
            os.setsid()
        time.sleep(1000)
    ''')
sys.stdin.read()
"""


@pytest.mark.slow
@pytest.mark.parametrize("state", ["idle", "busy"])
def test_a_killed_client_leaves_nothing(state: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", CLIENT, state],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as client:
        guest, folder = client.stdout.readline().split()
        wanted, deadline = 2 if state == "busy" else 0, time.monotonic() + 60
        while len(children := descendants(int(guest))) != wanted:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        client.kill()
    assert gone(folder)
    assert gone(f"/proc/{guest}")
    assert all(gone(f"/proc/{pid}") for pid in children)


def descendants(pid: int) -> list[int]:
    found = [pid]
    for parent in found:
        text = Path(f"/proc/{parent}/task/{parent}/children").read_text()
        found += [int(child) for child in text.split()]
    return found[1:]


USER = """
import sys, warnings
from assay.sandbox import Limits, Sandbox
warnings.simplefilter("ignore")
limits = Limits(cpu_s=1.0, wall_s=20.0, memory_mib=128, pids=24)
with Sandbox(backend="process", unsafe=True, slots=1, limits=limits) as box:
    for code in {programs!r}:
        result = box.run(code)
        print(result.status.value, result.orphans, result.attempts, *result.stdout.split())
"""

MOVES_ITS_FOLDER_AWAY = """
import os
folder = os.getcwd()
open("inside", "w")
os.rename(folder, folder + "-moved")
os.symlink({target!r}, folder)
"""


def as_a_user(programs: list[str]) -> list[list[str]]:
    """Run programs in an unsafe box of somebody who is not root, so is the programs' user."""
    command = [sys.executable, "-c", USER.replace("{programs!r}", repr(programs))]
    if os.geteuid() == 0:
        if shutil.which("setpriv") is None:
            pytest.skip("needs setpriv")
        # The tests' Python may be in a folder that only root can enter.
        read = "+dac_read_search"
        users = ["--reuid=65534", "--regid=65534", "--clear-groups"]
        command = ["setpriv", *users, f"--inh-caps={read}", f"--ambient-caps={read}", *command]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=120, check=False, cwd="/"
    )
    if "cap" in done.stderr and not done.stdout:
        pytest.skip(done.stderr)
    assert done.returncode == 0, done.stderr
    return [line.split() for line in done.stdout.splitlines()]


def test_programs_of_a_user_end_too(bystander: subprocess.Popen[bytes]) -> None:
    (bomb, daemons, hello) = as_a_user([BOMB, DAEMONS, "print(1)"])
    assert bomb[0] == "timeout"
    assert 1 <= int(bomb[1]) <= 80  # the kernel counts all that the user runs, not just these
    assert daemons[:3] == ["ok", "3", "1"]
    assert not [pid for pid in daemons[3:6] if os.path.exists(f"/proc/{pid}")]
    assert hello == ["ok", "0", "1", "1"]


def test_only_its_own_folder_is_emptied(tmp_path: Path) -> None:
    """A program may put a link to somebody's files in the place of its folder."""
    target = tmp_path / "home"
    target.mkdir(mode=0o777)
    target.chmod(0o777)
    for folder in (tmp_path, *tmp_path.parents[:3]):
        if folder != Path("/tmp") and os.geteuid() == 0:
            folder.chmod(folder.stat().st_mode | 0o055)
    (target / "precious").write_text("mine")
    (target / "precious").chmod(0o666)
    before = folders()
    found = as_a_user([MOVES_ITS_FOLDER_AWAY.format(target=str(target)), "print(1)"])
    for left in folders() - before:  # what it moved away is not ours to find, nor other tests'
        if left.is_symlink():
            left.unlink()
        elif left.name.endswith("-moved"):
            shutil.rmtree(left)
    assert found == [["ok", "0", "1"], ["ok", "0", "1", "1"]]
    assert (target / "precious").read_text() == "mine"


def test_a_program_that_kills_its_guest_broke_its_sandbox() -> None:
    kill = "import os, signal; os.kill(os.getppid(), signal.SIGKILL)"
    (found, hello) = as_a_user([kill, "print(1)"])
    assert found == ["broke_sandbox", "0", "2"]
    assert hello == ["ok", "0", "1", "1"]


def test_without_the_flag_the_guest_is_process_1_or_nothing() -> None:
    config = {"uid_base": 1, "memory_cgroup": False, "process_limit": False, "preload": []}
    for folder in ({}, {"unsafe_folder": ""}):
        command = guest_command(sys.executable, config | folder)
        assert json.loads(command[-1]) == config | folder
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode != 0
        assert "must be process 1" in done.stderr


def test_everything_is_killed_by_process_1_only(monkeypatch: pytest.MonkeyPatch) -> None:
    killed: list[tuple[int, int]] = []
    monkeypatch.setattr(cleanup.os, "kill", lambda *args: killed.append(args))
    with pytest.raises(RuntimeError, match="outside a pid namespace"):
        cleanup.kill_all({}, {"cpu": 0.0, "rss": 0}, [])
    assert killed == []
    monkeypatch.setattr(cleanup.os, "getpid", lambda: 1)
    cleanup._kill_everything()
    assert killed == [(-1, signal.SIGKILL)]
