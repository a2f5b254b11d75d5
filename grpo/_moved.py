"""Names that have left ``assay.grpo``: they work for one version, from wherever they are now."""

from __future__ import annotations

import importlib
import warnings
from typing import Any, get_origin

_PLACES = (
    *("grpo.advantage", "grpo.loss", "grpo.batch", "grpo.checkpoint", "grpo.draw", "grpo.guards"),
    *("grpo.loading", "grpo.log", "grpo.logprobs", "grpo.presets", "grpo.records"),
    *("grpo.reference", "grpo.run_directory", "grpo.sampler", "grpo.tasks"),
    *("envs", "envs.group_summary", "verifiers.visible"),
    *("run_report.history", "run_report.plot", "run_report.report"),
    *("family.trainers", "family.units"),
)


def find_moved(name: str) -> Any:
    """Import a name from where it is now, with a ``DeprecationWarning`` that says where.

    Raises:
        AttributeError: it is nowhere.
    """
    for place in () if name.startswith("_") else (f"assay.{each}" for each in _PLACES):
        found = getattr(importlib.import_module(place), name, None)
        ours = str(getattr(found, "__module__", "")).startswith(place)
        if ours or get_origin(found) is not None:  # an alias of types has no module of its own
            message = f"assay.grpo.{name} has moved: from {place} import {name}"
            warnings.warn(message, DeprecationWarning, stacklevel=3)
            return found
    raise AttributeError(f"module 'assay.grpo' has no attribute {name!r}")
