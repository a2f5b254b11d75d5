"""Modules of version 0.1 under their former names, for one version, with a DeprecationWarning."""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

_ROOT = __name__.rpartition(".")[0]
MOVED = {
    f"{_ROOT}.{old}": f"{_ROOT}.{new}"
    for old, new in {
        "bad_rows": "datasets.bad_rows",
        "code_repair": "tools.code_repair",
        "data": "datasets.reading",
        "data_error": "datasets.errors",
        "difficulty": "curriculum.difficulty",
        "group_vector": "vector",
        "library": "datasets.library",
        "mixed": "datasets.mixed",
        "pass_rates": "curriculum.pass_rates",
        "source": "datasets.source",
        "split_files": "datasets.split_files",
        "splits": "datasets.splits",
        "table": "datasets.table",
        "trl_reward": "trl.reward",
    }.items()
}


class _Finder(MetaPathFinder, Loader):
    """Find a module under its former name."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return ModuleSpec(fullname, self) if _present(fullname) else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        present = _present(spec.name)
        warnings.warn(f"{spec.name} has moved: import {present}", DeprecationWarning, stacklevel=2)
        module = importlib.import_module(present)
        spec.loader_state = module.__spec__  # the import system is about to replace it
        return module

    def exec_module(self, module: ModuleType) -> None:
        assert module.__spec__ is not None  # noqa: S101  # set by the import system
        module.__spec__ = module.__spec__.loader_state


def _present(name: str) -> str:
    """Return the present name of a module that has moved, or the empty text."""
    if not name.startswith(_ROOT):
        return ""
    for old, new in MOVED.items():
        if name == old or name.startswith(f"{old}."):
            return new + name[len(old) :]
    return ""


def find_moved_modules() -> None:
    """Make former names importable."""
    sys.meta_path.insert(0, _Finder())
