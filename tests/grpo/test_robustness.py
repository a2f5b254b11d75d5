"""What a run must notice: damage, a rival, a reward that never comes, nothing to resume."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch

from assay.grpo import (
    CheckpointError,
    GRPOConfig,
    Learner,
    RolloutTimeout,
    list_checkpoints,
    load_model,
    read_metrics,
)
from assay.grpo.interrupt import time_limit
from assay.grpo.run_directory import CheckpointWarning, run_lock

pytestmark = pytest.mark.slow

torch.set_num_threads(1)
SETTINGS: dict[str, Any] = {
    "steps": 3,
    "prompts_per_step": 7,
    "group_size": 4,
    "max_new_tokens": 2,
    "learning_rate": 3e-3,
    "warmup_steps": 2,
    "save_every": 1,
}


def learner(model_dir: Path, rollout: Any, out: Path, **settings: Any) -> Learner:
    model, tokenizer = load_model(model_dir)
    resume = settings.pop("resume", False)
    config = GRPOConfig(**{**SETTINGS, **settings})
    return Learner(model, tokenizer, rollout, config, out, resume=resume, progress=False)


def weights(model: Any) -> torch.Tensor:
    return torch.cat([p.detach().flatten() for p in model.parameters()])


def quiet() -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "200", "TERM": "dumb"}


def flip(file: Path) -> None:
    """Change one bit in the middle, and neither the size nor the time of the file."""
    times = file.stat()
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))


@pytest.fixture
def whole(model_dir: Path, digits: Any, tmp_path: Path) -> Path:
    """A run that has ended, with the checkpoints of its last two steps."""
    learner(model_dir, digits(7), tmp_path / "whole").train()
    return tmp_path / "whole"


@contextmanager
def refused_to_resume() -> Iterator[pytest.ExceptionInfo[CheckpointError]]:
    """In one line; damaged checkpoints may be warned of beside."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(CheckpointError, match=r"\A[^\n]*\Z") as refused:
            yield refused


def state_of(out: Path) -> dict[str, bytes]:
    """Names and contents of the files whose loss cannot be made good."""
    return {p.name: p.read_bytes() for p in out.iterdir() if p.suffix == ".jsonl"}


# Damage that leaves the size of a file.
@pytest.mark.parametrize(
    "name", ["model.safetensors", "optimizer/00001-of-00001.safetensors", "tokenizer.json"]
)
def test_a_flipped_bit_is_noticed_and_the_checkpoint_before_is_used(
    name: str, model_dir: Path, digits: Any, whole: Path, tmp_path: Path
) -> None:
    out = shutil.copytree(whole, tmp_path / "out")
    newest = list_checkpoints(out / "checkpoints")[-1]
    wanted = weights(load_model(newest)[0])  # a copy: the model itself may be a map of the file
    flip(newest / name)
    (out / "checkpoints" / ".step-000004.partial").mkdir()
    with pytest.warns(CheckpointWarning, match=rf"{newest.name}.*{name}"):
        again = learner(model_dir, digits(7), out, resume=True)
    assert again.step == 2
    again.train()
    assert torch.equal(weights(again.model), wanted)
    assert [row["step"] for row in read_metrics(out / "metrics.jsonl")] == [0, 1, 2, 3]
    names = sorted(p.name for p in (out / "checkpoints").iterdir())
    assert names == ["damaged-step-000003", "step-000002", "step-000003"]


def test_a_server_finds_no_weights_but_the_models_in_a_checkpoint(whole: Path) -> None:
    """Every safetensors file of a folder is loaded by vLLM."""
    for path in list_checkpoints(whole / "checkpoints"):
        assert [p.name for p in path.glob("*.safetensors")] == ["model.safetensors"]


@pytest.mark.parametrize("left", ["damaged", "removed"])
def test_a_run_without_a_usable_checkpoint_is_not_resumed(
    left: str, model_dir: Path, digits: Any, whole: Path, tmp_path: Path
) -> None:
    out = shutil.copytree(whole, tmp_path / "out")
    found = list_checkpoints(out / "checkpoints")
    for path in found:
        if left == "removed":
            shutil.rmtree(path)
        else:
            with (path / "model.safetensors").open("rb+") as file:
                file.truncate(100)
    before = state_of(out)
    # What was found: each damaged checkpoint by name, or how far the metrics go.
    names = [p.name for p in found] if left == "damaged" else ["3 step"]
    with refused_to_resume() as refused:
        learner(model_dir, digits(7), out, resume=True)
    assert all(name in str(refused.value) for name in names)
    assert state_of(out) == before
    # The same again: what was put aside is still known.
    with refused_to_resume():
        learner(model_dir, digits(7), out, resume=True)
    assert state_of(out) == before


def test_of_two_learners_that_start_together_one_refuses(
    model_dir: Path, digits: Any, tmp_path: Path
) -> None:
    """The second would train from nothing, and add its rows to those of the first."""
    first = learner(model_dir, digits(7), tmp_path)

    def train_both() -> None:
        second = learner(model_dir, digits(7), tmp_path)
        first.train()
        second.train()

    with pytest.raises(CheckpointError, match=str(tmp_path)):
        train_both()
    if first.step < first.config.steps:  # the second was refused when it was made
        first.train()
    assert [row["step"] for row in read_metrics(tmp_path / "metrics.jsonl")] == [0, 1, 2, 3]
    again = learner(model_dir, digits(7), tmp_path, resume=True)  # the directory is free
    assert again.step == 3


def test_a_process_holds_a_directory_once(tmp_path: Path) -> None:
    """The kernel would give the same process its own lock again."""
    for _ in range(2):
        with run_lock(tmp_path):
            with pytest.raises(CheckpointError, match="is training in"), run_lock(tmp_path):
                pass
            command = [sys.executable, "-c", TRY_LOCK, tmp_path / ".lock"]
            tried = subprocess.run(command, capture_output=True, text=True)
            assert "BlockingIOError" in tried.stderr  # trying has not given up the lock


TRY_LOCK = """
import fcntl, sys
fcntl.lockf(open(sys.argv[1], "r+"), fcntl.LOCK_EX | fcntl.LOCK_NB)
"""


def test_of_two_commands_that_start_together_one_refuses(model_dir: Path, tmp_path: Path) -> None:
    """Real processes: whoever is first, there is one run, and it is whole."""
    settings = {
        "env": "assay/Arithmetic-v1",
        "model": str(model_dir),
        "steps": 2,
        "prompts_per_step": 2,
        "group_size": 2,
        "max_new_tokens": 2,
        "warmup_steps": 1,
        "alarm_patience": 0,
        "eval_every": 0,
        "trackers": [],
    }
    (tmp_path / "run.yaml").write_text(json.dumps(settings))  # JSON is YAML
    command = [sys.executable, "-P", "-m", "assay", "train", "--config", "run.yaml", "--out", "out"]
    both = [
        subprocess.Popen(command, cwd=tmp_path, env=quiet(), stderr=subprocess.PIPE, text=True)
        for _ in "ab"
    ]
    errors = [process.communicate(timeout=120)[1] for process in both]
    codes = [process.returncode for process in both]
    assert sorted(codes) == [0, 2], errors
    refused = " ".join(errors[codes.index(2)].split())
    assert "another process is training in" in refused or "already holds a run" in refused
    steps = [row["step"] for row in read_metrics(tmp_path / "out" / "metrics.jsonl")]
    assert steps == [0, 1, 2]


HANGING = """
import sys, threading, traceback
from assay.envs import Rows, Task, TextEnv
from assay.grpo import GRPOConfig, Learner, load_model, training_tasks
from assay.verifiers import FunctionVerifier

calls = []

def digit(reply, reference):
    calls.append(reply)
    if len(calls) > 40:  # in the second step
        threading.Event().wait()  # a server that never answers
    return reply[:1].isdigit() or len(reply) % 2 == 0

def train(chunks):
    calls.clear()
    rows = Rows([Task(f"{i}?", str(i), id=str(i)) for i in range(8)])
    env = TextEnv(rows, FunctionVerifier(digit))
    config = GRPOConfig(
        steps=3, prompts_per_step=8, group_size=4, max_new_tokens=2, max_rollout_s=4,
        warmup_steps=1, rollout_chunks=chunks,
    )
    model, tokenizer = load_model(sys.argv[1])
    out = f"{sys.argv[2]}/{chunks}"
    Learner(model, tokenizer, training_tasks(env, config), config, out, progress=False).train()

try:
    train(2)
except Exception:
    traceback.print_exc()
train(1)
"""


def test_a_reward_that_hangs_stops_the_run_by_name(model_dir: Path, tmp_path: Path) -> None:
    """Judged in another thread or in the main one: what hangs is named, and the process ends."""
    ended = subprocess.run(
        [sys.executable, "-P", "-c", HANGING, model_dir, tmp_path],
        env=quiet(),
        capture_output=True,
        text=True,
        timeout=240,  # of a process that would hang for ever
    )
    assert ended.returncode == 1
    timeouts = [line for line in ended.stderr.splitlines() if "RolloutTimeout: " in line]
    for line, chunks, thread in zip(timeouts, (2, 1), ("assay-judge", "MainThread"), strict=True):
        assert "RolloutTimeout: the rollout of step 2 has taken more than 4 s" in line
        assert f"{thread} is in digit (<string>:" in line
        assert "raise max_rollout_s" in line
        kept = list_checkpoints(tmp_path / str(chunks) / "checkpoints")
        assert [p.name for p in kept] == ["step-000001"]


def test_a_time_limit_leaves_interrupts_and_errors_as_they_are() -> None:
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt), time_limit(60, "a rollout"):
        os.kill(os.getpid(), signal.SIGINT)
    with pytest.raises(ConnectionError), time_limit(60, "a rollout"):
        raise ConnectionError
    with time_limit(60, "a rollout"):
        pass
    assert signal.getsignal(signal.SIGINT) is before
    assert not [t for t in threading.enumerate() if t.name == "assay-watchdog"]


def test_what_hangs_while_it_is_stopped_is_interrupted_again() -> None:
    """SIGINT may be ignored, as in a job in the background."""

    def hang_twice() -> None:
        with time_limit(0.1, "it"):
            try:
                threading.Event().wait()
            finally:
                threading.Event().wait()

    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with pytest.raises(RolloutTimeout, match=r"it has taken .* is in hang_twice"):
            hang_twice()
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
