"""Workers of an audit: forks of a server that has imported everything."""

import os
import subprocess
import sys

import pytest

from assay.envs.audit.harness import Harness, Trial
from assay.envs.audit.worker import Bounds
from assay.envs.task import Task
from assay.verifiers import FunctionVerifier

pytestmark = pytest.mark.slow

TASK = Task("0", "say where you are", None)


def where(reply: str, reference: object) -> float:
    """Not a reward: its error says where it is judged."""
    raise ValueError(f"{os.getcwd()} {os.environ.get('WHERE_AM_I')} {os.getpid()}")


def leaves(reply: str, reference: object) -> float:
    os._exit(7)


def found(function) -> str:
    harness = Harness(FunctionVerifier(function), Bounds())
    harness.judge([Trial(TASK, "a reply", "x")])
    harness.close()
    return (harness.faults or harness.overruns)[0].found


def test_a_worker_has_the_folder_and_the_environment_of_now(tmp_path, monkeypatch) -> None:
    found(where)  # the server was started elsewhere
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WHERE_AM_I", "here")
    assert f"{tmp_path} here" in found(where)


def test_each_worker_is_a_process_of_its_own() -> None:
    pids = {found(where).split()[-1] for _ in range(3)}
    assert len(pids) == 3
    assert str(os.getpid()) not in pids


def test_the_exit_code_of_a_worker_is_reported() -> None:
    assert "exit code 7" in found(leaves)


SCRIPT = """
import multiprocessing, os
from assay import Verdict, Verifier, audit
from assay.envs import Sample
print("run")

class Yes(Verifier):
    def judge(self, reply, reference):
        print("a verifier prints", flush=True)
        return Verdict.correct() if reply == reference else Verdict.wrong("no")

    def oracle_reply(self, reference):
        return reference

def failing(_=None):
    return audit(Yes(), samples=[Sample("yes")], checks=["gold", "null", "determinism"]).failing

print(failing())
if os.fork() == 0:
    print(failing(), flush=True)
    os._exit(0)
os.wait()
with multiprocessing.get_context("fork").Pool(1) as pool:
    print(pool.map(failing, [None]))
"""


def test_a_script_is_not_run_again_by_its_workers(tmp_path) -> None:
    """It needs no guard, may fork, and where it runs files may be named as Python's own."""
    script = tmp_path / "scripts" / "mine.py"
    script.parent.mkdir()
    script.write_text(SCRIPT)
    for name in ("json", "selectors", "runpy"):
        (tmp_path / f"{name}.py").write_text("raise ImportError('not the library')")
    done = subprocess.run(
        [sys.executable, "-W", "error", script],
        cwd=tmp_path, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("run\n[]\n[]\n[[]]\n", "")
