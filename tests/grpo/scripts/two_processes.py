"""Run in two processes by test_distributed.py: ``two_processes.py MODEL OUT``.

Writes what came of it into ``OUT/gradients.pt`` and ``OUT/found.json``.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import warnings
from pathlib import Path
from typing import Any

import torch

from assay.grpo import GRPOConfig, Learner, World, choose_forward, load_model
from assay.grpo.distributed.share import deal
from assay.grpo.distributed.worker import Worker
from assay.grpo.distributed.world import ProcessFailed, ProcessLost
from assay.grpo.update import denominator_of, teaching

HERE = Path(__file__).parent


def _module(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


Digits = _module(HERE.parent / "conftest.py").Digits
cases = _module(HERE / "distributed_cases.py")


def gradients(model_dir: Path, world: World) -> dict[str, torch.Tensor]:
    """Of each case's rows, whole and in shards."""
    found = {}
    for name, (rows, settings) in cases.GRADIENTS.items():
        config = GRPOConfig(**{**cases.SETTINGS, **settings})
        for shard in (False, True):
            model, tokenizer = load_model(model_dir)
            _, forward = choose_forward(model)
            worker = Worker(model, tokenizer, forward, config, world, shard=shard)
            worker.agree()
            shares = deal(teaching(rows, config), world.size)
            passes = max(worker.passes(share) for share in shares)
            worker.accumulate(shares[world.rank], denominator_of(rows, config), passes)
            norm = worker.reduce()
            parameters = [p for group in worker.optimizer.param_groups for p in group["params"]]
            grads = [p.grad.full_tensor() if shard else p.grad for p in parameters]
            key = f"{name}/{'shards' if shard else 'copies'}"
            found[key] = torch.cat([g.flatten() for g in grads])
            found[f"{key}/norm"] = torch.tensor(norm)
    return found


def run(model_dir: Path, out: Path, world: World, **more: Any) -> Learner:
    model, tokenizer = load_model(model_dir)
    shard, resume = more.pop("shard", False), more.pop("resume", False)
    rollout = more.pop("rollout", None) or Digits(7)
    config = GRPOConfig(**{**cases.SETTINGS, **cases.RUN, **more})
    learner = Learner(
        model,
        tokenizer,
        rollout,
        config,
        out,
        held_out=Digits(3, 1),
        resume=resume,
        progress=False,
        world=world,
        shard=shard,
    )
    learner.train()
    return learner


def main() -> None:
    torch.set_num_threads(1)
    warnings.simplefilter("error")
    model_dir, out = Path(sys.argv[1]), Path(sys.argv[2])
    world = World.join(timeout_s=60)
    found = gradients(model_dir, world)
    if world.is_main:
        torch.save(found, out / "gradients.pt")
    said: dict[str, str] = {}
    for shard in (False, True):
        run(model_dir, out / ("shards" if shard else "copies"), world, shard=shard)

    class Failing(Digits):  # type: ignore[misc,valid-type]
        """Its second step asks for more than a process can give."""

        def __call__(self, policy: Any, step: int) -> Any:
            if step == 2:
                policy([[{"role": "user", "content": ""}]] * 2)
            return super().__call__(policy, step)

    for shard in (False, True):
        name = f"fails-{shard}"
        try:
            run(model_dir, out / name, world, rollout=Failing(7), shard=shard)
        except (ProcessFailed, ValueError) as error:
            said[f"{name}/{world.rank}"] = f"{type(error).__name__}: {error}"

    class Dying(Digits):  # type: ignore[misc,valid-type]
        """Process 1 dies when process 0 asks it for the second time."""

    if world.rank:
        (out / f"said-{world.rank}.json").write_text(json.dumps(said))
        model, tokenizer = load_model(model_dir)
        config = GRPOConfig(**{**cases.SETTINGS, **cases.RUN})
        learner = Learner(model, tokenizer, Digits(7), config, out / "dies", world=world)
        learner._crew._team._tasks["step"] = lambda rate: os._exit(3)
        learner.train()
    try:
        run(model_dir, out / "dies", world)
    except ProcessLost as error:
        said["dies/0"] = str(error)
    (out / "said-0.json").write_text(json.dumps(said))
    os._exit(0)  # there is nobody to say good-bye to


main()
