"""Sessions whose containers are killed: every verdict is right or none, and nothing is left."""

from __future__ import annotations

import os
import random
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from assay.sandbox import Sandbox, SandboxError, SessionLimits
from assay.sandbox.backends.docker import connect
from assay.sandbox.backends.process_id import process_id

pytestmark = [pytest.mark.slow, pytest.mark.docker]

SESSIONS = int(os.environ.get("ASSAY_CHAOS_SESSIONS", "16"))
LIMITS = SessionLimits(memory_mib=128, pids=32)


def episode(box: Sandbox, number: int) -> str:
    """Play one episode; say how it ended."""
    try:
        with box.session(limits=LIMITS) as s:
            s.put("/n", str(number).encode())
            shell = s.shell()
            shell.run("n=$(cat /n)")
            for i in range(5):
                result = shell.run(f"sleep 0.1; echo $((n + {i}))")
                if result.text != f"{number + i}\n":
                    return f"wrong: {result}"
            s.kill_all()
            return "right" if s.get("/n") == str(number).encode() else "wrong file"
    except SandboxError:
        return "sandbox_error"


def test_random_kills(session_image: str) -> None:
    client = connect()
    mine = {"label": f"assay.sandbox.pid={process_id()}"}
    over = threading.Event()

    def kill() -> None:
        draw = random.Random(0)  # noqa: S311 - no secret
        while not over.wait(draw.uniform(0.2, 0.6)):
            found = [c["Id"] for c in client.containers(filters=mine)]
            if found:
                try:
                    client.kill(draw.choice(found))
                except Exception:  # noqa: S112 - it may have ended by itself
                    continue

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        with Sandbox(session_image, backend="docker") as box, ThreadPoolExecutor(8) as threads:
            ends = Counter(threads.map(lambda n: episode(box, n), range(SESSIONS)))
    finally:
        over.set()
        killer.join()
    assert set(ends) <= {"right", "sandbox_error"}, ends
    assert ends["right"] > 0, ends
    for _ in range(100):
        if not client.containers(all=True, filters=mine):
            break
        time.sleep(0.1)
    assert not client.containers(all=True, filters=mine)
    client.close()
    print(ends)  # noqa: T201 - how many there were of each
