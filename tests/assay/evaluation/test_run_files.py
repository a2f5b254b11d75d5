"""A run's files after a kill, a full disk, a second process, and somebody's clean-up."""

import os
import resource
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from assay.envs import DataError
from assay.evaluation import RunWriter, read_costs, read_groups, read_plan


@pytest.fixture
def made(demo):
    """Groups, their costs, and the plan of a run of six tasks in batches of two."""

    def make(folder: Path):
        run = demo.write_run(folder / "made", 6)
        return list(read_groups(run)), read_costs(run), replace(read_plan(run), batch=2)

    return make


def written(folder, plan, groups, costs, resume=False):
    with RunWriter(folder, plan, resume=resume) as writer:
        for at in range(writer.done, len(groups), 2):
            writer.add(groups[at : at + 2], costs[at : at + 2])
    return (folder / "groups.jsonl").read_bytes()


def test_a_line_that_is_no_group_is_named(tmp_path) -> None:
    (tmp_path / "groups.jsonl").write_text('{"task": 3}\n')
    with pytest.raises(DataError, match="line 1 is no group"):
        list(read_groups(tmp_path))


@pytest.mark.parametrize("kept", [0, 1, 100, 9000, 20000, -1])
def test_wherever_a_kill_cut_the_files_the_end_is_the_same(tmp_path, made, kept) -> None:
    groups, costs, plan = made(tmp_path)
    whole = written(tmp_path / "whole", plan, groups, costs)
    written(tmp_path / "cut", plan, groups, costs)
    (tmp_path / "cut" / "groups.jsonl").write_bytes(whole[:kept])
    assert written(tmp_path / "cut", plan, groups, costs, resume=True) == whole
    assert len(read_costs(tmp_path / "cut")) == 6


def test_a_run_whose_costs_were_deleted_keeps_its_groups(tmp_path, made) -> None:
    groups, costs, plan = made(tmp_path)
    whole = written(tmp_path / "run", plan, groups, costs)
    (tmp_path / "run" / "costs.jsonl").unlink()
    with RunWriter(tmp_path / "run", plan, resume=True) as writer:
        assert writer.done == 6
    assert (tmp_path / "run" / "groups.jsonl").read_bytes() == whole


def test_a_second_process_is_refused_and_changes_nothing(tmp_path, made) -> None:
    groups, costs, plan = made(tmp_path)
    with RunWriter(tmp_path / "run", plan, resume=False) as writer:
        writer.add(groups[:2], costs[:2])
        for resume in (True, False):
            with pytest.raises(DataError, match="another process writes to"):
                RunWriter(tmp_path / "run", replace(plan, seed=5), resume=resume)
        writer.add(groups[2:4], costs[2:4])
    assert len(list(read_groups(tmp_path / "run"))) == 4
    with RunWriter(tmp_path / "run", plan, resume=True) as writer:
        assert writer.done == 4


def test_what_ended_before_its_first_group_is_begun_anew(tmp_path, made) -> None:
    """Such as for a server that was down: the second try was refused."""
    groups, costs, plan = made(tmp_path)
    with RunWriter(tmp_path / "run", replace(plan, seed=5), resume=False):
        pass
    with pytest.raises(DataError, match="seed: 5 against 0"):
        RunWriter(tmp_path / "run", plan, resume=True)
    written(tmp_path / "run", plan, groups, costs)
    assert read_plan(tmp_path / "run") == plan
    with pytest.raises(DataError, match="or --resume to complete it"):
        RunWriter(tmp_path / "run", plan, resume=False)
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="is no directory"):
        RunWriter(tmp_path / "file", plan, resume=False)


def test_a_full_disk_leaves_whole_batches_and_no_torn_line(tmp_path, made) -> None:
    groups, costs, plan = made(tmp_path)
    whole = written(tmp_path / "whole", plan, groups, costs)
    end = sum(map(len, whole.splitlines(keepends=True)[:2]))
    kept = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (end + 100, limits[1]))  # as a disk with no more
    try:
        with pytest.raises(OSError, match="too large"):
            written(tmp_path / "run", plan, groups, costs)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, kept)
    assert (tmp_path / "run" / "groups.jsonl").stat().st_size == end
    assert written(tmp_path / "run", plan, groups, costs, resume=True) == whole


INTERRUPTED = """
import time
def slow(messages):
    print("asked", flush=True)
    time.sleep(60)
"""


def test_ctrl_c_says_how_to_go_on(tmp_path) -> None:
    (tmp_path / "slow_policy.py").write_text(INTERRUPTED)
    command = ["eval", "assay/Arithmetic-v1", "-p", "slow_policy:slow", "--limit", "3", "-o", "r"]
    run = subprocess.Popen(
        [sys.executable, "-m", "assay", *command],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "COLUMNS": "200"},
    )
    assert run.stdout.readline() == b"asked\n"
    run.send_signal(signal.SIGINT)
    _, err = run.communicate(timeout=30)
    assert run.returncode == 130
    assert b"0 of 3 tasks are in r; --resume goes on from there." in err
    assert b"Traceback" not in err
