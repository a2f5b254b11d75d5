"""A bounded memory of what was found before."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Memo(Generic[K, V]):
    """The last ``size`` findings by key; threads may share it.

    Raises:
        ValueError: the size is less than 1.
    """

    def __init__(self, size: int) -> None:
        if size < 1:
            raise ValueError(f"size must be at least 1, got {size!r}")
        self.size = size
        self._lock = threading.Lock()
        self._found: OrderedDict[K, V] = OrderedDict()

    def get(self, key: K) -> V | None:
        """Return the value of a key, or ``None``."""
        with self._lock:
            if key not in self._found:
                return None
            self._found.move_to_end(key)
            return self._found[key]

    def put(self, key: K, value: V) -> V:
        """Cache a value; the least recently used is dropped if there are too many."""
        with self._lock:
            self._found[key] = value
            self._found.move_to_end(key)
            if len(self._found) > self.size:
                self._found.popitem(last=False)
        return value

    def __getstate__(self) -> int:
        return self.size

    def __setstate__(self, size: int) -> None:
        self.__init__(size)  # type: ignore[misc]  # a copy in another process starts empty
