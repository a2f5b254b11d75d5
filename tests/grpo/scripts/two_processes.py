"""Run in two processes by test_distributed.py: ``two_processes.py MODEL OUT``.

Writes what came of it into ``OUT/gradients.pt`` and ``OUT/found.json``.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import warnings
from itertools import count
from pathlib import Path
from typing import Any

import torch

from assay.cli import main as assay_main
from assay.envs import Task
from assay.grpo import (
    GRPOConfig,
    Learner,
    ProcessFailed,
    ProcessLost,
    Terminated,
    World,
    choose_forward,
)
from assay.grpo.tasks import ScheduledTasks
from assay.grpo.update import Updater

sys.path.insert(0, str(Path(__file__).parent))  # tests are no package
import distributed_cases as cases


def gradients(model_dir: Path, world: World) -> dict[str, torch.Tensor]:
    """Of each case's rows, whole and in shards."""
    found = {}
    for name, (rows, settings) in cases.GRADIENTS.items():
        config = GRPOConfig(**{**cases.SETTINGS, **settings})
        for shard in (False, True):
            model = cases.model_of(name, model_dir)
            _, forward = choose_forward(model)
            updater = Updater(model, forward, config, world, shard=shard)
            _, norm = updater.gradient(rows)
            parameters = [p for group in updater.optimizer.param_groups for p in group["params"]]
            grads = [p.grad.full_tensor() if shard else p.grad for p in parameters]
            key = f"{name}/{'shards' if shard else 'copies'}"
            found[key] = torch.cat([g.flatten() for g in grads])
            found[f"{key}/norm"] = torch.tensor(norm)
    return found


def reference_of(learner: Learner) -> list[tuple[float, ...]]:
    """What the reference of a learner says of some rows."""
    rows = [cases.row(prompt, 0, 5, 1.0) for prompt in range(3)]
    with learner.reference.reading():
        return [scores.logprobs for scores in learner._updater.read(rows)]


class Failing(ScheduledTasks):
    """Its second step asks process 1 for what it cannot give."""

    def __call__(self, policy: Any, step: int) -> Any:
        """Roll out."""
        if step == 2:
            tasks = [Task(text, "", id=text) for text in ("fine", "")]
            return self._play(policy, tasks, 2, None)
        return super().__call__(policy, step)


def stopped_in_an_update(learner: Learner) -> str:
    """SIGTERM to every process, as a launcher sends it, while the optimizer takes a step."""
    cases.stop_in_update(learner, signal.SIGTERM, 2)
    try:
        learner.train()
    except Terminated as error:
        return str(error)
    return "went on"


def command_line(model_dir: Path, out: Path) -> None:
    """``assay train``, as a launcher starts it in each process."""
    settings = {
        "model": model_dir,
        "out": out,
        "steps": 1,
        "prompts": 3,
        "group-size": 2,
        "max-new-tokens": 3,
        "eval-every": 1,
        "held-out": 3,
    }
    options = [text for name, value in settings.items() for text in (f"--{name}", str(value))]
    sys.argv[1:] = ["train", "assay/Arithmetic-v1", *options, "--shard"]
    with contextlib.suppress(SystemExit):
        assay_main()


def main() -> None:
    torch.set_num_threads(1)
    warnings.simplefilter("error")
    model_dir, out = Path(sys.argv[1]), Path(sys.argv[2])
    world = World.join()
    found = gradients(model_dir, world)
    if world.is_main:
        torch.save(found, out / "gradients.pt")
    said: dict[str, str] = {}
    for form in ("copies", "shards"):
        of: Any = {"world": world, "shard": form == "shards"}
        learner = cases.learner(model_dir, out / form, **of)
        before = reference_of(learner)
        learner.train()
        said[f"reference of {form}"] = "kept" if reference_of(learner) == before else "moved"
        cases.learner(model_dir, out / f"resumed-{form}", resume=True, **of).train()
        try:
            cases.learner(model_dir, out / f"fails-{form}", rollout=Failing, **of).train()
        except (ProcessFailed, ValueError) as error:
            said[form] = f"{type(error).__name__}: {error}"
    whole = cases.learner(model_dir, out / "stopped", held_out=None, world=world, shard=True)
    said["stopped"] = stopped_in_an_update(whole)
    command_line(model_dir, out / "command")  # it closes the connections
    os.environ["MASTER_PORT"] = os.environ["SECOND_PORT"]
    world = World.join()
    learner = cases.learner(model_dir, out / "dies", settings={"save_every": 0}, world=world)
    if not world.is_main:
        (out / "said-1.json").write_text(json.dumps(said))
        read, calls = learner._updater.read, count(1)
        learner._updater.read = lambda *parts: os._exit(3) if next(calls) == 2 else read(*parts)
    try:
        learner.train()
    except ProcessLost as error:
        said["dies"] = str(error)
    (out / "said-0.json").write_text(json.dumps(said))
    os._exit(0)  # there is nobody left to take leave of


main()
