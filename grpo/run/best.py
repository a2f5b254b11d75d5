"""The best model of a run, and when to stop waiting for a better one."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...verifiers.atomic_io import remove_directory, sweep
from .checkpoint import save_model
from .guards import Ending

METRIC = "held_out/reward"


class EarlyStop:
    """Counts evaluations in a row without a better one.

    Args:
        evaluations: how many end the run; 0 for any number.
    """

    def __init__(self, evaluations: int) -> None:
        self._most, self._since, self._best = evaluations, 0, -math.inf

    def check(self, row: Mapping[str, Any]) -> Ending | None:
        """Take a row, with an evaluation or without; say why the run ends, where it does."""
        value = row.get(METRIC)
        if value is None:
            return None
        better = value > self._best  # False for NaN
        self._best, self._since = (value, 0) if better else (self._best, self._since + 1)
        if not self._most or self._since < self._most:
            return None
        return Ending(
            f"{self._since} evaluations in a row were no better than {METRIC} = {self._best:.4g}",
            True,
        )


def keep_best(directory: Path, model: Any, tokenizer: Any, row: Mapping[str, Any]) -> bool:
    """Keep a model as ``directory/step-000123`` where it beats the one that is there.

    The new one is whole before the old one goes.

    Args:
        directory: holds nothing else.
        model: as it was evaluated.
        tokenizer: the model's.
        row: with an evaluation or without.

    Returns:
        Whether it was kept.
    """
    value = row.get(METRIC)
    sweep(directory)
    before = sorted(p for p in directory.iterdir() if p.is_dir()) if directory.is_dir() else []
    bars = [json.loads((p / "score.json").read_text(encoding="utf-8"))[METRIC] for p in before]
    if value is None or math.isnan(value) or value <= max(bars, default=-math.inf):
        return False
    path = directory / f"step-{row['step']:06d}"
    if path in before:  # an earlier branch of a run that was resumed from before it
        remove_directory(path)
    save_model(path, model, tokenizer, {"step": row["step"], METRIC: value})
    for old in before:
        if old != path:
            remove_directory(old)
    return True
