"""An alarm for rollouts that hold nothing to learn from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def stall(row: Mapping[str, Any]) -> str | None:
    """Say what is wrong where a rollout holds nothing to learn from, or ``None``."""
    if row["zero_variance"] < 1 or row["reward"] is None:  # NaN is None in a row that was read back
        return None
    if row["reward"] <= 0.01:
        cut = row["truncated"]
        return (
            "every group earned the same, and nearly nothing: no gradient, and none will come "
            "back by itself. "
            + (
                f"{cut:.0%} of the replies were cut off: raise max_new_tokens."
                if cut > 0.5
                else "Warm-start the model, take easier tasks, or, if rewards were higher "
                "before, go back to a checkpoint with a lower learning_rate or more warmup_steps."
            )
        )
    if row["reward"] >= 0.99:
        return "every reply earned full marks: nothing is left to learn here. Take harder tasks."
    return None


class Alarm:
    """Calls out where several rollouts in a row hold nothing to learn from.

    One such rollout happens in a healthy run with few prompts; three in a row hardly do.
    """

    def __init__(self, *, patience: int = 3) -> None:
        self._patience, self._streak = patience, 0

    def check(self, row: Mapping[str, Any]) -> str | None:
        """Take a step's row; give the message once when the streak reaches the patience."""
        message = stall(row)
        self._streak = 0 if message is None else self._streak + 1
        return message if self._streak == self._patience else None
