"""The learner: group-relative advantages, clipped losses, and the loop around them.

Settings and presets are imported with this package; the other names need torch, and are imported
when they are first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from .config import GRPOConfig as GRPOConfig
from .config import Objective as Objective
from .presets import PRESETS as PRESETS

if TYPE_CHECKING:
    from . import api
    from .api import *  # noqa: F403

    __all__ = api.__all__
else:

    def __getattr__(name: str) -> Any:
        """Import a public name when it is first used."""
        if not name.startswith("__") or name == "__all__":
            api = importlib.import_module(".api", __name__)
            for names in (globals(), vars(api)):
                if name in names:
                    return names[name]
        raise AttributeError(f"module 'assay.grpo' has no attribute {name!r}")
