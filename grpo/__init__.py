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

from .arithmetic.advantage import group_advantages
from .arithmetic.loss import average_tokens, clipped_surrogate, grpo_loss, k3
from .baselines.warmstart import WarmStart, warm_start
from .config import GRPOConfig
from .learner import Learner, NotFinite, TooManyUnscored, TrainingAlarm
from .model.batch import Batch, Row, micro_batches, row_of
from .model.forward import choose_forward, full_forward, padded_forward, shared_forward
from .model.loading import ModelError, character_tokenizer, load_model, tiny_model
from .model.logprob import chosen_logprobs
from .model.lora import LoRA, merge_lora
from .model.reference import Reference, make_reference
from .run.checkpoint import CheckpointError, list_checkpoints, load_checkpoint, save_checkpoint
from .run.evaluate import Rollout, Score, evaluate
from .run.tasks import SampledTasks, held_out_tasks, training_tasks
from .sampling.policy import ModelPolicy
from .sampling.sample import Sample, sample
from .watch.log import MetricsLog, read_metrics
from .watch.plot import plot_learning_curve

__all__ = [
    "Batch",
    "CheckpointError",
    "GRPOConfig",
    "Learner",
    "LoRA",
    "MetricsLog",
    "ModelError",
    "ModelPolicy",
    "NotFinite",
    "Reference",
    "Rollout",
    "Row",
    "Sample",
    "SampledTasks",
    "Score",
    "TooManyUnscored",
    "TrainingAlarm",
    "WarmStart",
    "average_tokens",
    "character_tokenizer",
    "choose_forward",
    "chosen_logprobs",
    "clipped_surrogate",
    "evaluate",
    "full_forward",
    "group_advantages",
    "grpo_loss",
    "held_out_tasks",
    "k3",
    "list_checkpoints",
    "load_checkpoint",
    "load_model",
    "make_reference",
    "merge_lora",
    "micro_batches",
    "padded_forward",
    "plot_learning_curve",
    "read_metrics",
    "row_of",
    "sample",
    "save_checkpoint",
    "shared_forward",
    "tiny_model",
    "training_tasks",
    "warm_start",
]

del safetensors, tokenizers, torch, transformers
