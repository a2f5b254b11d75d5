"""The model that a KL penalty holds the policy to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..model.loading import quiet


class Reference:
    """A frozen copy of a model.

    Args:
        model: what is copied.
        path: where it is kept for when the run is resumed.
        resumed: it is there already.
    """

    def __init__(self, model: Any, path: Path, *, resumed: bool) -> None:
        with quiet():
            if not resumed:
                model.save_pretrained(path)
            copy = type(model).from_pretrained(path, local_files_only=True, dtype=model.dtype)
        self._model = copy.to(model.device).eval().requires_grad_(False)

    @contextmanager
    def reading(self) -> Iterator[Any]:
        """The model to read with."""
        yield self._model

    def refresh(self, model: Any) -> None:
        """Make it the policy as it is now."""
        self._model.load_state_dict(model.state_dict())

    def save(self, path: str | Path) -> None:
        """Write it as ``save_pretrained`` does."""
        with quiet():
            self._model.save_pretrained(path)

    def load(self, path: str | Path) -> None:
        """Read what :meth:`save` wrote."""
        with quiet():
            kept = type(self._model).from_pretrained(
                path, local_files_only=True, dtype=self._model.dtype
            )
        self._model.load_state_dict(kept.state_dict())
