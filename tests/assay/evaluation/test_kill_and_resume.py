"""An evaluation that is killed and resumed equals one that is left alone, byte for byte."""

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from assay.envs import DataError
from assay.evaluation import read_groups
from assay.evaluation.run_files import read_costs

pytestmark = pytest.mark.slow

POLICY = '''
import random, re

def sums(messages, seed):
    """Right more often than not, sometimes silent; a seed fixes which."""
    rng = random.Random(seed)
    right = sum(int(n) for n in re.findall("[0-9]+", messages[-1]["content"]))
    if rng.random() < 0.1:
        return "I would rather not say."
    return f"\\\\boxed{{{right + rng.choice([0, 0, 1, 10])}}}"
'''
TASKS, REPLIES = 500, 8  # 16 batches


def command(folder: Path, out: str, *more: str) -> list[str]:
    run = [sys.executable, "-m", "assay", "eval", "assay/Arithmetic-v1", "-p", "my_sums:sums"]
    run += ["-n", str(REPLIES), "--set", "digits=4", "--set", "operators=+", "--limit", str(TASKS)]
    return [*run, "--out", str(folder / out), *more]


def start(folder: Path, out: str, *more: str) -> subprocess.Popen:
    return subprocess.Popen(
        command(folder, out, *more), cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    home = tmp_path_factory.mktemp("kill")
    (home / "my_sums.py").write_text(POLICY)
    return home


def kept(run: Path) -> dict[str, bytes]:
    return {
        name: (run / name).read_bytes() for name in ("run.json", "groups.jsonl", "summary.json")
    }


def test_a_run_that_was_killed_twice_is_completed(folder) -> None:
    whole = start(folder, "whole")
    said, _ = whole.communicate(timeout=200)
    assert whole.returncode == 0, said.decode()
    rng = random.Random(20261121)  # noqa: S311  # chooses when to kill, and no secrets
    groups = folder / "broken" / "groups.jsonl"
    size = (folder / "whole" / "groups.jsonl").stat().st_size
    kills = 0
    for part in (1, 2):  # somewhere in each half
        until = size * (part - rng.random()) / 3  # far from the end, where it may end first
        run = start(folder, "broken", "--resume")
        while not (groups.exists() and groups.stat().st_size >= until) and run.poll() is None:
            time.sleep(0.001)
        time.sleep(rng.random() * 0.05)
        run.send_signal(signal.SIGKILL)
        run.communicate(timeout=60)
        kills += run.returncode == -signal.SIGKILL
        with groups.open("ab") as file:  # as where a kill, or the power, cut a line in two
            file.write(b'{"task": {"prompt": [{"ro')
    assert kills == 2
    assert 0 < sum(1 for _ in read_groups(folder / "broken")) < TASKS
    last = start(folder, "broken", "--resume")
    said, _ = last.communicate(timeout=200)
    assert last.returncode == 0, said.decode()
    assert kept(folder / "broken") == kept(folder / "whole")
    assert len(read_costs(folder / "broken")) == TASKS
    found = json.loads((folder / "whole" / "summary.json").read_text())
    assert (found["tasks"], found["replies"]) == (TASKS, TASKS * REPLIES)


def test_a_line_that_is_no_group_is_named(folder, tmp_path) -> None:
    (tmp_path / "groups.jsonl").write_text('{"task": 3}\n')
    with pytest.raises(DataError, match="line 1 is no group"):
        list(read_groups(tmp_path))
