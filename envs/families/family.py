"""The former place of :class:`~assay.envs.PuzzleEnv`; it goes with the next version."""

from __future__ import annotations

import warnings

from ..puzzle_env import Puzzle
from ..puzzle_env import PuzzleEnv as Family

__all__ = ["Family", "Puzzle"]

warnings.warn(
    "assay.envs.families.family.Family is now assay.envs.PuzzleEnv: import Puzzle and PuzzleEnv "
    "from assay.envs",
    DeprecationWarning,
    stacklevel=2,
)
