"""The learner: group-relative advantages, clipped losses, and the loop around them."""

from __future__ import annotations

try:
    import safetensors
    import tokenizers
    import torch
    import transformers
except ModuleNotFoundError as error:
    raise ImportError(
        f"assay.grpo needs {error.name}, which is not installed: pip install 'assay[train]'"
    ) from error

from ..envs import pass_at_k
from ..verifiers.visible import visible
from .arithmetic.advantage import group_advantages, leave_one_out, opo
from .arithmetic.average import average_tokens, count
from .arithmetic.compare import outcome_advantages
from .arithmetic.difficulty import difficulty_weights
from .arithmetic.dpo import dpo_loss
from .arithmetic.entropy import top_entropy_mask
from .arithmetic.gae import gae, value_loss
from .arithmetic.hybrid import hybrid_advantages
from .arithmetic.kl import k3, kl_estimate, penalised_rewards
from .arithmetic.mismatch import mismatch_weights
from .arithmetic.objective import Objective
from .arithmetic.policy_loss import policy_loss
from .arithmetic.process import process_advantages
from .arithmetic.several_rewards import gdpo, mo_grpo
from .arithmetic.sums import merge_sums, policy_sums
from .arithmetic.whiten import reinforce_pp, whiten
from .baselines.critic import Critic
from .baselines.dpo import PreferencePair, dpo, preference_pairs
from .baselines.fit import FitConfig
from .baselines.iterative import Round, iterative_grpo
from .baselines.ppo import PPOConfig, PPOLearner
from .baselines.rejection import accepted_replies, rft
from .baselines.reward_model import Label, TrainableRewardModel, labels_of, replayed, version_of
from .baselines.supervised import sft
from .baselines.warmstart import WarmStart, warm_start
from .config import GRPOConfig
from .distributed.world import ProcessFailed, ProcessLost, World
from .learner import Learner
from .model.batch import Batch, Row, micro_batches, row_of
from .model.forward import choose_forward, full_forward, padded_forward, shared_forward
from .model.loading import ModelError, character_tokenizer, load_model, tiny_model
from .model.logprob import chosen_logprobs
from .model.lora import LoRA, merge_lora
from .model.reference import Reference, make_reference
from .presets import PRESETS, Preset
from .run.checkpoint import (
    CheckpointError,
    DamagedCheckpoint,
    list_checkpoints,
    load_checkpoint,
    save_checkpoint,
)
from .run.evaluate import Rollout, Score, evaluate
from .run.guards import (
    NotFinite,
    NothingToLearn,
    RatioExploded,
    SamplerMismatch,
    TooManyUnscored,
    TrainingAlarm,
)
from .run.interrupt import Terminated
from .run.resume import CheckpointWarning, begun
from .run.stages import Finished, Stage, fingerprints, run_stages
from .run.tasks import SampledTasks, held_out_tasks, training_tasks
from .sampling.decoder import choose_decoder
from .sampling.engine import Engine
from .sampling.policy import ModelPolicy
from .sampling.sample import Sample, sample
from .sampling.stop import StopStrings
from .units.branching import BranchingPolicy, CloningEnv
from .units.critic import CriticCredit, gae_estimate, hybrid_estimate, state_credit
from .units.denoising import (
    ConstantNoise,
    FlowNoise,
    gaussian_kl,
    gaussian_logprob,
    matching_loss,
    step_mean,
    time_grid,
)
from .units.flow import FlowPolicy
from .units.learner import UnitConfig, UnitLearner
from .units.units import Credit, Scorer, UnitPolicy, Units, clamped, outcome_credit
from .vllm import ServerError, VLLMPolicy, VLLMServer
from .watch.history import History, read_history
from .watch.lines import WatchWarning
from .watch.log import MetricsLog, read_metrics
from .watch.plot import plot_learning_curve
from .watch.report import write_report
from .watch.samples import sample_groups
from .watch.trackers import Tracker

__all__ = [
    "PRESETS",
    "Batch",
    "BranchingPolicy",
    "CheckpointError",
    "CheckpointWarning",
    "CloningEnv",
    "ConstantNoise",
    "Credit",
    "Critic",
    "CriticCredit",
    "DamagedCheckpoint",
    "Engine",
    "Finished",
    "FitConfig",
    "FlowNoise",
    "FlowPolicy",
    "GRPOConfig",
    "History",
    "Label",
    "Learner",
    "LoRA",
    "MetricsLog",
    "ModelError",
    "ModelPolicy",
    "NotFinite",
    "NothingToLearn",
    "Objective",
    "PPOConfig",
    "PPOLearner",
    "PreferencePair",
    "Preset",
    "ProcessFailed",
    "ProcessLost",
    "RatioExploded",
    "Reference",
    "Rollout",
    "Round",
    "Row",
    "Sample",
    "SampledTasks",
    "SamplerMismatch",
    "Score",
    "Scorer",
    "ServerError",
    "Stage",
    "StopStrings",
    "Terminated",
    "TooManyUnscored",
    "Tracker",
    "TrainableRewardModel",
    "TrainingAlarm",
    "UnitConfig",
    "UnitLearner",
    "UnitPolicy",
    "Units",
    "VLLMPolicy",
    "VLLMServer",
    "WarmStart",
    "WatchWarning",
    "World",
    "accepted_replies",
    "average_tokens",
    "begun",
    "character_tokenizer",
    "choose_decoder",
    "choose_forward",
    "chosen_logprobs",
    "clamped",
    "count",
    "difficulty_weights",
    "dpo",
    "dpo_loss",
    "evaluate",
    "fingerprints",
    "full_forward",
    "gae",
    "gae_estimate",
    "gaussian_kl",
    "gaussian_logprob",
    "gdpo",
    "group_advantages",
    "held_out_tasks",
    "hybrid_advantages",
    "hybrid_estimate",
    "iterative_grpo",
    "k3",
    "kl_estimate",
    "labels_of",
    "leave_one_out",
    "list_checkpoints",
    "load_checkpoint",
    "load_model",
    "make_reference",
    "matching_loss",
    "merge_lora",
    "merge_sums",
    "micro_batches",
    "mismatch_weights",
    "mo_grpo",
    "opo",
    "outcome_advantages",
    "outcome_credit",
    "padded_forward",
    "pass_at_k",
    "penalised_rewards",
    "plot_learning_curve",
    "policy_loss",
    "policy_sums",
    "preference_pairs",
    "process_advantages",
    "read_history",
    "read_metrics",
    "reinforce_pp",
    "replayed",
    "rft",
    "row_of",
    "run_stages",
    "sample",
    "sample_groups",
    "save_checkpoint",
    "sft",
    "shared_forward",
    "state_credit",
    "step_mean",
    "time_grid",
    "tiny_model",
    "top_entropy_mask",
    "training_tasks",
    "value_loss",
    "version_of",
    "visible",
    "warm_start",
    "whiten",
    "write_report",
]

del safetensors, tokenizers, torch, transformers
