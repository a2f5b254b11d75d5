"""Objects of the other process, as this process sees them.

The rule for operators: the candidate's code decides an operation between two of its own objects,
and never a comparison with a value of the tests. If one operand is a value of the tests, the
operation is done here, on the plain content of the object (the list in a list's subclass). An
object without plain content equals no value of the tests and is not ordered against one. Arithmetic
with a value of the tests is the candidate's only on an object that the tests made by calling a
class by its name (with a number also on what a method of such an object or class returned), and
only if it gives an object again: ``f(x) - 3`` must not be what ``f`` says. That object has no plain
content and no truth value, since the candidate has seen the value.
"""

from __future__ import annotations

import contextlib
import operator
import types
from collections.abc import Callable, Generator, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import asyncio

    from .channel import Peer

UNKNOWN, DERIVED, FOUND, MADE = range(4)
"""Where an object of the candidate comes from: anywhere; an operation with a value of the tests,
so that it may hold what the tests expect; an attribute of a class or of a made object, or the
result of a method; the tests called a class by its name."""

_ARITHMETIC = (
    *("add", "sub", "mul", "matmul", "truediv", "floordiv", "mod", "pow"),
    *("lshift", "rshift", "xor"),
)
COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    name: getattr(operator, name) for name in ("eq", "ne", "lt", "le", "gt", "ge")
}
ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "divmod": divmod,
    "and": operator.and_,
    "or": operator.or_,
    **{name: getattr(operator, name) for name in _ARITHMETIC},
}
IN_PLACE = {f"i{name}": getattr(operator, f"i{name}") for name in ARITHMETIC if name != "divmod"}
CONVERSIONS: dict[str, Callable[..., Any]] = {
    "abs": abs,
    "neg": operator.neg,
    "pos": operator.pos,
    "invert": operator.invert,
    "round": round,
    "int": int,
    "float": float,
    "complex": complex,
    "index": operator.index,
}
_NUMBERS = (int, float, complex)
_EXACT = {"int": int, "index": int, "float": float, "complex": complex}

_NEVER = ("__array", "__cuda_array", "__dlpack", "__mro_entries__")
"""NumPy and its like ask for an address by these names, and would read this process's memory
there; a class statement asks for the bases to use instead."""


class Remote:
    """An object of the other process."""

    __slots__ = ("__handle", "__origin", "__peer")

    def __init__(self, peer: Peer, handle: int, origin: int = UNKNOWN) -> None:
        object.__setattr__(self, "_Remote__peer", peer)
        object.__setattr__(self, "_Remote__handle", handle)
        object.__setattr__(self, "_Remote__origin", origin)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call it over there."""
        return self.__peer.call(self, args, kwargs)

    def __getattr__(self, name: str) -> Any:
        if name.startswith(_NEVER):
            raise AttributeError(name)
        return self.__peer.ask("get", self, name, origin=min(self.__peer.origin(self), FOUND))

    def __setattr__(self, name: str, value: Any) -> None:
        # A function there too: a class makes a method of it.
        function = isinstance(value, types.FunctionType) and not self.__peer.trusting
        self.__peer.ask("define" if function else "set", self, name, value)

    def __delattr__(self, name: str) -> None:
        self.__peer.ask("unset", self, name)

    def __getitem__(self, key: Any) -> Any:
        return self.__peer.ask("item", self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        self.__peer.ask("put", self, key, value)

    def __delitem__(self, key: Any) -> None:
        self.__peer.ask("remove", self, key)

    def __contains__(self, item: Any) -> bool:
        peer = self.__peer
        if peer.trusting or self.__origin == MADE or isinstance(item, Remote):
            return bool(peer.ask("contains", self, item))
        content = peer.content(self)
        return item in (iter(self) if content is NotImplemented else content)

    def __len__(self) -> int:
        return int(self.__peer.ask("len", self))

    def __bool__(self) -> bool:
        if self.__origin == DERIVED:
            raise TypeError("the truth of an object that an operation with a value gave")
        return bool(self.__peer.ask("bool", self))

    def __iter__(self) -> Iterator[Any]:
        return _iterate(self.__peer.ask("iter", self))

    def __reversed__(self) -> Iterator[Any]:
        return _iterate(self.__peer.ask("reversed", self))

    def __next__(self) -> Any:
        return self.__peer.ask("next", self)

    def __hash__(self) -> int:
        return int(self.__peer.ask("hash", self))

    def __str__(self) -> str:
        return str(self.__peer.ask("str", self))

    def __repr__(self) -> str:
        return str(self.__peer.ask("repr", self))

    def __format__(self, form: str) -> str:
        return str(self.__peer.ask("format", self, form))

    @property
    def __doc__(self) -> Any:  # type: ignore[override]  # the object's, not this class's
        return self.__getattr__("__doc__")

    def __dir__(self) -> Any:
        return self.__peer.ask("dir", self)

    def __copy__(self) -> Any:
        return self.__peer.ask("copy", self)

    def __deepcopy__(self, memo: object) -> Any:
        return self.__peer.ask("deepcopy", self)

    def __enter__(self) -> Any:
        return self.__getattr__("__enter__")()

    def __exit__(self, *details: Any) -> bool:
        leave = self.__getattr__("__exit__")
        return self.__leaves(details, bool(leave(*details[:2], None)))

    async def __aenter__(self) -> Any:
        return await self.__getattr__("__aenter__")()

    async def __aexit__(self, *details: Any) -> bool:
        leave = self.__getattr__("__aexit__")
        return self.__leaves(details, bool(await leave(*details[:2], None)))

    def __leaves(self, details: Any, swallows: bool) -> bool:
        """Let a candidate hide only what the tests raise for it to hide, no failure of theirs."""
        return swallows and (self.__peer.trusting or self.__peer.may_swallow(details[2]))

    def __await__(self) -> Generator[None, None, Any]:
        return _follow(self.__peer, "step", self.__peer.ask("start", self))

    def __aiter__(self) -> Any:
        return self.__peer.ask("aiter", self)

    async def __anext__(self) -> Any:
        return await _Following(self.__peer, self.__peer.ask("anext", self))

    def __instancecheck__(self, value: object) -> bool:
        if not isinstance(value, Remote) and getattr(value, "_assay_remote", None) is None:
            return False
        return bool(self.__peer.ask("isinstance", self, value))

    def __subclasscheck__(self, value: object) -> bool:
        return isinstance(value, Remote) and bool(self.__peer.ask("issubclass", self, value))

    def _assay_combine(self, name: str, other: Any) -> Any:
        """Do an operation of two operands, by the rule above."""
        peer, origin = self.__peer, self.__origin
        if isinstance(other, Remote):
            return peer.ask(name, self, other, origin=min(origin, other.__origin))
        if peer.trusting:
            return peer.ask(name, self, other)
        content = peer.content(self)
        if content is not NotImplemented:
            return OPERATORS[name](content, other)
        if name in COMPARISONS or origin == UNKNOWN:
            return NotImplemented
        if origin != MADE and type(other) not in _NUMBERS:
            return NotImplemented
        result = peer.ask(name, self, other, origin=DERIVED)
        return result if isinstance(result, Remote) else NotImplemented

    def _assay_convert(self, name: str, *options: Any) -> Any:
        """Make a number of it, or another object."""
        peer, origin = self.__peer, self.__origin
        if not peer.trusting and origin != MADE:
            content = peer.content(self)
            if content is NotImplemented:
                raise TypeError(f"{name}() of an object that the program made")
            return CONVERSIONS[name](content, *options)
        result = peer.ask(name, self, *options, origin=origin)
        if name in _EXACT and type(result) is not _EXACT[name]:
            raise TypeError(f"{name}() must be {_EXACT[name].__name__}")
        return result


class RemoteFunction(Remote):
    """A function of the other process: no collection, which pandas and isinstance look for."""

    __slots__ = ()
    __iter__ = __len__ = __getitem__ = __contains__ = __reversed__ = None  # type: ignore[assignment]


# The docstring that is asked for is the function's.
RemoteFunction.__doc__ = vars(Remote)["__doc__"]  # type: ignore[method-assign]


def parts(remote: Remote) -> tuple[Peer, int, int]:
    """Return its peer, its handle and its origin."""
    return remote._Remote__peer, remote._Remote__handle, remote._Remote__origin


def set_origin(remote: Remote, origin: int) -> None:
    """Say where it comes from."""
    object.__setattr__(remote, "_Remote__origin", origin)


def _reflected(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda target, other: function(other, target)


OPERATORS = {
    **COMPARISONS,
    **ARITHMETIC,
    **{f"r{name}": _reflected(function) for name, function in ARITHMETIC.items()},
}


def _operator(name: str) -> Callable[[Remote, Any], Any]:
    return lambda self, other: self._assay_combine(name, other)


def _in_place(name: str) -> Callable[[Remote, Any], Any]:
    return lambda self, other: (
        self._assay_combine(name, other) if isinstance(other, Remote) else NotImplemented
    )


def _conversion(name: str) -> Callable[..., Any]:
    return lambda self, *options: self._assay_convert(name, *options)


for _name in OPERATORS:
    setattr(Remote, f"__{_name}__", _operator(_name))
for _name in IN_PLACE:
    setattr(Remote, f"__{_name}__", _in_place(_name))
for _name in CONVERSIONS:
    setattr(Remote, f"__{_name}__", _conversion(_name))


def _iterate(remote: Any) -> Iterator[Any]:
    """Return what the other side's ``iter`` gave: an object, or a plain value sent whole."""
    if not isinstance(remote, Remote):
        yield from remote
        return
    while True:
        try:
            item = next(remote)
        except StopIteration:
            return
        yield item


def _follow(peer: Peer, step: str, task: Any) -> Generator[None, None, Any]:
    """Let the other side's event loop run until its task is done; tasks here go on meanwhile."""
    while True:
        done, value = peer.ask(step, task)
        if done:
            return value
        try:
            yield
        except BaseException:
            peer.ask("cancel", task)
            raise


class _Following:
    """The next item of an asynchronous iterator of the other side."""

    def __init__(self, peer: Peer, task: Any) -> None:
        self.peer, self.task = peer, task

    def __await__(self) -> Generator[None, None, Any]:
        return _follow(self.peer, "next step", self.task)


async def coroutine_of(remote: Remote) -> Any:
    """Return a coroutine of this process that waits for one of the other."""
    return await remote


class Task:
    """A coroutine that runs here for the other side. It shows nothing of the loop."""

    __slots__ = ("_task",)
    _loops: list[asyncio.AbstractEventLoop] = []  # noqa: RUF012 - of the process

    def __init__(self, target: Any) -> None:
        import asyncio  # a program that needs none does not pay for it

        async def wait() -> Any:
            return await target

        # A loop that runs already is waiting for the other side: this is asked for meanwhile.
        loop = next((loop for loop in self._loops if not loop.is_running()), None)
        if loop is None:
            loop = asyncio.new_event_loop()
            self._loops.append(loop)
        self._task = loop.create_task(wait())

    def step(self) -> tuple[bool, Any]:
        """Run for a moment; whether it is done, and its result."""
        import asyncio

        outer = asyncio._get_running_loop()
        asyncio._set_running_loop(None)
        try:
            loop = self._task.get_loop()
            loop.run_until_complete(asyncio.wait([self._task], timeout=0.005))
        finally:
            asyncio._set_running_loop(outer)
        return (True, self._task.result()) if self._task.done() else (False, None)

    def cancel(self) -> None:
        """End it."""
        self._task.cancel()
        with contextlib.suppress(BaseException):
            self.step()


def _kin_type(base: type) -> type:
    """Return a subclass of a plain type: its value is here, its other attributes over there."""

    def get(self: Any, name: str) -> Any:
        if name.startswith("__") or name == "_assay_remote":
            raise AttributeError(name)
        return getattr(self._assay_remote, name)

    members = {
        "__getattr__": get,
        "__str__": lambda self: str(self._assay_remote),
        "__repr__": lambda self: repr(self._assay_remote),
        "__format__": lambda self, form: format(self._assay_remote, form),
        "__deepcopy__": lambda self, memo: self,
    }
    return type(base.__name__, (base,), members)


KIN = {base.__name__: _kin_type(base) for base in (int, float, str, tuple)}
"""Types here for subclasses over there, such as named tuples and IntEnums. Comparisons are those
of the plain type."""
