"""Lists, dicts and sets of the program that the tests change: it sees that, as in one process."""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

_KINDS = ("list", "dict", "set", "bytearray", "deque", "defaultdict", "OrderedDict", "Counter")
_MOST_BYTES = 1 << 12
"""Of a reply: what is longer is not compared, since that is done before each request."""

_MOST = 8
"""The last ones that are compared, and kept by the program."""


class Copies:
    """Mutable values that went over the socket, by the number of the reply that held them.

    Attributes:
        received: replies that came.
    """

    def __init__(self) -> None:
        self.received = 0
        self._sent = 0
        self._originals: deque[tuple[int, Any]] = deque(maxlen=_MOST)
        self._copies: deque[tuple[int, Any, Any]] = deque(maxlen=_MOST)

    def keep(self, value: Any, size: int) -> None:
        """Remember what a reply was made of."""
        self._sent += 1
        if _is_mutable(value) and size <= _MOST_BYTES:
            self._originals.append((self._sent, value))

    def add(self, value: Any, size: int, encode: Callable[[Any], Any]) -> None:
        """Watch the value of the last reply. With threads it may be that of another."""
        if _is_mutable(value) and size <= _MOST_BYTES and threading.active_count() == 1:
            with contextlib.suppress(Exception):  # it holds itself, say
                self._copies.append((self.received, value, encode(value)))

    def changed(self, encode: Callable[[Any], Any]) -> Iterator[tuple[int, Any]]:
        """Return those that changed since, encoded, by their numbers."""
        for place, (number, value, before) in enumerate(list(self._copies)):
            try:
                now = encode(value)
            except Exception:  # the tests put in what cannot travel
                now = before
            if now != before:
                self._copies[place] = number, value, now
                yield number, now

    def update(self, number: int, new: Any) -> None:
        """Change the original as its copy was."""
        for known, original in self._originals:
            if known == number:
                update(original, new)


def _is_mutable(value: Any) -> bool:
    return type(value).__name__ in _KINDS


def update(old: Any, new: Any) -> None:
    """Give a list, dict or set the content of another; inner ones keep their identity."""
    if old is new or type(old) is not type(new):
        return
    if type(old) is list:
        old[:] = [*map(_updated, old, new), *new[len(old) :]]
    elif isinstance(old, dict):
        items = [(key, _updated(old.get(key), value)) for key, value in new.items()]
        old.clear()
        old.update(items)
    elif type(old) is set:
        old.clear()
        old.update(new)
    elif type(old) in (bytearray, deque):
        old.clear()
        old.extend(new)
    elif type(old).__name__ == "ndarray" and (old.dtype, old.shape) == (new.dtype, new.shape):
        old[...] = new
    elif type(old).__name__ in ("DataFrame", "Series"):
        old._update_inplace(new)
    elif hasattr(old, "__dict__"):  # of a class that both sides have
        vars(old).clear()
        vars(old).update(vars(new))


def _updated(old: Any, new: Any) -> Any:
    """Return the value to replace another: itself, changed, if it can hold the new."""
    if isinstance(old, list | dict | set) and type(old) is type(new):
        update(old, new)
        return old
    return new
