"""Sessions: commands, a shell, files, branches, limits, and their end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from assay.sandbox import (
    ImageUnavailable,
    RunStatus,
    Sandbox,
    SandboxError,
    Session,
    SessionEnded,
    SessionLimits,
    build_folder,
)
from assay.sandbox.backends.docker import connect

LIMITS = SessionLimits(memory_mib=256, pids=64, disk_mib=64, output_bytes=100_000)


@pytest.fixture(scope="module")
def s(session_box: Sandbox) -> Iterator[Session]:
    """A session that tests share, each in files of its own."""
    with session_box.session(limits=LIMITS) as found:
        yield found


def test_a_command_says_how_it_ended(s: Session) -> None:
    result = s.exec("echo out; echo err >&2; exit 3")
    assert (result.status, result.returncode) == (RunStatus.RUNTIME_ERROR, 3)
    assert (result.stdout, result.stderr) == (b"out\n", b"err\n")
    assert s.exec(["sh", "-c", "kill -TERM $$"]).returncode == -signal.SIGTERM
    assert s.exec(["printf", "%s", "a b", "*"]).text == "a b*"
    assert s.exec(["/no/such"]).returncode == 127
    assert s.exec("cat", stdin=b"in" * 500_000).stdout_truncated == 900_000
    with pytest.raises(ValueError, match="at most"):  # it ended the supervisor, as a lost session
        s.exec("x" * (17 << 20))


def test_variables_folder_and_user(session_box: Sandbox) -> None:
    with session_box.session(limits=LIMITS, workdir="/usr", env={"A": "1"}, user="daemon") as s:
        assert s.exec("pwd; echo $A$B; id -un", env={"B": "2"}).text == "/usr\n12\ndaemon\n"
        assert s.exec("pwd; id -u; id -g", cwd="/", user="12345:54321").text == "/\n12345\n54321\n"
        assert s.exec("cat /proc/self/status | grep CapEff").text.split()[1] == "0" * 16
        assert s.exec("echo no", user="nobody-here").returncode == 126
        with pytest.raises(ValueError, match="variable"):
            s.exec("true", env={"A=B": "1"})


def test_time_is_over_for_the_whole_tree_and_nothing_else(s: Session) -> None:
    s.exec("sleep 111 & setsid sleep 112 >/dev/null 2>&1 &")
    began = time.monotonic()
    result = s.exec("(setsid sh -c 'sleep 113; sleep 114' &) ; sleep 115", timeout_s=0.3)
    assert result.timed_out
    assert result.returncode is None
    assert time.monotonic() - began < 10
    left = s.exec("cat /proc/[0-9]*/cmdline | tr '\\0' ' '").text
    assert [n for n in range(111, 116) if f"sleep {n}" in left] == [111, 112]
    s.kill_all()
    assert "sleep" not in s.exec("cat /proc/[0-9]*/cmdline | tr '\\0' ' '").text


def test_a_server_in_the_background_outlives_its_command_and_its_output(s: Session) -> None:
    s.exec("while :; do echo noise; sleep 0.01; done & echo $! >/tmp/pid")
    time.sleep(0.2)
    assert s.exec("kill -0 $(cat /tmp/pid)").ok
    s.kill_all()
    assert not s.exec("kill -0 $(cat /tmp/pid)").ok


def test_a_shell_keeps_its_state(s: Session) -> None:
    shell = s.shell(env={"GIVEN": "g"})
    shell.run("cd /tmp; export A=1; f() { echo f$1; }; sleep 100 &")
    assert shell.run("pwd; echo $A$GIVEN; f x; jobs -p | wc -l").text == "/tmp\n1g\nfx\n1\n"
    assert shell.run("false").returncode == 1
    assert shell.run("cat; echo 'it''s'").text == "its\n"  # stdin is empty
    assert shell.run("sleep 30", timeout_s=0.3).timed_out
    assert shell.run("echo $A; jobs -p | wc -l").text == "1\n1\n"
    assert shell.run("while :; do :; done", timeout_s=0.3).timed_out
    assert shell.run("echo new$A").text == "new\n"
    assert shell.run("exit 4").returncode == 4
    assert shell.run("yes | head -c 300000").stdout_truncated == 200_000
    assert shell.run("echo 77 >&9; true").returncode == 0  # programs have no such descriptor
    shell.run("B=2; sleep 100 &")
    with pytest.raises(UnicodeEncodeError):
        shell.run("echo \ud800", timeout_s=0.1)
    time.sleep(0.8)
    assert shell.run("echo $B; jobs -p | wc -l").text == "2\n1\n"  # no time ran out


def test_a_process_in_the_background(s: Session) -> None:
    process = s.start("echo one; sleep 100")
    while process.log() != b"one\n":
        time.sleep(0.01)
    assert process.running
    with pytest.raises(TimeoutError):
        process.wait(timeout_s=0.05)
    assert process.kill().returncode == -signal.SIGKILL
    assert s.start("exit 5").wait(timeout_s=10).returncode == 5


def test_many_commands_at_one_time(s: Session) -> None:
    found: dict[int, str] = {}

    def one(number: int) -> None:
        found[number] = s.exec(f"sleep 0.1; echo {number}").text

    threads = [threading.Thread(target=one, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {n: f"{n}\n" for n in range(8)}


def test_files_go_in_and_out_with_their_modes(s: Session, tmp_path: Path) -> None:
    data = os.urandom(3_000_000)
    s.put("/new/folder/file", data, mode=0o640)
    assert s.exec("stat -c '%a %u' /new/folder/file").text == "640 0\n"
    assert s.get("/new/folder/file") == data
    tree = tmp_path / "tree"
    (tree / "a b" / "deep").mkdir(parents=True)
    (tree / "a b" / "new\nline").write_text("x")
    (tree / "run.sh").write_text("#!/bin/sh\n")
    (tree / "run.sh").chmod(0o755)
    s.put("/tree", tree, user="daemon")
    assert s.get_dir("/tree", tmp_path / "back") == []
    assert (tmp_path / "back/a b/new\nline").read_text() == "x"
    assert (tmp_path / "back/run.sh").stat().st_mode & 0o777 == 0o755
    (tree / "link").symlink_to("/etc/passwd")
    with pytest.raises(ValueError, match="link"):
        s.put("/tree", tree)
    with pytest.raises(FileNotFoundError):
        s.get("/none")
    with pytest.raises(OSError, match="larger"):
        s.get("/new/folder/file", limit_mib=1)
    assert s.exec("stat -c '%U %a' /tree/run.sh").text == "daemon 755\n"
    with pytest.raises(IsADirectoryError):
        s.put("/etc", b"")


def test_branches_share_what_came_before(s: Session, session_box: Sandbox) -> None:
    s.put("/state", b"one")
    with s.fork() as fork:
        assert fork.get("/state") == b"one"
        fork.put("/state", b"two")
        with fork.fork() as grandchild:
            assert grandchild.get("/state") == b"two"
    assert s.get("/state") == b"one"
    with session_box.session(s.snapshot(), limits=LIMITS) as again:
        assert again.get("/state") == b"one"


@pytest.mark.slow
def test_a_branch_of_files_that_come_and_go(s: Session) -> None:
    line = "cd /tmp; while :; do for i in $(seq 200); do : > f$i; done; rm -f f*; done"
    going = s.start(line)
    for _ in range(3):
        with s.fork() as fork:
            assert fork.exec("ls /tmp").ok
    going.kill()
    s.exec("rm -f /tmp/f*")


def test_limits_hold_and_the_session_goes_on(s: Session) -> None:
    assert s.exec("head -c 500M /dev/zero | tail", timeout_s=30).returncode != 0
    assert s.exec("tail /dev/zero").status is RunStatus.MEMORY
    assert s.exec("head -c 1M /dev/zero; head -c 1M /dev/zero >&2").stderr_truncated == 948_576
    assert s.exec("i=0; while [ $i -lt 500 ]; do sleep 60 & i=$((i+1)); done").returncode != 0
    s.kill_all()
    assert s.exec("echo alive").text == "alive\n"
    assert s.exec("grep -c : /proc/net/dev; grep -c lo: /proc/net/dev").text == "1\n1\n"


@pytest.mark.slow
def test_a_full_disk_ends_the_session_or_takes_no_more(session_box: Sandbox) -> None:
    with session_box.session(limits=LIMITS) as s:
        if session_box._wanted == "bwrap":
            written = "for i in $(seq 20); do head -c 9M /dev/zero >/f$i || exit 9; done"
            assert s.exec(written).returncode == 9
            assert s.exec("rm /f*; echo more >/f; cat /f").text == "more\n"
            return
        # Deeper than a walk in Python may recurse.
        assert s.exec("cd /; i=0; while [ $i -lt 1500 ]; do mkdir d; cd d; i=$((i+1)); done").ok
        with pytest.raises(SessionEnded, match="disk_mib=64"):
            s.exec("i=0; while :; do head -c 9M /dev/zero >/f$i || sleep 9; i=$((i+1)); done")
        with pytest.raises(SessionEnded, match="disk_mib=64"):
            s.exec("true")


@pytest.mark.slow
def test_idle_and_total_limits(session_box: Sandbox) -> None:
    with session_box.session(limits=SessionLimits(idle_s=0.5)) as s:
        assert s.exec("sleep 1").ok  # that is not idle
        time.sleep(1.0)
        with pytest.raises(SessionEnded, match="idle_s"):
            s.exec("true")
    with (
        session_box.session(limits=SessionLimits(wall_s=1.0)) as s,
        pytest.raises(SessionEnded, match="wall_s"),
    ):
        s.exec("sleep 30")


def test_a_killed_container_is_a_fault_of_the_sandbox(session_image: str) -> None:
    with Sandbox(session_image, backend="docker") as box, box.session(limits=LIMITS) as s:
        client = connect()
        threading.Timer(0.5, lambda: client.kill(s._place._id)).start()  # type: ignore[attr-defined]
        with pytest.raises(SandboxError):
            s.exec("sleep 60")
        with pytest.raises(SandboxError):
            s.exec("true")
        client.close()


@pytest.mark.slow
def test_a_paused_container_is_one_too(session_image: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A snapshot pauses it for a moment, which is none."""
    monkeypatch.setattr("assay.sandbox.sessions.session._GRACE_S", 0.5)
    with Sandbox(session_image, backend="docker") as box, box.session(limits=LIMITS) as s:
        s.snapshot()
        client = connect()
        threading.Timer(0.3, lambda: client.pause(s._place._id)).start()  # type: ignore[attr-defined]
        with pytest.raises(SandboxError, match="paused"):
            s.exec("sleep 60", timeout_s=1)
        client.close()


def test_a_full_disk_of_this_machine_is_no_fault_of_a_session(
    session_box: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever grades counts an OSError, or a session that ended, against the policy."""
    with session_box.session(limits=LIMITS) as s:
        s.exec("mkdir /big; head -c 3M /dev/zero >/big/x")
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "none"))
        for fetch in (lambda: s.get("/big/x"), lambda: s.get_dir("/big", tmp_path / "d")):
            with pytest.raises(SandboxError, match="this machine cannot keep"):
                fetch()
        monkeypatch.undo()
        assert len(s.get("/big/x")) == 3 << 20


def test_a_killed_supervisor_under_bubblewrap_is_one_too(session_box: Sandbox) -> None:
    """Unless the kernel killed it for the session's own memory."""
    if session_box._wanted != "bwrap":
        pytest.skip("the daemon says who killed a container")
    with session_box.session(limits=LIMITS) as s:
        outer = s._place._child.pid  # type: ignore[attr-defined]
        (inner,) = Path(f"/proc/{outer}/task/{outer}/children").read_text().split()
        threading.Timer(0.3, lambda: os.kill(int(inner), signal.SIGKILL)).start()
        for command in ("sleep 60", "true"):
            with pytest.raises(SandboxError, match="137"):
                s.exec(command)


@pytest.mark.slow
def test_bubblewrap_shows_images_of_docker(
    session_box: Sandbox, session_image: str, tmp_path: Path
) -> None:
    if session_box._wanted != "bwrap":
        pytest.skip("Docker does anyway")
    (tmp_path / "Dockerfile").write_text(
        f"FROM {session_image}\nRUN echo one >/kept && echo two >/gone && mkdir /d && touch /d/x\n"
        "RUN rm -r /gone /d && mkdir /d && chown 1234 /d\nENV A=1\nWORKDIR /d\nUSER 1234\n"
    )
    tag = f"assay-tests-layers:{os.getpid()}"
    build_folder(tmp_path, tag)
    show = "pwd; id -u; echo $A; ls / | grep -x -e kept -e gone; ls; echo new >y; cat /d/y"
    try:
        for _ in range(2):  # what one writes is not seen by the next
            with session_box.session(tag, limits=LIMITS) as s:
                assert s.exec(show).text == "/d\n1234\n1\nkept\nnew\n"
                with session_box.session(s.snapshot(), limits=LIMITS) as copy:
                    assert copy.exec("pwd; id -u; echo $A; ls").text == "/d\n1234\n1\ny\n"
    finally:
        client = connect()
        client.remove_image(tag, force=True)
        client.close()


@pytest.mark.slow
def test_a_dead_client_leaves_nothing(session_box: Sandbox) -> None:
    code = (
        "import os, signal\nfrom assay.sandbox import Sandbox\n"
        f"box = Sandbox({session_box._options.image!r}, backend={session_box._wanted!r})\n"
        "box.warm_sessions(1)\ns = box.session()\ns.start('while :; do :; done')\n"
        "print(s.exec('echo marked').text, flush=True)\nos.kill(os.getpid(), signal.SIGKILL)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, env=os.environ
    )
    assert done.stdout == "marked\n\n", done.stderr
    loops = "while :; do :; done"
    for _ in range(100):
        running = subprocess.run(["ps", "ax"], capture_output=True, text=True, check=True).stdout
        if loops not in running:
            break
        time.sleep(0.1)
    assert loops not in running


def test_a_forked_child_leaves_sessions_to_its_parent(s: Session) -> None:
    child = os.fork()
    if not child:
        s.close()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert s.exec("echo still").text == "still\n"


def test_warm_sessions_start_at_once(session_box: Sandbox) -> None:
    limits = SessionLimits(memory_mib=200)
    session_box.warm_sessions(2, limits=limits)
    while session_box.ready_sessions(limits=limits) < 2:
        time.sleep(0.05)
    began = time.monotonic()
    with session_box.session(limits=limits) as s:
        assert s.exec("echo x").text == "x\n"
        assert time.monotonic() - began < 0.3
    session_box.warm_sessions(0, limits=limits)


def test_a_warm_session_that_is_lost_is_a_fault_of_the_sandbox(
    session_box: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = SessionLimits(memory_mib=210)
    session_box.warm_sessions(1, limits=limits)
    while session_box.ready_sessions(limits=limits) < 1:
        time.sleep(0.05)
    ready = session_box._sessions._pool._ready  # type: ignore[union-attr]
    ((place,),) = (places for (_, kind), places in ready.items() if kind == limits)
    place.end()
    monkeypatch.setattr(type(place), "alive", True)  # it is lost after it was looked at
    with pytest.raises(SandboxError, match="did not start"):
        session_box.session(limits=limits)
    session_box.warm_sessions(0, limits=limits)


def test_faults_of_the_caller(session_box: Sandbox, s: Session) -> None:
    with pytest.raises(ImageUnavailable, match=r"build|folder"):
        session_box.session("no-such:image")
    for call in (lambda: s.get("relative"), lambda: s.exec([]), lambda: s.exec("a\0b")):
        with pytest.raises(ValueError, match=r"/|program|zero"):
            call()
    with pytest.raises(ValueError, match="memory_mib"):
        SessionLimits(memory_mib=0)


def test_files_come_and_go_with_a_users_rights_if_asked(session_box: Sandbox) -> None:
    with session_box.session() as s:
        s.exec("mkdir -m 700 /h; echo x > /h/x")
        assert s.get("/h/x") == b"x\n"
        with pytest.raises(OSError, match="Permission denied"):
            s.get("/h/x", user=1000)
        for place in ("/h/y", "/etc/y"):
            with pytest.raises(OSError, match="Permission denied"):
                s.put(place, b"", user=1000, as_user=True)
        s.put("/tmp/new/y", b"y", mode=0o700, user=1000, as_user=True)
        assert s.exec("stat -c '%u %a' /tmp/new /tmp/new/y").text == "1000 755\n1000 700\n"
        s.put("/etc/y", b"", user=1000)
        assert s.exec("stat -c %u /etc/y").text == "1000\n"
