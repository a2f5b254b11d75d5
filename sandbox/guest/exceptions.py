"""Exceptions on their way between two processes, as classes that ``except`` can name.

A class that the program wrote becomes a class of that name here, with the same built-in bases,
and one of the standard library that class itself: so ``assertRaises(json.JSONDecodeError)``
and ``except solution.TooBig`` work.
"""

from __future__ import annotations

import builtins
import sys
from typing import TYPE_CHECKING, Any

from .values import PROGRAMS
from .wire import LIBRARIES, decode, encode

if TYPE_CHECKING:
    from .channel import Peer

_MOST_BASES = 20
_MOST_CAUSES = 5


class RemoteError(Exception):
    """An exception in the other process, of a class that is not a builtin one."""

    _assay_class: Any = None

    def __init__(self, *args: Any, **options: Any) -> None:
        """Make it over there, where its class may have an ``__init__``."""
        if self._assay_class is None:
            super().__init__(*args)
            return
        made = self._assay_class(*args, **options)
        if isinstance(made, BaseException):
            self.args = made.args
            vars(self).update(vars(made))

    def __getattr__(self, name: str) -> Any:
        """Ask for a method or property of the program's exception."""
        remote = vars(self).get("_assay_remote")
        if remote is None or name.startswith("_"):
            raise AttributeError(name)
        return getattr(remote, name)

    def __str__(self) -> str:
        """Return the message that it had over there."""
        return str(vars(self).get("_said", super().__str__()))


class Errors:
    """The exception classes that one end of the socket has described, and knows.

    Args:
        peer: that end. The program's also says more: what is behind an exception of a class with
            methods, and what caused it.
    """

    def __init__(self, peer: Peer) -> None:
        self._peer = peer
        self._described: dict[type, int] = {}
        self._known: dict[int, type[BaseException]] = {}

    def describe_class(self, kind: type) -> Any:
        """Encode an exception class: a builtin one's name, or key, name, module and bases."""
        if getattr(builtins, kind.__name__, None) is kind:
            return kind.__name__
        for key, known in self._known.items():
            if known is kind:  # the other side's own
                return [key]
        key = self._described.setdefault(kind, len(self._described))
        bases = [
            self.describe_class(base) for base in kind.__bases__ if issubclass(base, BaseException)
        ]
        more = [self._peer.number(kind)] if self._has_methods(kind) else []
        return [key, kind.__name__, kind.__module__, bases, *more]

    def _has_methods(self, kind: type) -> bool:
        return self._peer.trusting and any(
            callable(member) or not name.startswith("__")
            for base in kind.__mro__
            if base.__module__ in PROGRAMS
            for name, member in vars(base).items()
        )

    def describe(self, error: BaseException, causes: int = 0) -> list[Any]:
        """Encode an exception: class, text, and plain arguments and attributes."""
        try:
            said = str(error)[:1000]
        except Exception as fault:
            said = f"<{type(fault).__name__} in __str__>"
        try:
            args = encode([*error.args, *_paths(error)])
        except Exception:  # not plain, too deep, or the program's own class gets in the way
            args = [said]
        attributes = {}
        for name, value in list(vars(error).items()):
            try:
                attributes[name] = encode(value)
            except Exception:  # noqa: S112 - what cannot travel stays
                continue
        handle = self._peer.number(error) if self._has_methods(type(error)) else None
        cause = None
        if error.__cause__ is not None and self._peer.trusting and causes < _MOST_CAUSES:
            cause = self.describe(error.__cause__, causes + 1)
        return [self.describe_class(type(error)), said, args, attributes, handle, cause]

    def build_class(self, data: Any, depth: int = 0) -> type[BaseException]:
        """Return the class here for one that was described there.

        Raises:
            ValueError, TypeError, LookupError: that is no description.
        """
        if type(data) is str:
            kind = getattr(builtins, data, None)
            if isinstance(kind, type) and issubclass(kind, Exception | SystemExit):
                return kind
            return RemoteError
        if len(data) == 1:
            own = list(self._described)[data[0]]
            skips = any(base.__module__.startswith("unittest") for base in own.__mro__)
            return own if issubclass(own, Exception) and not skips else RemoteError
        key, name, module, bases, *handle = data
        if type(key) is not int or type(name) is not str or depth > _MOST_BASES:
            raise ValueError("not an exception's class")
        if key not in self._known:
            made = [self.build_class(base, depth + 1) for base in bases[:_MOST_BASES]]
            self._known[key] = kind = _standard(module, name) or _new(name, made)
            if handle and kind is not RemoteError and issubclass(kind, RemoteError):
                kind._assay_class = self._peer.remote(handle[0])
        return self._known[key]

    def build(self, data: Any) -> BaseException:
        """Return the exception to raise here for one that was raised there.

        Raises:
            ValueError, TypeError, LookupError: that is no description.
        """
        kind, said, args, attributes, handle, cause = data
        kind, said = self.build_class(kind), str(said)
        error = _instance(kind, decode(args), said)
        for name, value in attributes.items():
            if not name.startswith("_") or name == "__notes__":
                vars(error)[name] = decode(value)
        vars(error)["_said"] = said
        if handle is not None and isinstance(error, RemoteError):
            vars(error)["_assay_remote"] = self._peer.remote(handle)
        if cause is not None:
            error.__cause__ = self.build(cause)
        return error


def _paths(error: BaseException) -> list[Any]:
    """Return the arguments of an OSError that are not in its ``args``."""
    if not isinstance(error, OSError) or error.filename is None or len(error.args) != 2:
        return []
    return [error.filename, *([] if error.filename2 is None else [None, error.filename2])]


def _standard(module: Any, name: str) -> type[Exception] | None:
    """Return a class of a standard module that is loaded here, or of NumPy or pandas.

    Not unittest's: its SkipTest would let a program skip its own tests.
    """
    first = module.partition(".")[0] if type(module) is str else ""
    known = first in sys.stdlib_module_names or first in LIBRARIES
    if not known or first in ("unittest", "builtins"):
        return None
    found = getattr(sys.modules.get(module), name, None)
    if isinstance(found, type) and issubclass(found, Exception) and found.__module__ == module:
        return found
    return None


def _new(name: str, bases: list[type[BaseException]]) -> type[BaseException]:
    if not any(issubclass(base, RemoteError) for base in bases):
        bases = [RemoteError, *(base for base in bases if base is not Exception)]
    try:
        return type(name, tuple(bases), {})
    except (TypeError, ValueError):  # bases that do not go together
        return RemoteError


def _instance(kind: type[BaseException], args: list[Any], said: str) -> BaseException:
    error: BaseException
    if getattr(builtins, kind.__name__, None) is kind:
        try:
            error = kind(*args)
            return error
        except Exception:  # UnicodeDecodeError and its like want other arguments
            args = [said]
    try:
        # Without its __init__, which may want what did not travel.
        error = kind.__new__(kind, *args)
    except Exception:  # an ExceptionGroup, say
        error = RemoteError(said)
    return error
