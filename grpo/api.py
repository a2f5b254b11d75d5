"""All public names of ``assay.grpo``; importing this imports torch."""

from __future__ import annotations

from ..sandbox.extras import missing_package

try:
    import safetensors
    import tokenizers
    import torch
    import transformers
except ModuleNotFoundError as error:
    raise missing_package("assay.grpo", "train", error) from error

from .batch import Batch, Row
from .checkpoint import CheckpointError, list_checkpoints
from .config import GRPOConfig, Objective
from .distributed import ProcessFailed, ProcessLost, World
from .draw import derive_seed
from .guards import NotFinite, NothingToLearn, RatioExploded, SamplerMismatch, TooManyUnscored
from .interrupt import RolloutTimeout, Terminated
from .learner import Learner
from .loading import LoRA, ModelError, load_model, merge_lora, tiny_model
from .log import Tracker
from .logprobs import choose_forward, chosen_logprobs
from .loss import policy_loss
from .presets import PRESETS
from .records import read_metrics
from .run_directory import begun
from .sampler import Engine, ModelPolicy, sample
from .tasks import evaluate, held_out_tasks, training_tasks
from .update import accumulate_gradient
from .vllm import VLLMPolicy
from .vllm_server import ServerError, VLLMServer

__all__ = [
    "PRESETS",
    "Batch",
    "CheckpointError",
    "Engine",
    "GRPOConfig",
    "Learner",
    "LoRA",
    "ModelError",
    "ModelPolicy",
    "NotFinite",
    "NothingToLearn",
    "Objective",
    "ProcessFailed",
    "ProcessLost",
    "RatioExploded",
    "RolloutTimeout",
    "Row",
    "SamplerMismatch",
    "ServerError",
    "Terminated",
    "TooManyUnscored",
    "Tracker",
    "VLLMPolicy",
    "VLLMServer",
    "World",
    "accumulate_gradient",
    "begun",
    "choose_forward",
    "chosen_logprobs",
    "derive_seed",
    "evaluate",
    "held_out_tasks",
    "list_checkpoints",
    "load_model",
    "merge_lora",
    "policy_loss",
    "read_metrics",
    "sample",
    "tiny_model",
    "training_tasks",
]

del safetensors, tokenizers, torch, transformers
