"""GRPO over units that are no tokens: denoising steps of a flow, actions in an environment."""

from .branching import BranchingPolicy, CloningEnv
from .credit import CriticCredit, gae_estimate, hybrid_advantages, hybrid_estimate, state_credit
from .denoising import (
    ConstantNoise,
    FlowNoise,
    gaussian_kl,
    gaussian_logprob,
    matching_loss,
    step_mean,
    time_grid,
)
from .flow import FlowPolicy
from .learner import UnitConfig, UnitLearner
from .units import Credit, Scorer, UnitPolicy, Units, clamped, outcome_credit

__all__ = [
    "BranchingPolicy",
    "CloningEnv",
    "ConstantNoise",
    "Credit",
    "CriticCredit",
    "FlowNoise",
    "FlowPolicy",
    "Scorer",
    "UnitConfig",
    "UnitLearner",
    "UnitPolicy",
    "Units",
    "clamped",
    "gae_estimate",
    "gaussian_kl",
    "gaussian_logprob",
    "hybrid_advantages",
    "hybrid_estimate",
    "matching_loss",
    "outcome_credit",
    "state_credit",
    "step_mean",
    "time_grid",
]
