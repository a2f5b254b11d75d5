"""Two processes that use each other's objects, over a socket that carries plain values only.

The tests call the candidate's functions; the candidate may call back what the tests handed it.
A value that is not plain stays where it is and travels as a handle. The other side sees a
:class:`Remote`, which can be called, iterated and asked for attributes, but is equal to nothing
but itself: what a candidate says of its objects never decides a comparison.

Runs inside the sandbox, from source that the host sends: standard library only.
"""

from __future__ import annotations

import json
import os
import struct
import threading
from collections.abc import Callable, Iterator
from typing import Any

from .agent_errors import Errors
from .wire import decode, encode

LARGEST_MESSAGE = 64 << 20


class PeerGone(BaseException):
    """The other process ended, or sent what is not the protocol.

    It is no Exception, so a test's own ``except Exception`` does not take it for an answer.
    """


_MEMORY = ("__array", "__cuda_array", "__dlpack")
"""By these names NumPy and its like ask for an address, and would read our memory there."""


class Remote:
    """An object of the other process.

    No arithmetic and no ordering: in ``assert abs(f(x) - 3) < 1e-9`` the difference would then
    be whatever the program says it is.
    """

    __slots__ = ("_handle", "_peer")

    def __init__(self, peer: Peer, handle: int) -> None:
        object.__setattr__(self, "_peer", peer)
        object.__setattr__(self, "_handle", handle)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call it over there."""
        return self._peer.call(self._handle, args, kwargs)

    def __getattr__(self, name: str) -> Any:
        if name.startswith(_MEMORY):
            raise AttributeError(name)
        return self._peer.ask("get", self._handle, name)

    def __setattr__(self, name: str, value: Any) -> None:
        self._peer.ask("set", self._handle, name, value)

    def __getitem__(self, key: Any) -> Any:
        return self._peer.ask("item", self._handle, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        self._peer.ask("put", self._handle, key, value)

    def __len__(self) -> int:
        return int(self._peer.ask("len", self._handle))

    def __bool__(self) -> bool:
        return bool(self._peer.ask("bool", self._handle))

    def __iter__(self) -> Iterator[Any]:
        return iter_remote(self._peer.ask("iter", self._handle))

    def __next__(self) -> Any:
        return self._peer.ask("next", self._handle)

    def __str__(self) -> str:
        return str(self._peer.ask("str", self._handle))

    def __repr__(self) -> str:
        return str(self._peer.ask("repr", self._handle))

    def __enter__(self) -> Any:
        return self.__getattr__("__enter__")()

    def __exit__(self, *details: object) -> None:
        self.__getattr__("__exit__")(None, None, None)

    def __instancecheck__(self, value: object) -> bool:
        return isinstance(value, Remote) and bool(self._peer.ask("isinstance", self._handle, value))


def iter_remote(remote: Any) -> Iterator[Any]:
    """What the other side's ``iter`` gave: a handle, or a plain value sent whole."""
    if not isinstance(remote, Remote):
        yield from remote
        return
    while True:
        try:
            item = next(remote)
        except StopIteration:
            return
        yield item


class Peer:
    """One end of the socket.

    Args:
        socket: its descriptor.
        may: says whether the other side may do this operation to this object of ours.
    """

    def __init__(self, socket: int, may: Callable[[str, Any, list[Any]], bool]) -> None:
        self._socket = socket
        self._may = may
        self._objects: list[Any] = []
        self._handles: dict[int, int] = {}
        self._remotes: dict[int, Remote] = {}
        self._errors = Errors()
        self._lock = threading.RLock()  # tests may call the program from several threads
        self.used = False
        """Anything was asked of the other side but its names."""
        self.last_error: BaseException | None = None
        """The last exception that came over the socket, to tell it from one of our own."""
        self.gone: PeerGone | None = None
        """Why there will be no more answers, also where a bare ``except`` took the exception."""

    def end(self, why: str) -> PeerGone:
        """The exception to raise where the other side is of no more use."""
        self.gone = self.gone or PeerGone(why)
        return self.gone

    def send(self, message: Any) -> None:
        """Send JSON."""
        data = json.dumps(message).encode()
        view = memoryview(struct.pack(">I", len(data)) + data)
        try:
            while view:
                view = view[os.write(self._socket, view) :]
        except OSError as error:
            raise self.end("it ended") from error

    def receive(self) -> list[Any]:
        """Wait for a message: a list whose first item is a word.

        Raises:
            PeerGone: the other side ended, or sent something else.
        """
        (size,) = struct.unpack(">I", self._read(4))
        if size > LARGEST_MESSAGE:
            raise self.end(f"it sent {size} bytes at once")
        try:
            message = json.loads(self._read(size))
        except (ValueError, RecursionError) as error:
            raise self.end("it sent what is not the protocol") from error
        if type(message) is not list or not message or type(message[0]) is not str:
            raise self.end("it sent what is not the protocol")
        return message

    def _read(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            try:
                piece = os.read(self._socket, min(size - len(data), 1 << 20))
            except OSError as error:
                raise self.end("it ended") from error
            if not piece:
                raise self.end("it ended")
            data += piece
        return bytes(data)

    def encode(self, value: Any) -> Any:
        """A value for the other side; what is not plain becomes a handle."""
        return encode(value, self._export)

    def decode(self, data: Any) -> Any:
        """A value from the other side.

        Raises:
            PeerGone: it is none.
        """
        try:
            return decode(data, self._import)
        except (ValueError, TypeError, LookupError, ArithmeticError, AttributeError) as error:
            raise self.end("it sent what is not a value") from error
        except RecursionError as error:
            raise self.end("it sent a value nested too deep") from error

    def handle(self, value: Any) -> Any:
        """What stands for an object of ours; for the same object always the same."""
        known = self._handles.get(id(value))
        if known is None:  # ids stay taken, as the list keeps what it holds
            known = self._handles[id(value)] = len(self._objects)
            self._objects.append(value)
        return {"mine": known}

    def _export(self, value: Any) -> Any:
        if isinstance(value, Remote) and value._peer is self:
            return {"yours": value._handle}
        if isinstance(value, type) and issubclass(value, BaseException):
            return {"exception": self._errors.describe_class(value)}
        return self.handle(value)

    def _import(self, tag: str, content: Any) -> Any:
        if tag == "exception":
            return self._errors.build_class(content)
        if type(content) is not int:
            raise ValueError("a handle is a number")
        if tag == "mine":
            if content not in self._remotes:
                self._remotes[content] = Remote(self, content)
            return self._remotes[content]
        if tag == "yours" and 0 <= content < len(self._objects):
            return self._objects[content]
        raise ValueError(f"unknown tag {tag!r}")

    def names(self, wanted: list[str]) -> dict[str, Any]:
        """Those of these names that the program defines, with their values."""
        with self._lock:
            self.send(["names", wanted])
            kind, *content = self.receive()
        if kind != "value" or not content or type(content[0]) is not dict:
            raise self.end("it sent what is not the protocol")
        found = {name: self.decode(content[0][name]) for name in wanted if name in content[0]}
        return found

    def ask(self, operation: str, handle: int, *args: Any) -> Any:
        """Do something to an object of the other side, and return the result."""
        return self.decode(self._ask([operation, handle, *[self.encode(a) for a in args]])[0])

    def call(self, handle: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a function of the other side.

        Where it returns None, lists, dicts and sets that it changed in place are changed here
        too. Where it returns something they are not: a candidate that empties its argument
        could otherwise make ``f(x) == sorted(x)`` hold.
        """
        data, *changed = self._ask(["call", handle, self.encode(list(args)), self.encode(kwargs)])
        result = self.decode(data)
        if result is None and changed:
            for old, new in zip(args, self.decode(changed[0]), strict=False):
                update(old, new)
        return result

    def _ask(self, message: list[Any]) -> list[Any]:
        self.used = True
        try:
            with self._lock:
                self.send(message)
                return self._reply()
        except (StopIteration, StopAsyncIteration) as error:
            if message[0] == "next":
                raise
            # It would end the loop that called: all(map(f, xs)) would hold of no x at all.
            said = f"the program raised {type(error).__name__}"
            self.last_error = RuntimeError(said)
            raise self.last_error from None

    def _reply(self) -> list[Any]:
        """Wait for an answer; meanwhile do what the other side asks for to give it."""
        while True:
            kind, *content = self.receive()
            if kind == "value" and content:
                return content
            if kind == "error" and content:
                self.last_error = self._error(content[0])
                raise self.last_error
            self.answer([kind, *content])

    def _error(self, data: Any) -> Exception:
        try:
            return self._errors.build(data)
        except (ValueError, TypeError, LookupError, ArithmeticError, AttributeError) as error:
            raise self.end("it sent what is not an exception") from error
        except RecursionError as error:
            raise self.end("it sent an exception nested too deep") from error

    def send_error(self, error: BaseException) -> None:
        """Tell the other side what was raised here."""
        self.send(["error", self._errors.describe(error)])

    def answer(self, message: list[Any], before_reply: Callable[[], None] | None = None) -> None:
        """Do what the other side asks for, and send the result."""
        try:
            operation, handle, *data = message
            if type(handle) is not int or not 0 <= handle < len(self._objects):
                raise self.end("it named an object that it was never given")
            target = self._objects[handle]
            args = [self.decode(item) for item in data]
            if not self._may(operation, target, args):
                raise TypeError(f"{operation} is not allowed on this object")
            reply = self._do(operation, target, args, data)
        except Exception as error:
            if before_reply is not None:
                before_reply()
            self.send_error(error)
        else:
            if before_reply is not None:
                before_reply()
            self.send(["value", *reply])

    def _do(self, operation: str, target: Any, args: list[Any], data: list[Any]) -> list[Any]:
        if operation == "call":
            positional, keywords = args
            result = target(*positional, **keywords)
            reply = [self.encode(result)]
            if result is None:
                after = self.encode(positional)
                if after != data[0]:
                    reply.append(after)
            return reply
        return [self.encode(_OPERATIONS[operation](target, *args))]


_OPERATIONS: dict[str, Callable[..., Any]] = {
    "get": getattr,
    "set": setattr,
    "item": lambda target, key: target[key],
    "put": lambda target, key, value: target.__setitem__(key, value),
    "len": len,
    "bool": bool,
    "iter": iter,
    "next": next,
    "str": str,
    "repr": repr,
    "isinstance": lambda target, value: isinstance(value, target),
}


def update(old: Any, new: Any) -> None:
    """Give a list, dict or set the content of another; inner ones keep their identity."""
    if type(old) is not type(new):
        return
    if type(old) is list:
        old[:] = [*map(_updated, old, new), *new[len(old) :]]
    elif type(old) is dict:
        items = [(key, _updated(old.get(key), value)) for key, value in new.items()]
        old.clear()
        old.update(items)
    elif type(old) is set:
        old.clear()
        old.update(new)


def _updated(old: Any, new: Any) -> Any:
    """The value to put in the place of another: itself, changed, where it can hold the new."""
    if type(old) in (list, dict, set) and type(old) is type(new):
        update(old, new)
        return old
    return new
