"""One slot over a pair of sockets, its guest played by the test."""

from __future__ import annotations

import json
import socket
import struct
import threading
from pathlib import Path

import pytest

from assay.sandbox.backends.slot import Origin, Request, Slot, SlotBroken
from assay.sandbox.guest import supervisor
from assay.sandbox.guest.kernel_memory import opened
from assay.sandbox.limits import Limits

GREETING = json.dumps({"ready": 1, "python": "3.11", "switches": False}).encode()
ASKED = Request("program", b"", b"", Limits(cpu_s=60.0))


def test_closing_ends_a_run_however_early_it_comes() -> None:
    """A run that was about to wait could wait on the file that had got the slot's number.

    Threads that never sleep take the processor from it at just that moment, now and then.
    """
    ended = threading.Event()

    def spin() -> None:
        while not ended.is_set():
            pass

    spinning = [threading.Thread(target=spin, daemon=True) for _ in range(3)]
    for thread in spinning:
        thread.start()
    try:
        for _ in range(40):
            _close_while_it_begins()
    finally:
        ended.set()
        for thread in spinning:
            thread.join()


def _close_while_it_begins() -> None:
    near, far = socket.socketpair()
    far.sendall(struct.pack(">I", len(GREETING)) + GREETING)
    slot = Slot(near, Origin(), multiplexed=False, end=lambda: None)
    broken = []

    def run() -> None:
        with pytest.raises(SlotBroken) as found:
            slot.run(ASKED)
        broken.append(found.value)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    slot.close()
    others = socket.socketpair()  # gets the number of the stream that was closed
    thread.join(timeout=20)
    for end in (far, *others):
        end.close()
    assert broken, "the run waits still, though its slot was closed"


COUNTS = {
    "2": ("memory.events", "low 0\nhigh 0\nmax {reached}\noom 0\noom_kill {kills}\n"),
    "1": ("memory/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill {kills}\n"),
}


@pytest.mark.parametrize("version", COUNTS)
def test_a_kill_below_the_limit_is_for_others_memory(
    version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = "/sys/fs/cgroup"
    monkeypatch.setattr(supervisor, "opened", lambda p: opened(p.replace(home, str(tmp_path))))
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory/memory.limit_in_bytes").write_text("301989888\n")
    name, text = COUNTS[version]

    def write(kills: int, reached: int) -> None:
        (tmp_path / name).write_text(text.format(kills=kills, reached=reached))
        peak = 301989888 if reached else 280000000
        (tmp_path / "memory/memory.max_usage_in_bytes").write_text(f"{peak}\n")

    write(0, 0)
    memory = supervisor._Memory()
    assert memory.changes() == (False, False)
    write(1, 0)
    assert memory.changes() == (True, False)
    write(1, 0)
    assert memory.changes() == (False, False)
    write(2, 3)
    assert memory.changes() == (True, True)
