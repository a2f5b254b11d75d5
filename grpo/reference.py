"""The reference model of a KL penalty: the policy with the weights that it had."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from safetensors.torch import load_file, save_file
from torch import Tensor

from .loading import load_weights, save_weights
from .model import is_adapted

_FILE = "reference.safetensors"


class Reference:
    """The weights of the policy as they are now, in its place for the time of reading.

    With adapters it is the model without them, until :meth:`refresh` keeps theirs.
    """

    def __init__(self, model: Any) -> None:
        self._model = model
        self._weights: dict[str, Tensor] = {}  # none: adapters are off
        if not is_adapted(model):
            self.refresh(model)

    @contextmanager
    def reading(self) -> Iterator[Any]:
        """Make the model the reference within the block."""
        if not self._weights:
            with self._model.disable_adapter():
                yield self._model
            return
        trained = _trained(self._model)
        kept = {name: p.data for name, p in trained.items()}
        for name, p in trained.items():
            p.data = self._weights[name]
        try:
            yield self._model
        finally:
            for name, p in trained.items():
                p.data = kept[name]

    def refresh(self, model: Any) -> None:
        """Make it the policy as it is now: TR-DPO's hard update (arXiv 2404.09656, section 3)."""
        self._weights = {name: p.detach().clone() for name, p in _trained(model).items()}

    def save(self, path: str | Path) -> None:
        """Write what :meth:`load` needs after the policy has changed."""
        if is_adapted(self._model):
            Path(path).mkdir(parents=True, exist_ok=True)
            save_file(self._weights, Path(path) / _FILE)
            return
        with self.reading() as model:
            save_weights(model, path)

    def load(self, path: str | Path) -> None:
        """Read what :meth:`save` wrote."""
        if not is_adapted(self._model):
            with self.reading() as model:
                load_weights(model, path)
            return
        found, trained = load_file(Path(path) / _FILE), _trained(self._model)
        if found and found.keys() != trained.keys():
            raise ValueError(f"the reference in {str(path)!r} has adapters of other layers")
        self._weights = {name: found[name].to(trained[name]) for name in found}


def _trained(model: Any) -> dict[str, Any]:
    return {name: p for name, p in model.named_parameters() if p.requires_grad}
