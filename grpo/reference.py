"""The reference model of a KL penalty: what the policy was, without a second model if possible."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from .loading import load_weights, save_weights
from .model import is_adapted

_FILE = "reference.safetensors"


class Reference:
    """The policy as it is now: a frozen copy, or with adapters the same model without them.

    After :meth:`refresh` a model with adapters keeps a copy of the adapters alone, and exchanges
    them for the time of reading.
    """

    def __init__(self, model: Any) -> None:
        self._adapted = is_adapted(model)
        self._adapters: dict[str, Tensor] = {}  # empty: they are off
        self._model = model
        if not self._adapted:
            self._model = copy.deepcopy(model).eval().requires_grad_(False)

    @contextmanager
    def reading(self) -> Iterator[Any]:
        """Yield the model to read with; it is the reference only within the block."""
        if self._adapted and not self._adapters:
            with self._model.disable_adapter():
                yield self._model
            return
        trained = _trained(self._model)  # of a copy, nothing
        kept = {name: p.data for name, p in trained.items()}
        for name, p in trained.items():
            p.data = self._adapters[name]
        try:
            yield self._model
        finally:
            for name, p in trained.items():
                p.data = kept[name]

    @torch.no_grad()
    def refresh(self, model: Any) -> None:
        """Make it the policy as it is now: TR-DPO's hard update (arXiv 2404.09656, section 3)."""
        if self._adapted:
            self._adapters = {name: p.detach().clone() for name, p in _trained(model).items()}
            return
        for mine, theirs in zip(self._model.parameters(), model.parameters(), strict=True):
            mine.copy_(theirs)

    def save(self, path: str | Path) -> None:
        """Write what :meth:`load` needs after the policy has changed."""
        if not self._adapted:
            save_weights(self._model, path)
            return
        Path(path).mkdir(parents=True, exist_ok=True)
        save_file(self._adapters, Path(path) / _FILE)

    def load(self, path: str | Path) -> None:
        """Read what :meth:`save` wrote."""
        if not self._adapted:
            load_weights(self._model, path)
            return
        found, trained = load_file(Path(path) / _FILE), _trained(self._model)
        if found and found.keys() != trained.keys():
            raise ValueError(f"the reference in {str(path)!r} has adapters of other layers")
        self._adapters = {name: found[name].to(trained[name]) for name in found}


def _trained(model: Any) -> dict[str, Any]:
    return {name: p for name, p in model.named_parameters() if p.requires_grad}
