"""Two processes, by gloo on a processor, do what one does."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from assay.grpo import (
    GRPOConfig,
    Learner,
    World,
    choose_forward,
    list_checkpoints,
    load_model,
    read_metrics,
)
from assay.grpo.update import Updater

pytestmark = pytest.mark.slow

torch.set_num_threads(1)
SCRIPTS = Path(__file__).parent / "scripts"


sys.path.insert(0, str(SCRIPTS))  # tests are no package
try:
    import distributed_cases as cases
finally:
    sys.path.remove(str(SCRIPTS))


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


@pytest.fixture(scope="module")
def pair(model_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What two processes left; see the script."""
    out = tmp_path_factory.mktemp("pair")
    _stop_within_a_rollout(model_dir, out / "resumed-copies")
    shutil.copytree(out / "resumed-copies", out / "resumed-shards")
    ports = {"MASTER_PORT": str(free_port()), "SECOND_PORT": str(free_port())}
    shared = {
        "MASTER_ADDR": "127.0.0.1",
        "WORLD_SIZE": "2",
        "ASSAY_TIMEOUT_S": "100",
        "OMP_NUM_THREADS": "1",
        **ports,
    }
    script = str(SCRIPTS / "two_processes.py")
    both = []
    for rank in range(2):
        with (
            (out / f"out-{rank}.txt").open("w") as stdout,
            (out / f"err-{rank}.txt").open("w") as e,
        ):
            command = [sys.executable, "-P", script, str(model_dir), str(out)]
            env = {**os.environ, **shared, "RANK": str(rank)}
            both.append(subprocess.Popen(command, env=env, stdout=stdout, stderr=e))
    try:
        for process in both:
            process.wait(timeout=240)
    finally:
        for process in both:
            process.kill()
            process.wait()
    assert [process.returncode for process in both] == [0, 3], _errors(out)
    return out


@pytest.fixture(scope="module")
def single(model_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Learner:
    """The same run by one process."""
    return run(model_dir, tmp_path_factory.mktemp("single"))


def run(model_dir: Path, out: Path, *, steps: int = 2, resume: bool = False) -> Learner:
    learner = cases.learner(model_dir, out, settings={"steps": steps}, resume=resume)
    learner.train()
    return learner


def _errors(out: Path) -> str:
    return "\n".join(p.read_text()[-3000:] for p in sorted(out.glob("err-*.txt")))


def _stop_within_a_rollout(model_dir: Path, out: Path) -> None:
    """Leave a run that was asked to stop in the third of its first step's four updates."""
    learner = cases.learner(model_dir, out)
    cases.stop_in_update(learner, signal.SIGINT, 3)
    with pytest.raises(KeyboardInterrupt):
        learner.train()
    assert [p.name for p in list_checkpoints(out / "checkpoints")] == ["step-000001"]


def weights(model: Any) -> torch.Tensor:
    return torch.cat([p.detach().flatten() for p in model.parameters()])


def apart(found: torch.Tensor, wanted: torch.Tensor) -> float:
    """The largest difference, relative to the largest number."""
    return float((found - wanted).abs().max() / wanted.abs().max())


@pytest.mark.parametrize("form", ["copies", "shards"])
@pytest.mark.parametrize("case", cases.GRADIENTS)
def test_the_gradient_is_that_of_one_process(
    pair: Path, model_dir: Path, case: str, form: str
) -> None:
    rows, settings = cases.GRADIENTS[case]
    config = GRPOConfig(**{**cases.SETTINGS, **settings})
    model = cases.model_of(case, model_dir)
    updater = Updater(model, choose_forward(model)[1], config, World.single())
    _, norm = updater.gradient(rows)
    found = torch.load(pair / "gradients.pt", weights_only=True)
    wanted = torch.cat([p.grad.flatten() for p in model.parameters()])
    near = 1e-2 if case == "autocast" else 1e-6  # other micro-batches round otherwise
    assert apart(found[f"{case}/{form}"], wanted) < near
    assert float(found[f"{case}/{form}/norm"]) == pytest.approx(norm, rel=near)


@pytest.mark.parametrize("form", ["copies", "shards"])
def test_the_run_is_that_of_one_process(pair: Path, single: Learner, form: str) -> None:
    """Rollouts of 7 prompts, 8 optimizer steps, evaluations, and one writer."""
    last = list_checkpoints(pair / form / "checkpoints")[-1]
    model, _ = load_model(last)
    assert last.name == "step-000002"
    assert apart(weights(model), weights(single.model)) < 1e-6
    mine = read_metrics(pair / form / "metrics.jsonl")
    theirs = read_metrics(single.out_dir / "metrics.jsonl")
    assert [r["step"] for r in mine] == [0, 1, 2]
    for row, wanted in zip(mine, theirs, strict=True):
        assert row.keys() == wanted.keys()
        for name, value in wanted.items():
            if not name.startswith(("seconds/", "tokens/s")):
                assert row[name] == pytest.approx(value, rel=1e-4, abs=1e-6), name


@pytest.mark.parametrize("form", ["copies", "shards"])
def test_the_reference_stays_as_the_policy_moves(pair: Path, form: str) -> None:
    for rank in range(2):
        assert (
            json.loads((pair / f"said-{rank}.json").read_text())[f"reference of {form}"] == "kept"
        )


def test_two_save_and_one_goes_on(pair: Path, model_dir: Path, tmp_path: Path) -> None:
    """From checkpoints of two processes, one reaches the weights of one that was never two."""
    whole = run(model_dir, tmp_path / "whole", steps=3)
    for form in ("copies", "shards"):
        out = shutil.copytree(pair / form, tmp_path / form)
        resumed = run(model_dir, out, steps=3, resume=True)
        assert apart(weights(resumed.model), weights(whole.model)) < 1e-6
        assert [r["step"] for r in read_metrics(out / "metrics.jsonl")] == [0, 1, 2, 3]


@pytest.mark.parametrize("form", ["copies", "shards"])
def test_one_saves_and_two_go_on(pair: Path, single: Learner, form: str) -> None:
    last = list_checkpoints(pair / f"resumed-{form}" / "checkpoints")[-1]
    assert last.name == "step-000002"
    assert apart(weights(load_model(last)[0]), weights(single.model)) < 1e-6


@pytest.mark.parametrize("form", ["copies", "shards"])
def test_a_failure_in_one_stops_all_with_a_checkpoint(pair: Path, form: str) -> None:
    said = [json.loads((pair / f"said-{rank}.json").read_text()) for rank in range(2)]
    empty = "ValueError: a prompt must come to at least one token, got none"
    assert said[0][form].startswith(f"ProcessFailed: process 1 of 2 failed: {empty}")
    assert said[1][form].startswith(empty)
    assert [p.name for p in list_checkpoints(pair / f"fails-{form}" / "checkpoints")] == [
        "step-000001"
    ]


def test_sigterm_to_all_leaves_a_checkpoint_of_the_update_in_hand(pair: Path) -> None:
    for rank in range(2):
        said = json.loads((pair / f"said-{rank}.json").read_text())
        assert said["stopped"] == "terminated by SIGTERM"
    kept = [p.name for p in list_checkpoints(pair / "stopped" / "checkpoints")]
    assert kept == ["step-000001"]


def test_the_command_line_trains_in_both_and_speaks_once(pair: Path) -> None:
    said = [(pair / f"out-{rank}.txt").read_text() for rank in range(2)]
    assert said[0].count("Model: ") == 1
    assert said[1] == ""
    assert [p.name for p in list_checkpoints(pair / "command" / "checkpoints")] == ["step-000001"]


def test_a_process_that_dies_ends_the_run_with_a_checkpoint(pair: Path) -> None:
    said = json.loads((pair / "said-0.json").read_text())["dies"]
    assert "one has died, or was silent for 100 s (ASSAY_TIMEOUT_S" in said
    kept = [p.name for p in list_checkpoints(pair / "dies" / "checkpoints")]
    assert kept == ["step-000001"]  # written by the one that is left
