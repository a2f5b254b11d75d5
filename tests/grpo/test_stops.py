"""A run that is stopped, killed or out of disk goes on to the same bits."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import torch

from assay.grpo import (
    CheckpointError,
    GRPOConfig,
    Learner,
    Terminated,
    list_checkpoints,
    load_model,
    read_metrics,
)
from assay.grpo.checkpoint import load_checkpoint
from assay.grpo.interrupt import Signals, terminable

pytestmark = pytest.mark.slow

torch.set_num_threads(1)
SETTINGS: dict[str, Any] = {
    "steps": 2,
    "prompts_per_step": 7,
    "group_size": 4,
    "max_new_tokens": 2,
    "learning_rate": 3e-3,
    "warmup_steps": 2,
    "num_iterations": 2,
    "minibatches": 2,
    "beta": 0.05,
    "max_mismatch": 0.01,
}


def weights(model: Any) -> torch.Tensor:
    return torch.cat([p.detach().flatten() for p in model.parameters()])


def numbers(out: Path) -> list[dict[str, Any]]:
    rows = read_metrics(out / "metrics.jsonl")
    return [
        {k: v for k, v in r.items() if not k.startswith("seconds/") and k != "tokens/s"}
        for r in rows
    ]


def learner(model_dir: Path, rollout: Any, out: Path, **settings: Any) -> Learner:
    model, tokenizer = load_model(model_dir)
    resume = settings.pop("resume", False)
    held_out = settings.pop("held_out", None)
    config = GRPOConfig(**{**SETTINGS, **settings})
    return Learner(model, tokenizer, rollout, config, out, held_out=held_out, resume=resume)


def away(tasks: Callable[..., Any], at: int) -> Callable[..., Any]:
    """Tasks whose judge is away at a step."""

    def rollout(policy: Any, step: int) -> Any:
        if step == at:
            raise ConnectionError("the judge is away")
        return tasks(policy, step)

    return rollout


def test_sigterm_after_any_update_and_resume_give_the_same_bits(
    model_dir: Path, digits: Any, tmp_path: Path
) -> None:
    """A real SIGTERM in an update of each step: the step's updates are done first."""
    whole = learner(model_dir, digits(7), tmp_path / "whole")
    whole.train()
    stopped: list[str] = []

    def step_and_stop(take: Callable[[], None], taken: Iterator[int], last: int) -> None:
        if next(taken) == last:
            os.kill(os.getpid(), signal.SIGTERM)
        take()

    for turn in range(3):
        run = learner(model_dir, digits(7), tmp_path / "cut", resume=turn > 0)
        run.optimizer.step = partial(step_and_stop, run.optimizer.step, count(), turn)
        try:
            run.train()
            break
        except Terminated as error:
            newest = list_checkpoints(tmp_path / "cut" / "checkpoints")[-1]
            stopped.append(f"{error.code} {newest.name}")
    assert stopped == ["143 step-000001", "143 step-000002"]
    assert torch.equal(weights(run.model), weights(whole.model))
    assert numbers(tmp_path / "cut") == numbers(tmp_path / "whole")
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_a_stop_in_an_evaluation_leaves_it_to_be_done(
    model_dir: Path, digits: Any, tmp_path: Path
) -> None:
    one = {"num_iterations": 1, "minibatches": 1, "eval_every": 1, "steps": 3}
    run = learner(model_dir, digits(7), tmp_path / "cut", held_out=away(digits(4, 1), 2), **one)
    with pytest.raises(ConnectionError):
        run.train()
    assert [row["step"] for row in numbers(tmp_path / "cut")] == [0, 1]
    learner(
        model_dir, digits(7), tmp_path / "cut", held_out=digits(4, 1), resume=True, **one
    ).train()
    learner(model_dir, digits(7), tmp_path / "whole", held_out=digits(4, 1), **one).train()
    assert numbers(tmp_path / "cut") == numbers(tmp_path / "whole")


def test_a_row_that_was_logged_after_its_checkpoint_is_not_logged_again(
    model_dir: Path, digits: Any, tmp_path: Path
) -> None:
    """The last step's evaluation is stopped, done on resume, and not done once more."""
    one = {"num_iterations": 1, "minibatches": 1, "eval_every": 1, "steps": 1}
    with pytest.raises(ConnectionError):
        learner(model_dir, digits(7), tmp_path, held_out=away(digits(4, 1), 1), **one).train()
    for _ in range(2):
        held_out = digits(4, 1)
        learner(model_dir, digits(7), tmp_path, held_out=held_out, resume=True, **one).train()
        assert [row["step"] for row in numbers(tmp_path)] == [0, 1]


def test_a_reference_refreshed_since_its_checkpoint_is_refreshed_again(
    model_dir: Path, digits: Any, tmp_path: Path
) -> None:
    """Stopped in the evaluation of step 1, and again in the rollout of step 2."""

    def run(out: str, trains: Any, held_out: Any, *, resume: bool = False) -> Learner:
        one = {"num_iterations": 1, "minibatches": 1, "eval_every": 1, "reference_every": 1}
        given = {"held_out": held_out, "resume": resume, **one}
        made = learner(model_dir, trains, tmp_path / out, **given)
        made.train()
        return made

    with pytest.raises(ConnectionError):
        run("cut", digits(7), away(digits(4, 1), 1))
    with pytest.raises(ConnectionError):
        run("cut", away(digits(7), 2), digits(4, 1), resume=True)
    cut = run("cut", digits(7), digits(4, 1), resume=True)
    whole = run("whole", digits(7), digits(4, 1))
    assert torch.equal(weights(cut.model), weights(whole.model))
    assert numbers(tmp_path / "cut") == numbers(tmp_path / "whole")


def test_a_best_model_that_could_not_be_written_is_kept_on_resume(
    model_dir: Path, digits: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = {"steps": 1, "eval_every": 1, "keep_best": True, "held_out": digits(4, 1)}

    def full(*_: Any) -> None:
        raise OSError("No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("assay.grpo.run_directory.save_weights", full)
        with pytest.raises(OSError, match="No space"):
            learner(model_dir, digits(7), tmp_path, **one).train()
    assert not list(tmp_path.glob("best/step-*"))
    learner(model_dir, digits(7), tmp_path, resume=True, **one).train()
    assert list(tmp_path.glob("best/step-*"))


def test_settings_that_are_written_otherwise_are_the_same(
    model_dir: Path, digits: Any, tmp_path: Path
) -> None:
    """Values under names of secrets are redacted, and JSON has no tuples."""
    settings: dict[str, Any] = {"chat_template_kwargs": {"thought_token": "<t>", "words": ("a",)}}
    learner(model_dir, digits(7), tmp_path, steps=1, **settings).train()
    learner(model_dir, digits(7), tmp_path, steps=2, resume=True, **settings).train()
    other = {"chat_template_kwargs": {"thought_token": "<t>", "words": ("b",)}}
    with pytest.raises(CheckpointError, match="other settings"):
        learner(model_dir, digits(7), tmp_path, resume=True, **other)


def test_a_run_killed_before_its_first_checkpoint_begins_again(
    model_dir: Path, digits: Any, tmp_path: Path
) -> None:
    whole = learner(model_dir, digits(7), tmp_path / "whole")
    whole.train()
    learner(model_dir, digits(7), tmp_path / "cut")
    with pytest.raises(CheckpointError, match=r"other settings: \{'seed': 0\}"):
        learner(model_dir, digits(7), tmp_path / "cut", resume=True, seed=1)
    run = learner(model_dir, digits(7), tmp_path / "cut", resume=True)
    run.train()
    assert torch.equal(weights(run.model), weights(whole.model))
    assert numbers(tmp_path / "cut") == numbers(tmp_path / "whole")
    settings = json.loads((tmp_path / "cut" / "config.json").read_text())
    assert GRPOConfig(**settings["config"]) == run.config
    assert set(settings["versions"]) >= {"assay", "python", "torch", "transformers"}


def test_a_signal_is_held_back_and_delivered_once() -> None:
    order = []

    def once() -> None:
        with terminable(), Signals() as inner:
            os.kill(os.getpid(), signal.SIGTERM)
            order.append("held")
            with inner.at_once():
                order.append("never")

    def twice() -> None:
        with Signals():
            os.kill(os.getpid(), signal.SIGINT)
            order.append("first")
            os.kill(os.getpid(), signal.SIGINT)
            order.append("never")

    def at_the_end() -> None:
        with Signals():
            os.kill(os.getpid(), signal.SIGINT)
            order.append("last")

    with pytest.raises(Terminated, match="SIGTERM"):
        once()
    with pytest.raises(KeyboardInterrupt):
        twice()
    with pytest.raises(KeyboardInterrupt):
        at_the_end()
    assert order == ["held", "first", "last"]
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


@pytest.fixture(scope="module")
def hard_ends(model_dir: Path) -> Iterator[tuple[Path, Any]]:
    """Runs that were killed, and one whose disk was full; see the script."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # syncing is quicker there
    with tempfile.TemporaryDirectory(dir=memory) as out:
        ran = subprocess.run(
            [
                sys.executable,
                "-P",
                Path(__file__).parent / "scripts" / "hard_ends.py",
                model_dir,
                out,
            ],
            capture_output=True,
            text=True,
            timeout=280,
        )
        assert ran.returncode == 0, ran.stderr
        yield Path(out), json.loads(ran.stdout.splitlines()[-1])


def test_killed_twenty_times_it_ends_where_the_unbroken_run_does(hard_ends: Any) -> None:
    """SIGKILL at random moments of a short run, resumed each time: the same bits, the same log."""
    out, done = hard_ends
    assert done["kills"] == 20
    assert done["left"] == []
    whole = list_checkpoints(out / "unbroken" / "checkpoints")[-1]
    for name in done["ended"]:
        last = list_checkpoints(out / name / "checkpoints")[-1]
        assert last.name == whole.name == "step-000003"
        for file in ("model.safetensors", "reference/model.safetensors", "tasks.json"):
            assert (last / file).read_bytes() == (whole / file).read_bytes()
        assert numbers(out / name) == numbers(out / "unbroken")


@pytest.mark.parametrize("size", [50_000, 120_000], ids=["weights", "optimizer"])
def test_a_full_disk_leaves_the_last_good_checkpoint(hard_ends: Any, model: Any, size: int) -> None:
    """The weights or the optimizer's state do not fit."""
    out, _ = hard_ends
    said = (out / f"full-{size}.txt").read_text()
    assert "cannot write the checkpoint" in said
    assert "The last good one is" in said
    kept = list((out / f"full-{size}" / "checkpoints").iterdir())
    assert [p.name for p in kept] == ["step-000001"]
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    assert load_checkpoint(kept[0], model, optimizer).step == 1
