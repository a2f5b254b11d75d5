"""Where an audit's copies come from: forks of a process that has imported everything."""

import os
import signal

import pytest

from assay.envs import Sample, audit
from assay.envs.audit.harness import Bench, Bounds, Trial
from assay.envs.audit.process import nursery
from assay.envs.task import Task
from assay.verifiers import FunctionVerifier

TASK = Task("0", "say where you are", None)


def where(reply: str, reference: object) -> float:
    """Not a reward: its text tells where it is judged."""
    raise ValueError(f"{os.getcwd()} {os.environ.get('WHERE_AM_I')} {os.getpid()}")


def leaves(reply: str, reference: object) -> float:
    os._exit(7)


def found(function) -> str:
    bench = Bench(FunctionVerifier(function), Bounds())
    bench.judge([Trial(TASK, "x", "a reply")])
    bench.close()
    return (bench.faults or bench.overruns)[0].found


def test_a_copy_has_the_folder_and_the_environment_of_now(tmp_path, monkeypatch) -> None:
    found(where)  # the nursery was started elsewhere
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WHERE_AM_I", "here")
    assert f"{tmp_path} here" in found(where)


def test_each_copy_is_a_process_of_its_own() -> None:
    pids = {found(where).split()[-1] for _ in range(3)}
    assert len(pids) == 3
    assert str(os.getpid()) not in pids


def test_how_a_copy_ended_is_told() -> None:
    assert "exit code 7" in found(leaves)


@pytest.mark.parametrize("at", ["between audits", "under one"])
def test_a_nursery_that_is_lost_is_started_again(at) -> None:
    if at == "under one":
        bench = Bench(FunctionVerifier(leaves), Bounds())
        bench.reference_faults([None])
        os.kill(nursery(1)._process.pid, signal.SIGKILL)
        bench.judge([Trial(TASK, "x", "a reply")])
        bench.close()
        assert len(bench.overruns) == 1
    else:
        os.kill(nursery(1)._process.pid, signal.SIGKILL)
    assert audit(verifier_of_yes(), samples=[Sample("yes")], checks=["gold"]).failing == []


def verifier_of_yes() -> FunctionVerifier:
    return FunctionVerifier(lambda reply, reference: float(reply == reference))
