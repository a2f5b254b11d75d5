"""The learner: group-relative advantages, clipped losses, and the loop around them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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
from .advantage import (
    difficulty_weights,
    gdpo,
    group_advantages,
    leave_one_out,
    mo_grpo,
    opo,
    outcome_advantages,
    process_advantages,
    reinforce_pp,
    whiten,
)
from .config import GRPOConfig
from .distributed.world import ProcessFailed, ProcessLost, World
from .learner import Learner
from .loss import (
    average_tokens,
    count,
    k3,
    kl_estimate,
    merge_sums,
    mismatch_weights,
    penalised_rewards,
    policy_loss,
    policy_sums,
    top_entropy_mask,
)
from .model.batch import Batch, Row, micro_batches, row_of
from .model.forward import choose_forward, full_forward, padded_forward, shared_forward
from .model.loading import ModelError, character_tokenizer, load_model, tiny_model
from .model.logprob import chosen_logprobs
from .model.lora import LoRA, merge_lora
from .model.reference import Reference, make_reference
from .objective import Objective
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
from .run.tasks import SampledTasks, held_out_tasks, training_tasks
from .run.time_limit import RolloutTimeout
from .sampling.decoder import choose_decoder
from .sampling.engine import Engine
from .sampling.policy import ModelPolicy
from .sampling.random_numbers import derive_seed
from .sampling.sample import Sample, sample
from .sampling.stop import StopStrings
from .update import accumulate_gradient
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
    "CheckpointError",
    "CheckpointWarning",
    "DamagedCheckpoint",
    "Engine",
    "GRPOConfig",
    "History",
    "Learner",
    "LoRA",
    "MetricsLog",
    "ModelError",
    "ModelPolicy",
    "NotFinite",
    "NothingToLearn",
    "Objective",
    "Preset",
    "ProcessFailed",
    "ProcessLost",
    "RatioExploded",
    "Reference",
    "Rollout",
    "RolloutTimeout",
    "Row",
    "Sample",
    "SampledTasks",
    "SamplerMismatch",
    "Score",
    "ServerError",
    "StopStrings",
    "Terminated",
    "TooManyUnscored",
    "Tracker",
    "TrainingAlarm",
    "VLLMPolicy",
    "VLLMServer",
    "WatchWarning",
    "World",
    "accumulate_gradient",
    "average_tokens",
    "begun",
    "character_tokenizer",
    "choose_decoder",
    "choose_forward",
    "chosen_logprobs",
    "count",
    "derive_seed",
    "difficulty_weights",
    "evaluate",
    "full_forward",
    "gdpo",
    "group_advantages",
    "held_out_tasks",
    "k3",
    "kl_estimate",
    "leave_one_out",
    "list_checkpoints",
    "load_checkpoint",
    "load_model",
    "make_reference",
    "merge_lora",
    "merge_sums",
    "micro_batches",
    "mismatch_weights",
    "mo_grpo",
    "opo",
    "outcome_advantages",
    "padded_forward",
    "pass_at_k",
    "penalised_rewards",
    "plot_learning_curve",
    "policy_loss",
    "policy_sums",
    "process_advantages",
    "read_history",
    "read_metrics",
    "reinforce_pp",
    "row_of",
    "sample",
    "sample_groups",
    "save_checkpoint",
    "shared_forward",
    "tiny_model",
    "top_entropy_mask",
    "training_tasks",
    "visible",
    "whiten",
    "write_report",
]

del safetensors, tokenizers, torch, transformers

if not TYPE_CHECKING:  # or the type checker would take any name for one of these

    def __getattr__(name: str) -> Any:
        """Find a name that has moved, with a warning."""
        from ._moved import find_moved

        return find_moved(name)
