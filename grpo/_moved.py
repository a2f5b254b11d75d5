"""Names that have left ``assay.grpo``, and where they are; both work for one version."""

from __future__ import annotations

import importlib
import warnings
from typing import Any

_TRAINERS = """
    Critic Finished FitConfig Label PPOConfig PPOLearner PreferencePair Round Stage
    TrainableRewardModel WarmStart accepted_replies dpo dpo_loss fingerprints gae
    iterative_grpo labels_of preference_pairs replayed rft run_stages sft value_loss
    version_of warm_start
"""
_UNITS = """
    BranchingPolicy CloningEnv ConstantNoise Credit CriticCredit FlowNoise FlowPolicy Scorer
    UnitConfig UnitLearner UnitPolicy Units clamped gae_estimate gaussian_kl gaussian_logprob
    hybrid_advantages hybrid_estimate matching_loss outcome_credit state_credit step_mean
    time_grid
"""
MOVED = {
    **dict.fromkeys(_TRAINERS.split(), "assay.family.trainers"),
    **dict.fromkeys(_UNITS.split(), "assay.family.units"),
}


def find_moved(name: str) -> Any:
    """Import a name from where it is now, with a ``DeprecationWarning`` that says where.

    Raises:
        AttributeError: it has never been in ``assay.grpo``.
    """
    if name not in MOVED:
        raise AttributeError(f"module 'assay.grpo' has no attribute {name!r}")
    place = MOVED[name]
    warnings.warn(
        f"assay.grpo.{name} has moved: from {place} import {name}",
        DeprecationWarning,
        stacklevel=3,
    )
    return getattr(importlib.import_module(place), name)
