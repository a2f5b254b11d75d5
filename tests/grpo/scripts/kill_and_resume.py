"""Kill a run with SIGKILL twenty times, resume it each time, and say what was seen as JSON.

A process that has imported everything forks for each life of the run, which saves the imports.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from runs import learner

MODEL, OUT = sys.argv[1], Path(sys.argv[2])
KILLS = 20


def life(out: Path, *, resume: bool) -> None:
    """Train to the end."""
    learner(MODEL, out, resume=resume).train()


def forked(work: Callable[[], None]) -> int:
    """Do it in a child, and return its process id."""
    child = os.fork()
    if child:
        return child
    try:
        work()
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        os._exit(1)


def run(out: Path, *, resume: bool, limit_s: float | None) -> tuple[bool, float]:
    """One life: whether it came to its end, and the seconds it took."""
    started = time.monotonic()
    child = forked(lambda: life(out, resume=resume))
    if limit_s is not None:
        time.sleep(limit_s)
        os.kill(child, signal.SIGKILL)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status not in (0, -signal.SIGKILL):
        raise SystemExit(f"a life ended with {status}")
    return status == 0, time.monotonic() - started


_, seconds = run(OUT / "a", resume=False, limit_s=None)
chance = random.Random(0)  # noqa: S311  # nothing secret
kills = within = 0
lives = 0
out = OUT / "b"
while True:
    checkpoints = out / "checkpoints"
    resume = (out / "config.json").exists()
    if not resume:
        shutil.rmtree(out, ignore_errors=True)
    newest = sorted(checkpoints.glob("step-*")) if checkpoints.is_dir() else []
    within += any("update" in p.name for p in newest[-1:])
    limit = chance.uniform(0.1, 0.9) * seconds if kills < KILLS else None
    ended, _ = run(out, resume=resume, limit_s=limit)
    kills += not ended
    lives += 1
    if ended and kills >= KILLS:
        break
    if ended:  # it was too quick for us: from the start again
        os.rename(out, OUT / f"ended-{lives}")
left = [p.name for p in (out / "checkpoints").iterdir() if p.name.startswith(".")]
sys.stdout.write(
    json.dumps({"kills": kills, "within_a_rollout": within, "lives": lives, "left": left})
)
