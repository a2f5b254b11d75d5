"""Hostile sessions: none stops its supervisor, forges a result, leaves or reaches anything."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path

import pytest

from assay.sandbox import Sandbox, Session, SessionEnded, SessionLimits

LIMITS = SessionLimits(memory_mib=256, pids=64, disk_mib=256)
FOLDER = Path(__file__).parent / "attacks"
PRELUDE = (FOLDER / "prelude.txt").read_text("utf-8")

# What a session may do, or what is no attack in a container of its own.
_MAY = {
    "files: writes the system",
    "known: 11 ten gigabytes of disk",
    "known: 19 files of process 1",  # what root may write there changes nothing: see below
    # A session has what its image has, and what an earlier command left.
    "view: homes",
    "view: users, names and settings of the host",
    "view: how this Python was made",
    "view: packages beside the standard library",
    "view: distributions",
    "view: modules that are not of the standard library",
    "view: folders of packages, put on the path",
    "view: installers",
    "view: commands of the host",
    "processes: raises its own limits",  # there is none of a process's CPU time
    "processes: killed when its parent dies",  # its keeper is another parent
    "network: a message to later programs in the times of connections",  # there are no later ones
}
# What root may do in a container of its own: the files and cgroup folders are the container's,
# process 1 ignores the signals, and without rights a capability is none.
_ROOT_MAY = {
    "files: compiled files of the standard library",
    "files: sticky, shared and foreign",
    "kernel: capabilities",
    "kernel: cgroups",
    "known: 14 kills and stops process 1",
    "known: 25 rights of the kernel",
    "processes: queues signals to process 1",
    "processes: sends signals to process 1 by pidfd",
    "view: folders that are hidden",
    "view: roots of other processes",
}

AGAINST_THE_SUPERVISOR = """
import ctypes, os, resource, signal, socket
libc = ctypes.CDLL(None, use_errno=True)
def get(what, call):
    try:
        found = call()
    except OSError:
        return
    if found not in (-1, b""):
        print("GOT", what, found)
for pid in (1, os.getppid()):
    for name in "mem environ maps fd/0 root cwd exe auxv stack syscall".split():
        path = f"/proc/{pid}/{name}"
        get(path, lambda: os.readlink(path) if name in ("fd/0", "root", "cwd", "exe")
            else open(path, "rb").read(64))
    get("to write its memory", lambda: open(f"/proc/{pid}/mem", "wb").write(b"x"))
    get("to write its stdout", lambda: open(f"/proc/{pid}/fd/1", "wb").write(b"x"))
    get("ptrace", lambda: libc.ptrace(16, pid, 0, 0))
    get("its priority", lambda: os.setpriority(os.PRIO_PROCESS, 1, 19))
    get("the priority of its user", lambda: os.setpriority(os.PRIO_USER, 0, 19))
    get("the priority of its group", lambda: os.setpriority(os.PRIO_PGRP, 1, 19))
    get("its core", lambda: os.sched_setaffinity(1, {0}))
    get("its policy", lambda: os.sched_setscheduler(1, os.SCHED_IDLE, os.sched_param(0)))
    for limit in (resource.RLIMIT_CPU, resource.RLIMIT_NOFILE, resource.RLIMIT_AS):
        get("its limits", lambda: resource.prlimit(pid, limit, (1, 1)))
get("its turn to be killed", lambda: open("/proc/1/oom_score_adj", "w").write("1000") and
    open("/proc/1/oom_score_adj").read().encode())
for capability in (8, 23, 24, 21, 19, 16):
    get(f"capability {capability}", lambda: libc.prctl(47, 2, capability, 0, 0))
get("a descriptor beside its own", lambda: [fd for fd in range(3, 1000)
    if os.path.exists(f"/proc/self/fd/{fd}")] or b"")
for call in (lambda: libc.mount(b"none", b"/mnt", b"tmpfs", 0, None), lambda: libc.chroot(b"/tmp"),
             lambda: libc.unshare(0x10000000), lambda: os.mknod("/tmp/device", 0o60666, 0x800)):
    get("the machine", call)
for path in ("/proc/sysrq-trigger", "/proc/sys/kernel/core_pattern", "/proc/sys/kernel/hostname"):
    get(path, lambda: open(path, "w").write("x"))
get("a network", lambda: socket.create_connection(("1.1.1.1", 53), 1))
get("a raw socket", lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW))
for number in range(1, 65):
    if number not in (signal.SIGKILL, signal.SIGSTOP):
        get("", lambda: os.kill(1, number) or b"")
for number in (signal.SIGKILL, signal.SIGSTOP):
    get("", lambda: os.kill(1, number) or b"")
print("done")
"""


@pytest.fixture(scope="module")
def s(session_box: Sandbox) -> Iterator[Session]:
    """A session that every attack here leaves usable."""
    with session_box.session(limits=LIMITS) as found:
        yield found


@pytest.fixture(autouse=True)
def _usable(s: Session) -> Iterator[None]:
    yield
    s.kill_all()
    assert s.exec("echo alive; ls -d /proc/[0-9]* | wc -l").text.split()[0] == "alive"


@pytest.mark.slow
def test_nothing_reaches_the_supervisor_or_the_machine(s: Session) -> None:
    for user in (0, "daemon"):
        result = s.exec(["python3", "-"], stdin=AGAINST_THE_SUPERVISOR.encode(), user=user)
        assert result.stdout == b"done\n", (user, result)


def attacks() -> Iterator[tuple[int, str, bytes]]:
    """Yield user, name and program of each attack of the suite that is one on a session too.

    Another user has fewer rights than root, and so runs only the attacks that report success.
    Attacks on the interpreter are on the guest of a slot, which no session has.
    """
    for path in sorted(FOLDER.glob("*.txt")):
        for text in re.split(r"^### ", path.read_text("utf-8"), flags=re.MULTILINE)[1:]:
            title, _, code = text.partition("\n")
            name, tells = f"{path.stem}: {title}", "GOT" in code or "attempt(" in code
            if name not in _MAY and (tells or path.stem != "interpreter"):
                yield 0, name, (PRELUDE + code).encode()
                if tells:
                    yield 12345, name, (PRELUDE + code).encode()


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_attacks_on_programs_get_nothing_from_a_session_either(session_box: Sandbox) -> None:
    clean_up = "find /tmp /dev/shm -mindepth 1 -delete; exec python3 -c 'print(6 * 7)'"

    def finds(part: int) -> list[tuple[int, str, bytes]]:
        got, session = [], session_box.session(limits=LIMITS, workdir="/tmp")
        for user, name, program in list(attacks())[part::3]:
            try:
                result = session.exec(["python3", "-"], stdin=program, timeout_s=3, user=user)
                session.kill_all()
                # What an earlier program left is no find of a later one.
                whole = session.exec(clean_up).stdout == b"42\n"
            except SessionEnded:  # it filled the disk; a SandboxError would be no verdict
                whole = False
            else:
                allowed = user == 0 and name in _ROOT_MAY
                if b"GOT" in result.stdout and not allowed:
                    got.append((user, name, result.stdout[:200]))
            if not whole:  # as root, it may break what is in the container
                session.close()
                session = session_box.session(limits=LIMITS, workdir="/tmp")
        session.close()
        return got

    with ThreadPoolExecutor(3) as pool:
        assert list(chain(*pool.map(finds, range(3)))) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "bomb",
    [
        "f() { f | f & }; f; sleep 60",
        "python3 -c 'import os\nwhile 1:\n try: os.fork()\n except OSError: pass'",
        "trap '' TERM INT HUP; while :; do (trap '' TERM; while :; do kill -CONT -1; done) & done",
        # What was stopped to be killed is woken by those that are not stopped yet.
        "python3 -c 'import os, signal\nfor i in range(20):\n if not os.fork():\n  os.setsid()\n"
        "  while 1: os.kill(-1, signal.SIGCONT)\nos.wait()'",
    ],
)
def test_what_multiplies_ends_with_its_time(s: Session, bomb: str) -> None:
    began = time.monotonic()
    s.exec(bomb, timeout_s=1)
    assert time.monotonic() - began < 20
    s.kill_all()
    assert s.exec("ls -d /proc/[0-9]* | wc -l").text.strip() in ("4", "5")  # 1, keeper, sh, ls, wc


def test_root_may_kill_all_but_process_1(s: Session) -> None:
    """The keeper of a command dies with it, and the result says so."""
    assert s.exec("kill -9 -1").returncode == -9
    assert s.exec("kill -9 $PPID; sleep 60", timeout_s=30).returncode == -9
    assert "sleep" not in s.exec("cat /proc/[0-9]*/comm").text
    assert s.shell().run("kill -9 $PPID; sleep 60").returncode == -9


@pytest.mark.slow
def test_who_stops_everything_holds_up_no_command_and_no_file(
    s: Session, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Those who report a command's end and move files are processes of the session too."""
    monkeypatch.setattr("assay.sandbox.sessions.session._TRANSFER_S", 2.0)
    stop = "import os\nwhile 1:\n try: os.kill(-1, 19)\n except OSError: pass"
    began = time.monotonic()
    for use in (
        lambda: s.exec("sleep 60", timeout_s=1).status.value == "timeout" or s.kill_all(),
        lambda: s.put("/tmp/x", bytes(5 << 20)),
        lambda: s.get("/etc/passwd"),
        lambda: s.get_dir("/etc", tmp_path / "etc"),
    ):
        s.start(["python3", "-c", stop])
        time.sleep(0.3)
        with contextlib.suppress(TimeoutError):  # one that was faster, or is killed with the rest
            use()
    assert time.monotonic() - began < 25


def test_what_is_fetched_ends_at_its_limit(s: Session, tmp_path: Path) -> None:
    """Files of nothing but holes take no room there, and would be long in coming."""
    s.exec("mkdir /tmp/d; cd /tmp/d; for i in $(seq 50); do truncate -s 4M $i; done")
    for fetch in (
        lambda: s.get_dir("/tmp/d", tmp_path / "d", limit_mib=8),
        lambda: s.get("/tmp/d/1", limit_mib=1),
    ):
        with pytest.raises(OSError, match="larger than limit_mib"):
            fetch()
    s.exec("rm -r /tmp/d")


@pytest.mark.slow
def test_programs_that_write_to_the_shells_report(s: Session) -> None:
    shell = s.shell()
    report = "for f in /proc/$$/fd/*; do case $(readlink $f) in pipe*) w=$f;; esac; done; "
    assert shell.run(report + "echo $w").text.startswith("/proc/")
    began = time.monotonic()
    assert shell.run("printf x >$w; sleep 60", timeout_s=1).timed_out
    shell.run("head -c 6000 /dev/zero | tr '\\0' 9 >$w; echo >$w", timeout_s=5)
    shell.run("yes 1 >$w & sleep 0.1", timeout_s=5)
    assert shell.run("sleep 1; echo done").status.value in ("ok", "runtime_error")
    assert len(shell._job.report) < 100
    assert time.monotonic() - began < 40


def test_a_flood_is_cut_and_costs_no_memory_here(s: Session) -> None:
    result = s.exec("head -c 300M /dev/zero", timeout_s=60)
    assert result.stdout_truncated == (300 << 20) - (1 << 20)
    process = s.start("yes")
    time.sleep(0.5)
    assert len(process.log()) == 1 << 20
    process.kill()


def test_links_and_special_files_are_not_followed(s: Session, tmp_path: Path) -> None:
    s.exec("""
        mkdir -p /w/real /w/out/inner; echo kept >/w/victim; ln -s /w/real /w/link
        ln -s /w/victim /w/file; mkfifo /w/fifo; ln /w/victim /w/hard
        cd /w/out; ln -s /etc/passwd l; mkfifo f; echo x >"inner/a
b"; ln -s .. inner/up; echo y >inner/y
    """)
    for call in (
        lambda: s.put("/w/link/x", b""),
        lambda: s.put("/w/real/../x", b""),
        lambda: s.put("/w/link/x", tmp_path),
        lambda: s.get("/w/link/x"),
        lambda: s.get("/w/file"),
        lambda: s.get("/w/fifo"),
        lambda: s.get("/dev/zero"),
        lambda: s.get("/w/real"),
        lambda: s.get_dir("/w/link", tmp_path / "a"),
        lambda: s.get_dir("/w/victim", tmp_path / "b"),
    ):
        with pytest.raises(OSError, match="at "):
            call()
    for name in ("file", "hard", "fifo"):
        s.put(f"/w/{name}", b"new")
        assert s.get(f"/w/{name}") == b"new"
    assert s.get("/w/victim") == b"kept\n"
    assert sorted(s.get_dir("/w/out", tmp_path / "c")) == ["f", "inner/up", "l"]
    assert (tmp_path / "c/inner/a\nb").read_text() == "x\n"
    with pytest.raises(FileExistsError):
        s.get_dir("/w/out", tmp_path / "c")


def test_tables_of_users_that_lie(session_box: Sandbox) -> None:
    with session_box.session(limits=LIMITS) as s:
        s.exec("rm /etc/passwd; mkfifo /etc/passwd")
        assert s.exec("id -u", user="daemon").returncode == 126
        assert s.exec("id -u", user="1234").text == "1234\n"
        s.exec("rm /etc/passwd; echo 'evil:x:0:0::/:/bin/sh\n::::::\n:::\n\n' >/etc/passwd")
        assert s.exec("id -u", user="1234").text == "1234\n"
        assert s.exec("id -u", user="nobody").returncode == 126


def test_memory_that_nobody_holds_ends_at_worst_the_session(session_box: Sandbox) -> None:
    """Files in /dev/shm are no process's: the kernel may find nothing else to kill."""
    with session_box.session(limits=LIMITS) as s:
        s.exec("for i in $(seq 20); do (sleep 30; :) & done; head -c 60M /dev/zero >/dev/shm/a")
        with contextlib.suppress(SessionEnded):  # never SandboxError, which would be no verdict
            s.exec("python3 -c 'x = bytearray(10**9)'")
            assert s.exec("echo alive").text == "alive\n"


def test_a_snapshot_is_for_its_owner_alone(session_box: Sandbox) -> None:
    """Root of a session is root of the machine's disk under bubblewrap: its programs are too."""
    with session_box.session(limits=LIMITS) as s:
        s.exec("cp /bin/sh /sh; chmod 4755 /sh; chmod 777 /")
        folder = Path(s.snapshot())
    if session_box.backend == "bwrap":
        assert (folder / "sh").stat().st_mode & 0o4000
        assert folder.parent.stat().st_mode & 0o777 == 0o700


EXCHANGES = """
import ctypes, os, time
os.makedirs("/r/d")
for i in range(200):
    open(f"/r/d/{i}", "w").close()
os.symlink(HOSTS, "/r/l")
print("ready", flush=True)
while 1:
    ctypes.CDLL(None).renameat2(-100, b"/r/d", -100, b"/r/l", 2)
    time.sleep(0.004)
"""


@pytest.mark.slow
def test_a_link_that_takes_a_folders_place_brings_a_branch_nothing(
    session_box: Sandbox, tmp_path: Path
) -> None:
    for i in range(200):
        (tmp_path / str(i)).write_text("the machine's")
    with session_box.session(limits=LIMITS) as s:
        process = s.start(["python3", "-c", EXCHANGES.replace("HOSTS", repr(str(tmp_path)))])
        while b"ready" not in process.log():
            time.sleep(0.05)
        for _ in range(3):
            with s.fork() as fork:
                assert fork.exec("cat /r/*/*").stdout == b""


def test_sessions_do_not_see_each_other(session_box: Sandbox) -> None:
    with session_box.session(limits=LIMITS) as one, session_box.session(limits=LIMITS) as other:
        one.start("exec -a secret sleep 100 || sleep 100")
        one.put("/dev/shm/x", b"secret")
        one.put("/tmp/x", b"secret")
        assert other.exec("cat /proc/[0-9]*/cmdline /dev/shm/x /tmp/x").text.count("secret") == 0
