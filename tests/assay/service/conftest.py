"""Environments to serve, and servers as processes of their own."""

import functools
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager

import pytest
from starlette.testclient import TestClient

from assay.service import ServiceLimits, Tokens, create_app

MODULE = '''
from assay.envs import (
    GroupRubric, Rows, ShortReplies, Task, TextEnv, Turn, register
)
from assay.envs.tools import ToolEnv
from assay.verifiers import Exact, FunctionVerifier


class Sums(TextEnv):
    """Say a sum."""

    def __init__(self, size=50):
        rows = [
            Task(f"{a} and 17?", str(a + 17), id=f"sum{a}", solution=str(a + 17))
            for a in range(size)
        ]
        super().__init__(Rows(rows), Exact())


class Guess(TextEnv):
    """Guess a number from 0 to 99; each turn tells whether it is more or less. Six turns."""

    def __init__(self):
        rows = [Task("Which number?", str(n), id=f"n{n}") for n in range(100)]
        same = FunctionVerifier(lambda reply, gold: reply.strip() == gold)
        super().__init__(Rows(rows), same, max_turns=6)

    def respond(self, state, reply):
        if reply == "boom":
            raise KeyError(state.task.reference)
        gold = int(state.task.reference)
        if not reply.strip().isdigit():
            return Turn.say("a number, please")
        said = int(reply.strip())
        if said == gold:
            return Turn.end(reward=0.5)
        return Turn.say("more" if said < gold else "less", reward=0.1)


class Digit(TextEnv):
    """Say any digit first."""

    def __init__(self):
        rows = [Task(f"{n % 7}.{n}?", "") for n in range(100)]
        super().__init__(Rows(rows), FunctionVerifier(lambda reply, gold: reply[:1].isdigit()))



class Echoed(TextEnv):
    """One turn, and yet no lone reply can be judged: the last word of it is the answer."""

    def __init__(self):
        super().__init__(Rows([Task("Last word?", "cat", id="last")]), Exact())

    def answer(self, state):
        return (state.reply.split() or [""])[-1]


def add(a: int, b: int) -> int:
    """Add two numbers.

    Args:
        a: one.
        b: the other.
    """
    return a + b


class Adding(ToolEnv):
    """Sums with a tool, whose schema is left to the chat template."""

    def __init__(self):
        rows = [Task(f"{a} and 17?", str(a + 17), id=f"sum{a}") for a in range(5)]
        super().__init__(Rows(rows), Exact(), tools=[add], max_turns=3, tell="template")


class Brief(Sums):
    """Sums, where short replies earn more than long ones."""

    def __init__(self):
        super().__init__()
        same = FunctionVerifier(lambda reply, gold: reply.split()[-1] == gold)
        self.rubric = same
        self.group_rubric = GroupRubric({"short": ShortReplies()}, weights={"short": 0.5})


register("served/Echoed-v0", Echoed)
register("served/Adding-v0", Adding)
register("served/Brief-v0", Brief)
register("served/Sums-v0", Sums)
register("served/Digit-v0", Digit)
register("served/Guess-v0", Guess)
'''
TOKEN = "a-token-of-the-tests-0123456789"


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """A folder with a module that registers ``served/Sums-v0`` and ``served/Guess-v0``."""
    path = tmp_path_factory.mktemp("served")
    (path / "served_envs.py").write_text(MODULE)
    return path


@pytest.fixture(scope="session")
def served(folder):
    sys.path.insert(0, str(folder))
    try:
        import served_envs

        yield served_envs
    finally:
        sys.path.remove(str(folder))


@pytest.fixture(scope="session")
def bearer():
    return {"authorization": f"Bearer {TOKEN}"}


@pytest.fixture(scope="session")
def local():
    """What makes a client of an application, without a socket: ``local(env, tokens, batch=5)``."""

    def make(env, tokens=(), *, client="127.0.0.1", host="localhost", flags=None, **limits):
        app = create_app(env, ServiceLimits(**limits), Tokens(tokens), **(flags or {}))
        return TestClient(app, headers={"host": host}, client=(client, 4000))

    return make


@pytest.fixture(scope="session")
def until():

    def wait(condition, seconds=60):
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end
            time.sleep(0.02)

    return wait


@contextmanager
def running(folder, *args, token=TOKEN):
    """``assay serve`` as a process; gives its address and itself. It must drain at SIGTERM."""
    environ = {**os.environ, "ASSAY_SERVE_TOKEN": token or ""}
    process = subprocess.Popen(
        [sys.executable, "-m", "assay", "serve", *args, "--port", "0"],
        cwd=folder,
        env=environ,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        lines = []
        for line in process.stderr:
            lines.append(line)
            if " at http" in line:
                break
        else:
            pytest.fail("".join(lines))
        yield line.split(" at ")[1].split()[0], process
    finally:
        process.send_signal(signal.SIGTERM)
        rest = process.stderr.read()
        assert process.wait(timeout=60) == 0, rest
        assert "ASGI" not in rest, rest
        assert "a route raised" not in rest, rest
        process.stderr.close()


@pytest.fixture
def host(served, served_here):
    return functools.partial(served_here, tokens=[TOKEN])


@pytest.fixture(scope="session")
def start(folder):
    return lambda id_, *args, **kwargs: running(folder, f"served_envs:{id_}", *args, **kwargs)


@pytest.fixture(scope="session")
def sums_server(folder):
    with running(folder, "served_envs:served/Sums-v0", "--no-access-log") as (url, _):
        yield url


@pytest.fixture(scope="session")
def guess_server(folder):
    with running(folder, "served_envs:served/Guess-v0", "--no-access-log") as (url, _):
        yield url
