"""Forks that skip the hooks of imported modules, which programs' own forks then have.

``random``, ``threading``, ``logging`` and others ask to be called after each fork. Between the
guest, which has one thread and draws no numbers, and a program there is nothing to put right, and
every page that a hook changes costs a copy: together they took a third of a short run.

It is the first module of the guest, so that none is imported before it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

_register = os.register_at_fork
_kept: list[dict[str, Callable[[], Any]]] = []


def _keep(**hooks: Callable[[], Any]) -> None:
    _kept.append(hooks)


def keep_hooks() -> None:
    """Take down what modules register from here on."""
    os.register_at_fork = _keep  # type: ignore[assignment]  # called with the same keywords


def give_hooks() -> None:
    """Register them after all, in the program's process."""
    os.register_at_fork = _register
    for hooks in _kept:
        _register(**hooks)
