"""Kill a run with SIGKILL twenty times and resume it each time; fill another one's disk.

One process imports everything and forks for each life of a run, which saves the imports. What was
seen goes to the output as JSON.
"""

from __future__ import annotations

import json
import os
import random
import resource
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from assay.envs import Prioritised, Rows, Task, TextEnv
from assay.grpo import GRPOConfig, Learner, load_model
from assay.grpo.checkpoint import list_checkpoints
from assay.grpo.tasks import SampledTasks
from assay.verifiers import FunctionVerifier

torch.set_num_threads(1)
MODEL, OUT = sys.argv[1], Path(sys.argv[2])
KILLS = 20


def learner(out: Path, *, resume: bool = False, **settings: Any) -> Learner:
    """Of twelve tasks: a reply that begins with a digit up to the task's own is right."""
    tasks = [Task(f"{i}?", str(i), id=str(i)) for i in range(12)]
    judge = FunctionVerifier(lambda reply, gold: reply[:1].isdigit() and int(reply[0]) <= int(gold))
    env = TextEnv(Rows(tasks), judge)
    defaults = {
        "steps": 3,
        "prompts_per_step": 4,
        "group_size": 4,
        "max_new_tokens": 2,
        "learning_rate": 3e-3,
        "num_iterations": 2,
        "minibatches": 2,
        "beta": 0.02,
        "reference_every": 2,
        "save_every": 1,
    }
    config = GRPOConfig(**{**defaults, **settings})
    rollout = SampledTasks(env, config, Prioritised(env.source))
    model, tokenizer = load_model(MODEL)
    return Learner(model, tokenizer, rollout, config, out, resume=resume, progress=False)


def life(work: Callable[[], None], *, limit_s: float | None = None) -> bool:
    """Do it in a child, and say whether it came to its end before it was killed."""
    child = os.fork()
    if not child:
        try:
            work()
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    if limit_s is not None:
        time.sleep(limit_s)
        os.kill(child, signal.SIGKILL)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status not in (0, -signal.SIGKILL):
        raise SystemExit(f"a life ended with {status}")
    return status == 0


def kill_and_resume() -> dict[str, Any]:
    """Runs are killed until they end; each of those that end is to be like the unbroken one."""
    started = time.monotonic()
    life(lambda: learner(OUT / "unbroken").train())
    seconds = time.monotonic() - started
    chance = random.Random(0)  # noqa: S311  # nothing secret
    kills = 0
    ended = [OUT / "run-0"]
    while True:
        out = ended[-1]
        resume = bool(list_checkpoints(out / "checkpoints"))
        if not resume:  # killed before its first checkpoint: resuming is refused once it has a row
            shutil.rmtree(out, ignore_errors=True)
        limit = chance.uniform(0.05, 0.7) * seconds if kills < KILLS else None
        over = life(
            lambda out=out, resume=resume: learner(out, resume=resume).train(), limit_s=limit
        )
        kills += not over
        if over and kills == KILLS:
            break
        if over:
            ended.append(OUT / f"run-{len(ended)}")
    left = [p.name for p in out.glob("checkpoints/.*")]
    names = [p.name for p in ended]
    return {"kills": kills, "ended": names, "left": left}


def full_disk(size: int) -> None:
    """No file may grow past this many bytes from step 2 on, as by a quota."""
    out = OUT / f"full-{size}"
    run = learner(out, num_iterations=1, minibatches=1)

    def shrink(row: dict[str, Any]) -> None:
        if row["step"] == 2:
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    run._on_step = shrink
    try:
        run.train()
    except OSError as error:
        out.with_suffix(".txt").write_text(str(error))


found = kill_and_resume()
for quota in (50_000, 120_000):  # the weights have 80 kB, the optimizer's state twice as many
    life(lambda size=quota: full_disk(size))
sys.stdout.write(json.dumps(found) + "\n")
