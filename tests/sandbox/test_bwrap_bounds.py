"""Bubblewrap: memory of the whole program where there are control groups, and one user only."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from assay.sandbox import Limits, RunStatus, Sandbox
from assay.sandbox.backends import bwrap, cgroup

pytestmark = pytest.mark.slow

LIMITS = Limits(cpu_s=1.0, wall_s=6.0, memory_mib=96)
MANY_SMALL = """
import os, time
for i in range(12):
    if os.fork() == 0: break
held = os.urandom(1 << 20) * 24
time.sleep(20)
"""


def ours() -> set[Path]:
    homes = cgroup._homes(cgroup.MEMORY) or {}
    return {path for home in homes.values() for path in home.glob(f"assay-slot-{os.getpid()}-*")}


@pytest.mark.bwrap
def test_memory_is_bounded_as_a_whole(make_bwrap) -> None:
    if not cgroup.can_group():
        pytest.skip("this user may make no control groups")
    before = ours()
    with make_bwrap(slots=1, limits=LIMITS) as box:
        result = box.run(MANY_SMALL + "while True: pass")
        assert result.status in (RunStatus.MEMORY, RunStatus.TIMEOUT)
        shared = "import mmap\nheld = [mmap.mmap(-1, 30 << 20) for i in range(9)]\n"
        result = box.run(shared + "for m in held:\n    m.write(b'x' * (30 << 20))")
        assert result.status is RunStatus.MEMORY
        assert box.run("x = bytearray(60 << 20)\nprint(len(x))").stdout == f"{60 << 20}\n"
        assert len(ours() - before) == 1
    assert ours() == before


@pytest.mark.bwrap
def test_guests_that_are_killed_from_outside_cost_no_program_its_verdict(make_bwrap) -> None:
    """As a watcher of the machine's memory kills: a whole control group. Twice was a zero."""
    if os.geteuid() or not cgroup.can_group():
        pytest.skip("needs root, which may make control groups")
    seen = ours()
    enough, looks = len(seen) + 2, Counter[Path]()

    def kill() -> None:
        while len(seen) < enough:
            time.sleep(0.05)
            for group in ours() - seen:
                with contextlib.suppress(OSError):
                    processes = (group / "cgroup.procs").read_text().split()
                    status = [Path(f"/proc/{pid}/status").read_text() for pid in processes]
                    looks[group] += not all("Uid:\t0" in text for text in status)
                    if looks[group] == 5:  # a program runs, and not the guest's own trial
                        seen.add(group)
                        for pid in processes:
                            os.kill(int(pid), signal.SIGKILL)

    killer = threading.Thread(target=kill, daemon=True)
    with make_bwrap(slots=1, limits=LIMITS) as box:
        killer.start()
        result = box.run("import time; time.sleep(3); print(1)")
        assert (result.status, result.stdout, result.attempts) == (RunStatus.OK, "1\n", 3)


@pytest.mark.bwrap
def test_groups_of_dead_clients_are_swept(make_bwrap) -> None:
    if not cgroup.can_group():
        pytest.skip("this user may make no control groups")
    script = """
import os, sys, time
from assay.sandbox import Sandbox
box = Sandbox(backend="bwrap", slots=1)
box.run("")
print(os.getpid(), flush=True)
time.sleep(60)
"""
    client = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert client.stdout is not None
    pid = client.stdout.readline().strip()
    (home,) = cgroup._homes(cgroup.MEMORY).values()
    assert len(list(home.glob(f"assay-slot-{pid}-*"))) == 1
    client.send_signal(signal.SIGKILL)
    client.communicate()
    deadline = time.monotonic() + 20
    while list(home.glob(f"assay-slot-{pid}-*")) and time.monotonic() < deadline:
        cgroup.sweep_groups()
        time.sleep(0.05)
    assert not list(home.glob(f"assay-slot-{pid}-*"))


def test_where_groups_may_be_made() -> None:
    """What is made there for a try finds out which of them hands controllers on."""
    root = Path("/sys/fs/cgroup")
    found = list(cgroup._candidates("0::/user.slice/term.scope\n", cgroup.ALL, root))
    folders = (root / "user.slice" / "term.scope", root / "user.slice", root)
    assert found == [dict.fromkeys(cgroup.ALL, folder) for folder in folders]
    first = "5:cpu,cpuacct:/x\n4:memory:/a/b\n3:pids:/\n0::/user.slice\n"
    memory = {"memory": root / "memory" / "a" / "b"}
    assert list(cgroup._candidates(first, cgroup.MEMORY, root)) == [memory]
    others = {"pids": root / "pids", "cpu": root / "cpu" / "x"}
    assert list(cgroup._candidates(first, cgroup.ALL, root)) == [memory | others]


@pytest.fixture
def one_user(make_bwrap, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sandbox]:
    """A box as somebody has it who is not root, and may make no control groups."""
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(bwrap, "make_group", lambda kind, size: None)
    with make_bwrap(slots=1, limits=LIMITS) as box:
        yield box


CHANGES = {
    "place without rights": "import os; os.chmod('/tmp', 0)",
    "place without its sticky bit": "import os; os.chmod('/tmp', 0o777)",
    "scheduling": "import os; os.sched_setscheduler(1, os.SCHED_IDLE, os.sched_param(0))",
    "cores": "import os; os.sched_setaffinity(1, {min(os.sched_getaffinity(0))})",
    "priority": "import os; os.setpriority(os.PRIO_PROCESS, 1, 19)",
    "one limit": "import resource as r; r.prlimit(1, r.RLIMIT_MEMLOCK, (0, 0))",
    "signals": "import os\nfor s in (1, 2, 9, 15, 19, 64): os.kill(1, s)",
    "files": "open('/tmp/x', 'w'); import os; os.mkdir('/dev/shm/d', 0)",
}
STATE = """
import os, resource, stat
print(oct(os.stat('/tmp').st_mode), os.listdir('/tmp'), os.sched_getscheduler(0), os.nice(0),
    len(os.sched_getaffinity(0)), resource.getrlimit(resource.RLIMIT_MEMLOCK))
"""


@pytest.mark.bwrap
@pytest.mark.parametrize("name", CHANGES)
def test_with_one_user_what_a_program_changes_is_gone_with_its_slot(
    one_user: Sandbox, name: str
) -> None:
    before = one_user.run(STATE)
    changing = one_user.run(CHANGES[name])
    assert (changing.status, changing.attempts) == (RunStatus.OK, 1), changing
    after = one_user.run(STATE)
    assert after.status is RunStatus.OK
    assert after.stdout == before.stdout


@pytest.mark.bwrap
def test_with_one_user_a_program_that_ends_two_guests_is_to_blame(one_user: Sandbox) -> None:
    code = "import resource as r\nfor n in range(16): r.prlimit(1, n, (0, 0))\nprint(1, flush=True)"
    result = one_user.run(code)
    assert (result.status, result.attempts) == (RunStatus.BROKE_SANDBOX, 2)
    check = one_user.check_tests(code + "\ndef f(): return 1", "assert f() == 1")
    assert (check.status, check.solved) == (RunStatus.BROKE_SANDBOX, False)
    assert one_user.run("print(1)").stdout == "1\n"


@pytest.mark.bwrap
def test_with_one_user_memory_is_bounded_for_each_process(one_user: Sandbox) -> None:
    assert one_user.run("x = bytearray(200 << 20)").status is RunStatus.MEMORY
