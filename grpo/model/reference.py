"""The reference model of a KL penalty: what the policy was, without a second model if possible.

- A model with adapters is its own reference while they are off. Refreshed, it keeps a copy of
  the adapters alone and changes them for the moment of reading.
- Any other is copied.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from .loading import load_weights, save_weights
from .precision import copy_model
from .wrapped import is_adapted


class Reference(ABC):
    """What the policy is held to; made by :func:`make_reference`."""

    @abstractmethod
    @contextmanager
    def reading(self) -> Iterator[Any]:
        """The model to read with; only within the context is it the reference."""

    @abstractmethod
    def refresh(self, model: Any, *, mix: float = 1.0) -> None:
        """Move it to the policy as it is now.

        Args:
            model: the policy.
            mix: how far, in (0, 1]: 1 for all the way, as in TR-DPO's hard update (arXiv
                2404.09656, section 3); below, its soft update, mix x policy + (1 - mix) x
                reference.
        """

    @abstractmethod
    def save(self, path: str | Path) -> None:
        """Write what is needed to have it again after the policy has changed."""

    @abstractmethod
    def load(self, path: str | Path) -> None:
        """Read what :meth:`save` wrote."""


def make_reference(model: Any) -> Reference:
    """The policy as it is now; with adapters, the model without them.

    Args:
        model: a causal LM, with or without adapters. It need not come from a directory.
    """
    return _AdaptersOff(model) if is_adapted(model) else _Copy(model)


class _Copy(Reference):
    """A frozen copy."""

    def __init__(self, model: Any) -> None:
        self._model = copy_model(model).eval().requires_grad_(False)

    @contextmanager
    def reading(self) -> Iterator[Any]:
        yield self._model

    @torch.no_grad()
    def refresh(self, model: Any, *, mix: float = 1.0) -> None:
        _check(mix)
        for mine, theirs in zip(self._model.parameters(), model.parameters(), strict=True):
            mine.lerp_(theirs.to(mine), mix)

    def save(self, path: str | Path) -> None:
        save_weights(self._model, path)

    def load(self, path: str | Path) -> None:
        load_weights(self._model, path)


class _AdaptersOff(Reference):
    """The policy's own weights, with no adapters or with earlier ones."""

    FILE = "reference.safetensors"

    def __init__(self, model: Any) -> None:
        self._model = model
        self._adapters: dict[str, Tensor] = {}  # empty: they are off

    @contextmanager
    def reading(self) -> Iterator[Any]:
        if not self._adapters:
            with self._model.disable_adapter():
                yield self._model
            return
        trained = self._trained()
        kept = {name: p.data for name, p in trained.items()}
        for name, p in trained.items():
            p.data = self._adapters[name]
        try:
            yield self._model
        finally:
            for name, p in trained.items():
                p.data = kept[name]

    @torch.no_grad()
    def refresh(self, model: Any, *, mix: float = 1.0) -> None:
        _check(mix)
        if mix < 1.0:  # B A of a mixture is not the mixture of the products
            raise ValueError(f"mix must be 1 for a model with adapters, got {mix}")
        self._adapters = {
            name: p.detach().clone() for name, p in model.named_parameters() if p.requires_grad
        }

    def save(self, path: str | Path) -> None:
        Path(path).mkdir(parents=True, exist_ok=True)
        save_file(self._adapters, Path(path) / self.FILE)

    def load(self, path: str | Path) -> None:
        found = load_file(Path(path) / self.FILE)
        trained = self._trained()
        if found and found.keys() != trained.keys():
            raise ValueError(f"the reference in {str(path)!r} has adapters of other layers")
        self._adapters = {name: found[name].to(trained[name]) for name in found}

    def _trained(self) -> dict[str, Any]:
        return {name: p for name, p in self._model.named_parameters() if p.requires_grad}


def _check(mix: float) -> None:
    if not 0 < mix <= 1:
        raise ValueError(f"mix must be in (0, 1], got {mix}")
