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

from .arithmetic.advantage import group_advantages, leave_one_out, opo
from .arithmetic.average import average_tokens, count
from .arithmetic.compare import outcome_advantages
from .arithmetic.entropy import top_entropy_mask
from .arithmetic.gae import gae, value_loss
from .arithmetic.kl import k3, kl_estimate, penalised_rewards
from .arithmetic.mismatch import mismatch_weights
from .arithmetic.objective import Objective
from .arithmetic.policy_loss import policy_loss
from .arithmetic.process import process_advantages
from .arithmetic.several_rewards import gdpo, mo_grpo
from .arithmetic.sums import merge_sums, policy_sums
from .arithmetic.whiten import reinforce_pp, whiten
from .baselines.warmstart import WarmStart, warm_start
from .config import GRPOConfig
from .distributed.world import ProcessFailed, ProcessLost, World
from .learner import Learner
from .model.batch import Batch, Row, micro_batches, row_of
from .model.forward import choose_forward, full_forward, padded_forward, shared_forward
from .model.loading import ModelError, character_tokenizer, load_model, tiny_model
from .model.logprob import chosen_logprobs
from .run.checkpoint import (
    CheckpointError,
    DamagedCheckpoint,
    list_checkpoints,
    load_checkpoint,
    save_checkpoint,
)
from .run.evaluate import Rollout, Score, evaluate, pass_at_k
from .run.guards import (
    NotFinite,
    NothingToLearn,
    RatioExploded,
    SamplerMismatch,
    TooManyUnscored,
    TrainingAlarm,
)
from .run.interrupt import Terminated
from .run.resume import CheckpointWarning
from .run.tasks import SampledTasks, held_out_tasks, training_tasks
from .sampling.policy import ModelPolicy
from .sampling.sample import Sample, sample
from .watch.log import MetricsLog, read_metrics
from .watch.plot import plot_learning_curve

__all__ = [
    "Batch",
    "CheckpointError",
    "CheckpointWarning",
    "DamagedCheckpoint",
    "GRPOConfig",
    "Learner",
    "MetricsLog",
    "ModelError",
    "ModelPolicy",
    "NotFinite",
    "NothingToLearn",
    "Objective",
    "ProcessFailed",
    "ProcessLost",
    "RatioExploded",
    "Rollout",
    "Row",
    "Sample",
    "SampledTasks",
    "SamplerMismatch",
    "Score",
    "Terminated",
    "TooManyUnscored",
    "TrainingAlarm",
    "WarmStart",
    "World",
    "average_tokens",
    "character_tokenizer",
    "choose_forward",
    "chosen_logprobs",
    "count",
    "evaluate",
    "full_forward",
    "gae",
    "gdpo",
    "group_advantages",
    "held_out_tasks",
    "k3",
    "kl_estimate",
    "leave_one_out",
    "list_checkpoints",
    "load_checkpoint",
    "load_model",
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
    "read_metrics",
    "reinforce_pp",
    "row_of",
    "sample",
    "save_checkpoint",
    "shared_forward",
    "tiny_model",
    "top_entropy_mask",
    "training_tasks",
    "value_loss",
    "warm_start",
    "whiten",
]

del safetensors, tokenizers, torch, transformers
