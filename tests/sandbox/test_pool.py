"""Slots that die, daemons that do not answer, clients that are killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from assay.sandbox import (
    ImageUnavailable,
    Limits,
    RunStatus,
    Sandbox,
    SandboxUnavailable,
    survey,
)
from assay.sandbox.backends import registry as backend_module
from assay.sandbox.backends.bwrap import BwrapBackend
from assay.sandbox.backends.docker import connect
from assay.sandbox.backends.slot import Request, SlotBroken
from assay.sandbox.pool.pool import Pool

pytestmark = pytest.mark.slow


def bwraps_of(pid: int) -> list[int]:
    """The bwrap processes that a client started, from any of its threads."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, fields = stat.read_text().rpartition(")")
        except OSError:
            continue
        if name.endswith("(bwrap") and int(fields.split()[1]) == pid:
            found.append(int(stat.parent.name))
    return found


def containers_of(pid: int) -> list[str]:
    client = connect()
    try:
        return [
            found["Id"]
            for found in client.containers(filters={"label": "assay.sandbox=1"})
            if found["Labels"]["assay.sandbox.pid"].startswith(f"{pid}-")
        ]
    finally:
        client.close()


def slots_of(backend: str) -> set[object]:
    """The slots of this process, those of other tests' boxes too."""
    return {*(containers_of(os.getpid()) if backend == "docker" else bwraps_of(os.getpid()))}


@pytest.mark.bwrap
def test_a_killed_slot_costs_no_result(make_bwrap) -> None:
    before = set(bwraps_of(os.getpid()))
    with make_bwrap(slots=1) as own:
        own.run("")
        (slot,) = set(bwraps_of(os.getpid())) - before
        killer = threading.Timer(0.5, os.kill, [slot, signal.SIGKILL])
        killer.start()
        result = own.run("import time; time.sleep(2); print(1)")
        killer.join()
    assert (result.status, result.stdout, result.attempts) == (RunStatus.OK, "1\n", 2)


CLIENT = """
from assay.sandbox import Sandbox
box = Sandbox(slots=2, backend="bwrap")
box.run("")
print("ready", flush=True)
box.run("while True: pass")
"""


@pytest.mark.bwrap
def test_a_killed_client_leaves_nothing() -> None:
    """Under Docker too: see test_chaos.py."""
    with subprocess.Popen(
        [sys.executable, "-c", CLIENT], stdout=subprocess.PIPE, text=True
    ) as client:
        assert client.stdout is not None
        assert client.stdout.readline() == "ready\n"
        slots = bwraps_of(client.pid)
        assert slots
        client.kill()
    deadline = time.monotonic() + 20
    while (left := [pid for pid in slots if Path(f"/proc/{pid}").exists()]) and (
        time.monotonic() < deadline
    ):
        time.sleep(0.1)
    assert not left


def test_closing_ends_every_slot(make_box) -> None:
    own = make_box(slots=2)
    own.run_many(["", ""])
    backend = own.backend
    before = slots_of(backend)
    own.close()
    own.close()
    assert len(slots_of(backend)) < len(before)
    with pytest.raises(SandboxUnavailable, match="closed"):
        own.run("")


def test_no_daemon_is_an_error_with_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nonexistent/docker.sock")
    with (
        Sandbox(backend="docker") as own,
        pytest.raises(SandboxUnavailable, match="Start Docker, or set DOCKER_HOST"),
    ):
        own.run("")


@pytest.mark.bwrap
def test_without_docker_programs_run_under_bwrap_with_a_warning(
    make_bwrap, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ASSAY_SANDBOX", raising=False)
    monkeypatch.setenv("DOCKER_HOST", "unix:///nonexistent/docker.sock")
    monkeypatch.setattr(backend_module, "_warned", threading.Event())
    with Sandbox(slots=1) as own, pytest.warns(RuntimeWarning, match="bubblewrap"):
        assert own.run("").backend == "bwrap"
    with Sandbox(slots=1) as again:
        assert again.run("").backend == "bwrap"  # warned once


@pytest.mark.bwrap
def test_a_new_backend_is_one_entry(make_bwrap, monkeypatch: pytest.MonkeyPatch) -> None:
    class Mine(BwrapBackend):
        name = "mine"

    entry = backend_module.Entry(
        lambda asked: Mine(asked.limits, tools=asked.tools), lambda: "no kernel"
    )
    monkeypatch.setitem(backend_module.BACKENDS, "mine", entry)
    with Sandbox(backend="mine", slots=1) as own:
        assert own.run("print(1)").backend == "mine"
        assert own.run("echo 2", language="bash").backend == "mine"
    (found,) = survey("mine")
    assert (found.name, found.ok, found.detail) == ("mine", False, "no kernel")
    with pytest.raises(ValueError, match="without a daemon: leave out runtime='runc'"):
        Sandbox(backend="mine", runtime="runc")
    with pytest.raises(ValueError, match=r"must be 'docker' or 'bwrap' or .*'mine', got 'chroot'"):
        Sandbox(backend="chroot")


@pytest.mark.docker
def test_a_missing_image_names_the_command(image: str) -> None:
    with (
        Sandbox("assay-no-such-image:1") as own,
        pytest.raises(ImageUnavailable, match="assay sandbox build"),
    ):
        own.run("")


class Dying(BwrapBackend):
    """A backend whose slots die under the requests that ``under`` picks."""

    def __init__(self, under: Callable[[Request], bool]) -> None:
        super().__init__(Limits(memory_mib=64))
        self.under = under

    def start(self):
        slot = super().start()
        whole = slot.run

        def run(request: Request):
            if self.under(request):
                raise SlotBroken("the guest ended")
            return whole(request)

        slot.run = run
        return slot


def box_that_dies(under: Callable[[Request], bool]) -> Sandbox:
    own = Sandbox(backend="bwrap", slots=1)
    own._pool = Pool(Dying(under), 1)
    return own


@pytest.mark.bwrap
def test_a_program_that_breaks_two_slots_is_to_blame() -> None:
    with box_that_dies(lambda request: b"hostile" in request.code) as own:
        result = own.run("hostile = 1")
        check = own.check_tests("hostile = 1", "assert hostile == 1")
        innocent = own.run("print(1)")
    assert (result.status, result.attempts) == (RunStatus.BROKE_SANDBOX, 2)
    assert (check.status, check.solved) == (RunStatus.BROKE_SANDBOX, False)
    assert innocent.stdout == "1\n"


@pytest.mark.bwrap
def test_no_program_is_blamed_where_slots_break_under_an_empty_one_too() -> None:
    """A daemon that stops ends all slots at once; two of them may have been one program's."""
    with (
        box_that_dies(lambda request: True) as own,
        pytest.raises(SandboxUnavailable, match="under an empty program too"),
    ):
        own.run("print(1)")
