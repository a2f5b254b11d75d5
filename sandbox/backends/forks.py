"""Objects that a forked child must renew, since their threads and locks are the parent's."""

from __future__ import annotations

import os
import weakref

_methods: weakref.WeakKeyDictionary[object, str] = weakref.WeakKeyDictionary()


def call_after_fork(holder: object, method: str) -> None:
    """Call this method of an object in every child that is forked while it lives."""
    _methods[holder] = method


def _after_fork() -> None:
    for holder, method in list(_methods.items()):
        getattr(holder, method)()


os.register_at_fork(after_in_child=_after_fork)
