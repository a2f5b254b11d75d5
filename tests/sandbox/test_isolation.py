"""What a program must not see: earlier programs, other programs, the host."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from assay.sandbox import Limits, RunStatus, Sandbox

SECRET = "open-sesame"
PROGRAMS = tomllib.loads(Path(__file__).with_name("isolation.toml").read_text("utf-8"))


@pytest.fixture(scope="module")
def pair(make_box) -> Iterator[Sandbox]:
    """A box that runs two programs at a time."""
    with make_box(slots=2, limits=Limits(cpu_s=2.0, wall_s=10.0, memory_mib=128)) as found:
        yield found


@pytest.mark.slow
def test_two_programs_never_have_one_user(pair: Sandbox) -> None:
    """The kernel counts pipes, watches and queued signals by user, over all sandboxes."""
    if pair.backend == "bwrap" and os.geteuid() != 0:
        pytest.skip("only root may give each run a user of its own")
    wait = "import os, time\ntime.sleep(0.5)\nprint(os.getuid())"
    users = [result.stdout for result in pair.map(pair.run, [wait] * 4)]
    assert len(set(users)) == 4, users


@pytest.mark.slow
def test_programs_of_two_slots_know_nothing_of_each_other(pair: Sandbox) -> None:
    # Of bubblewrap's programs both are those of this process, which may itself be run by nice.
    turn = pair.run("import os; print((os.nice(0), len(os.sched_getaffinity(0))))").stdout
    for _ in range(2):  # each order of the slots
        held, sought = pair.map(pair.run, [PROGRAMS["holder"], PROGRAMS["seeker"]])
        assert (held.status, held.attempts, sought.attempts) == (RunStatus.OK, 1, 1), held
        assert held.stdout == f"True ['secret'] [] {turn}"
        assert "GOT" not in sought.stdout, sought.stdout


def test_the_host_is_unseen_and_unchanged(
    box: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASSAY_CANARY", SECRET)
    canary = tmp_path / "canary"
    canary.write_text(SECRET)
    canary.chmod(0o666)
    before = canary.stat()
    named = socket.socket(socket.AF_UNIX)
    abstract = socket.socket(socket.AF_UNIX)
    tcp = socket.create_server(("127.0.0.1", 0))
    waits = [sys.executable, "-c", "import sys; sys.stdin.read()", SECRET]
    other = subprocess.Popen(waits, stdin=subprocess.PIPE)
    try:
        path = str(tmp_path / "s")[-90:] if len(str(tmp_path)) < 80 else "/tmp/assay-canary-socket"
        named.bind(path)
        abstract.bind("\0assay-canary")
        for listener in (named, abstract):
            listener.listen()
        known = (str(canary), path, tcp.getsockname()[1], other.pid)
        result = box.run(f"canary, named, port, other = {known!r}\n{PROGRAMS['seek_host']}")
        assert (result.status, result.stdout) == (RunStatus.OK, "done\n"), result
        for listener in (named, abstract, tcp):
            listener.setblocking(False)
            with pytest.raises(BlockingIOError):
                listener.accept()
        assert other.poll() is None
    finally:
        other.kill()
        other.communicate()
        for listener in (named, abstract, tcp):
            listener.close()
        Path(path).unlink(missing_ok=True)
    after = canary.stat()
    assert (canary.read_text(), after.st_mtime_ns, after.st_mode) == (
        (SECRET, before.st_mtime_ns, before.st_mode)
    )
    assert sorted(os.listdir(tmp_path)) in (["canary"], ["canary", "s"])


@pytest.mark.parametrize("mode", ["program", "calls", "tests"])
def test_no_open_file_is_shared_with_a_later_program(box: Sandbox, mode: str) -> None:
    """Whoever holds an open file shares its lock and its flags."""

    def run() -> str:
        if mode == "program":
            return box.run(PROGRAMS["open_files"]).stdout
        if mode == "calls":
            return box.check_calls(PROGRAMS["open_files"], "f", [((1,), 1)]).stdout
        return box.check_tests(PROGRAMS["open_files"], "assert f(1) == 1").stdout

    first, second = run(), run()
    assert "(0, " in first
    assert first == second


def test_nothing_of_an_earlier_program_is_in_memory(box: Sandbox) -> None:
    secret = "open-" + "sesame"
    box.run(f"secret = '{secret}'\nprint(secret, input())", secret)
    search = """
import re
planted = 'pla' + 'nted'
found = {b'open-[s]esame': 0, b'p[l]anted': 0}
for line in open('/proc/self/maps'):
    start, end = (int(n, 16) for n in line.split()[0].split('-'))
    if ' r' not in line or '[v' in line: continue
    with open('/proc/self/mem', 'rb', 0) as memory:
        try:
            memory.seek(start)
            content = memory.read(end - start)
        except (OSError, ValueError, OverflowError): continue
    for pattern in found: found[pattern] += len(re.findall(pattern, content))
print(*found.values())
"""
    result = box.run(search, limits=Limits(cpu_s=5.0, memory_mib=128))
    secrets, planted = map(int, result.stdout.split())
    assert secrets == 0
    assert planted > 0  # the search does find what is there


def test_a_program_cannot_see_the_users_environment(
    make_box, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASSAY_TEST_SECRET", "open-sesame")
    with make_box(slots=1) as own:
        result = own.run(
            "import os\nprint(dict(os.environ))\n"
            "print(b'open-sesame' in open('/proc/self/environ', 'rb').read())"
        )
    assert "open-sesame" not in result.stdout
    assert result.stdout.endswith("False\n")
