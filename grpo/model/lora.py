"""LoRA: train small adapters beside frozen weights (arXiv 2106.09685), through peft."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from .precision import copy_model
from .wrapped import is_adapted

ADAPTER_CONFIG = "adapter_config.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class LoRA:
    """Which adapters a model gets: W x + (alpha / rank) B A x, with A and B trained.

    There is no dropout: it would make the policy that is trained another than the one that
    sampled.

    Attributes:
        rank: rows of A and columns of B.
        alpha: the product is scaled by ``alpha / rank``.
        targets: names of the linear layers, or peft's ``all-linear``: all but the head.
        seed: of A, which begins with random numbers.

    Raises:
        ValueError: a setting is out of its range.
    """

    rank: int = 16
    alpha: float = 32.0
    targets: str | tuple[str, ...] = "all-linear"
    seed: int = 0

    def __post_init__(self) -> None:
        if self.rank < 1:
            raise ValueError(f"rank must be at least 1, got {self.rank}: 16 is a good start")
        if self.alpha <= 0:
            raise ValueError(f"alpha must be above 0, got {self.alpha}: twice the rank is usual")
        if not self.targets:
            raise ValueError("targets must name at least one linear layer, or be 'all-linear'")


def add_lora(model: Any, lora: LoRA) -> Any:
    """The model with new adapters, which change nothing yet, as B is 0. Only they are trained.

    Raises:
        ImportError: peft is not installed.
        ValueError: no layer has a name that is asked for.
    """
    targets = lora.targets if isinstance(lora.targets, str) else list(lora.targets)
    with _peft() as peft, torch.random.fork_rng():
        torch.manual_seed(lora.seed)
        settings = peft.LoraConfig(
            r=lora.rank,
            lora_alpha=lora.alpha,
            lora_dropout=0.0,
            target_modules=targets,
            task_type="CAUSAL_LM",
        )
        return peft.get_peft_model(model, settings).eval()


def load_adapters(base: Any, path: Path) -> Any:
    """The model with the adapters of a directory, to be trained on.

    Raises:
        ImportError: peft is not installed.
    """
    with _peft() as peft:
        return peft.PeftModel.from_pretrained(base, str(path), is_trainable=True).eval()


def merge_lora(model: Any) -> Any:
    """A plain causal LM that computes the same: a copy with the adapters added to its weights.

    The model itself stays as it is. To export: ``merge_lora(model).save_pretrained(directory)``.

    Raises:
        ValueError: the model has no adapters.
    """
    if not is_adapted(model):
        raise ValueError(
            f"{type(model).__name__} has no adapters to merge: save it as it is, with "
            "model.save_pretrained(directory)"
        )
    merged = copy_model(model).merge_and_unload()
    return merged.requires_grad_(True).eval()


def save_adapters(model: Any, path: Path) -> None:
    """Write ``adapter_model.safetensors`` and ``adapter_config.json``, which names the base."""
    model.save_pretrained(str(path))


def restore_adapters(model: Any, path: Path) -> None:
    """Put saved adapters in place of the model's.

    Raises:
        ValueError: they are not of the same layers and ranks.
    """
    from safetensors.torch import load_file

    found = load_file(path / "adapter_model.safetensors")
    with _peft() as peft:
        mine = peft.get_peft_model_state_dict(model)
    if {k: v.shape for k, v in found.items()} != {k: v.shape for k, v in mine.items()}:
        raise ValueError(
            f"the adapters in {str(path)!r} are of other layers or ranks than the model's: give "
            "the same LoRA settings as they were made with"
        )
    with _peft() as peft:
        peft.set_peft_model_state_dict(model, found)


@contextmanager
def _peft() -> Iterator[Any]:
    """The package, without its warnings, which are of what it uses of transformers' itself."""
    try:
        import peft
    except ModuleNotFoundError as error:
        raise ImportError(
            f"adapters need {error.name}, which is not installed: pip install 'assay[lora]'"
        ) from error
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        yield peft
