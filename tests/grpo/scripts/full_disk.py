"""Train with files that may not grow past a size from step 2 on; say what was seen as JSON."""

from __future__ import annotations

import json
import resource
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from runs import learner

out = Path(sys.argv[2]) / "run"
trained = learner(
    sys.argv[1], out, resume=False, num_iterations=1, minibatches=1, save_every_updates=0
)


def shrink(row: dict[str, Any]) -> None:
    """The quota, once there is a checkpoint."""
    if row["step"] == 2:
        resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))


trained._on_step = shrink
try:
    trained.train()
except OSError as error:
    found = str(error)
else:
    found = ""
kept = sorted(p.name for p in (out / "checkpoints").iterdir())
sys.stdout.write(json.dumps({"error": found, "kept": kept}))
