"""Two processes that use each other's objects, over a socket that carries plain values only.

The tests call the candidate's functions; the candidate may call back what the tests handed it.
Values of the standard containers travel whole. A value of any other kind stays where it is and
travels as a handle, and the other side sees a :class:`~.remote.Remote`.
"""

from __future__ import annotations

import copy
import json
import os
import struct
import threading
import types
from collections.abc import Callable
from typing import Any

from .child import write_all
from .copies import Copies, update
from .exceptions import Errors
from .library import LIBRARY, change_setting, setting
from .remote import (
    CONVERSIONS,
    DERIVED,
    FOUND,
    IN_PLACE,
    KIN,
    MADE,
    OPERATORS,
    UNKNOWN,
    Remote,
    RemoteFunction,
    Task,
    coroutine_of,
    parts,
    set_origin,
)
from .values import decode_standard, encode_standard, is_kin, stays
from .wire import content, decode, encode

LARGEST_MESSAGE = 64 << 20
_MOST_CHANGED = 64
_FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType, types.MethodType)


class PeerGone(BaseException):
    """The other process ended, or sent what is not the protocol.

    It is no Exception, so a test's own ``except Exception`` does not take it for an answer.
    """


class Peer:
    """One end of the socket.

    Args:
        socket: its descriptor.
        may: says whether the other side may do this operation to this object of ours. ``None``:
            it may do anything, and its objects decide their comparisons: the candidate's end.
    """

    def __init__(self, socket: int, may: Callable[[str, Any, list[Any]], bool] | None) -> None:
        self._socket = socket
        self._may = may
        self.trusting = may is None
        self.raising_lines: set[int] = set()
        """Lines of the tests that raise what a context manager of the program may swallow."""
        self._objects: list[Any] = []
        self._handles: dict[int, int] = {}
        self._remotes: dict[int, Remote] = {}
        self._kin: dict[int, Any] = {}
        self._classes: set[int] = set()
        self._asked = 0
        self._contents: dict[int, tuple[int, Any]] = {}
        self._errors = Errors(self)
        self._copies = Copies()
        self._changed: dict[int, tuple[Any, Any, Any]] = {}
        self.reports_changes = False
        """Whether to report changed arguments even if there is a result."""
        self._received = 0
        self.returned: Any = None
        """What the reply to a request is made of."""
        self.settings: set[str] = set()
        """Modules whose settings the tests changed since the last request."""
        self.shared: dict[str, Any] = {}
        """Our classes of which the other side has its own: their objects are copied."""
        self.find: Callable[[list[str]], dict[str, Any]] | None = None  # encoded globals by name
        self._lock = threading.RLock()  # tests may call the program from several threads
        self.last_error: BaseException | None = None
        """The last exception that came over the socket, to tell it from one of our own."""
        self.gone: PeerGone | None = None
        """Why there will be no more answers, also where a bare ``except`` took the exception."""

    def end(self, why: str) -> PeerGone:
        """Return the exception to raise where the other side is of no more use."""
        self.gone = self.gone or PeerGone(why)
        return self.gone

    def send(self, message: Any) -> int:
        """Send JSON, and return its length."""
        data = json.dumps(message).encode()
        try:
            write_all(self._socket, struct.pack(">I", len(data)) + data)
        except OSError as error:
            raise self.end("it ended") from error
        return len(data)

    def receive(self) -> list[Any]:
        """Wait for a message: a list whose first item is a word.

        Raises:
            PeerGone: the other side ended, or sent something else.
        """
        (size,) = struct.unpack(">I", self._read(4))
        if size > LARGEST_MESSAGE:
            raise self.end(f"it sent {size} bytes at once")
        self._received = size
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
        """Return a value for the other side; what is not plain becomes a handle."""
        return encode(value, self._export)

    def decode(self, data: Any) -> Any:
        """Return a value from the other side.

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
        """Encode an object of ours that stays here."""
        number = self.number(value)
        return {"function" if isinstance(value, _FUNCTIONS) else "mine": number}

    def number(self, value: Any) -> int:
        """Return the handle of an object of ours: for the same object always the same."""
        known = self._handles.get(id(value))
        if known is None:  # ids stay taken, as the list keeps what it holds
            known = self._handles[id(value)] = len(self._objects)
            self._objects.append(value)
        return known

    def _export(self, value: Any) -> Any:
        if isinstance(value, Remote):
            peer, handle, _ = parts(value)
            return {"yours": handle} if peer is self else self.handle(value)
        kind = type(value)
        if self._is_shared(value):
            return self._graph_of(value)
        if any(kind is known for known in KIN.values()):  # a class may have no hash
            return {"yours": parts(value._assay_remote)[1]}
        if isinstance(value, type) and issubclass(value, BaseException):
            return {"exception": self._errors.describe_class(value)}
        if isinstance(value, BaseException):
            return {"raised": self._errors.describe(value)}
        if kind is types.CoroutineType:
            return {"coroutine": self.number(value)}
        standard = encode_standard(value, kind, self.encode)
        if standard is not None:
            return standard
        plain = content(value)
        if plain is NotImplemented or stays(kind, plain):
            return self.handle(value)
        if is_kin(plain):
            return {"kin": [self.number(value), type(plain).__name__, self.encode(plain)]}
        return self.encode(plain)

    def _is_shared(self, value: Any) -> bool:
        kind = type(value)
        return self.shared.get(kind.__name__) is kind and hasattr(value, "__dict__")

    def _graph_of(self, root: Any) -> Any:
        """Encode a shared object and those that it leads to, flat: lists may be long, or rings."""
        numbers: dict[int, int] = {}
        found: list[Any] = []

        def export(value: Any) -> Any:
            if not self._is_shared(value):
                return self._export(value)
            if numbers.setdefault(id(value), len(found)) == len(found):
                found.append(value)
            return {"object": numbers[id(value)]}

        export(root)
        pairs = ([[k, encode(v, export)] for k, v in vars(each).items()] for each in found)
        return {"objects": [[type(found[i]).__name__, each] for i, each in enumerate(pairs)]}

    def _graph(self, rows: Any) -> Any:
        """Return the first of the objects that :meth:`_graph_of` encoded."""
        made = [object.__new__(self.shared[name]) for name, _ in rows]
        for each, (_, attributes) in zip(made, rows, strict=True):
            for name, data in attributes:
                if name.startswith("__") or callable(getattr(type(each), name, None)):
                    raise ValueError(f"{name!r} may be a method")
                value = decode(data, lambda t, d: made[d] if t == "object" else self._import(t, d))
                object.__setattr__(each, name, value)
        return made[0]

    def _import(self, tag: str, data: Any) -> Any:
        if tag == "objects":
            return self._graph(data)
        if tag == "exception":
            return self._errors.build_class(data)
        if tag == "raised":
            return self._errors.build(data)
        if tag == "kin":
            return self._kin_of(*data)
        if tag in ("mine", "function"):
            return self.remote(data, RemoteFunction if tag == "function" else Remote)
        if tag == "coroutine":
            return coroutine_of(self.remote(data))
        if tag == "yours" and type(data) is int and 0 <= data < len(self._objects):
            return self._objects[data]
        return decode_standard(tag, data, self.decode)

    def remote(self, handle: Any, kind: type[Remote] = Remote) -> Remote:
        """Return the other side's object of this handle."""
        if type(handle) is not int:
            raise ValueError("a handle is a number")
        if handle not in self._remotes:
            self._remotes[handle] = kind(self, handle)
        else:  # ``return self`` must not make a result what the tests made
            set_origin(self._remotes[handle], UNKNOWN)
        return self._remotes[handle]

    def _kin_of(self, handle: Any, base: Any, data: Any) -> Any:
        """Return a value of a plain type's subclass: its content never changes."""
        remote = self.remote(handle)
        if handle not in self._kin:
            plain = self.decode(data)
            if type(plain).__name__ != base:
                raise ValueError(f"that is no {base!r}")
            kin = KIN[base](plain)
            kin._assay_remote = remote
            self._kin[handle] = kin
        return self._kin[handle]

    def names(self, wanted: list[str]) -> dict[str, Any]:
        """Return those of these names that the program defines, with their values."""
        with self._lock:
            self._tell_changes()
            self.send(["names", wanted])
            data = self._reply()
        if type(data[0]) is not dict:
            raise self.end("it sent what is not the protocol")
        found = {name: self.decode(data[0][name]) for name in wanted if name in data[0]}
        for name, value in found.items():
            self._copies.add(value, self._received, self.encode)
            if isinstance(value, Remote) and name.lstrip("_")[:1].isupper():
                self._classes.add(parts(value)[1])
        return found

    def content(self, remote: Remote) -> Any:
        """Return the plain content of an object of a plain type's subclass, or NotImplemented.

        It is asked for once between two other requests: an object that changes with every
        question would have as many guesses as the tests have comparisons.
        """
        _, handle, origin = parts(remote)
        if origin == DERIVED:
            return NotImplemented
        asked, found = self._contents.get(handle, (-1, None))
        if asked != self._asked:
            try:
                found = self.ask("content", remote)
            except Exception:
                found = NotImplemented
            if type(found) not in _CONTENTS:
                found = NotImplemented
            self._contents[handle] = self._asked, found
        return found

    def origin(self, remote: Remote) -> int:
        """Return where an object comes from; a class that the tests name counts as made by them."""
        _, handle, origin = parts(remote)
        return MADE if handle in self._classes else origin

    def may_swallow(self, trace: types.TracebackType | None) -> bool:
        """Return whether an exception was raised by the tests for a context manager to swallow."""
        while trace is not None and trace.tb_next is not None:
            trace = trace.tb_next
        return (
            trace is not None
            and trace.tb_frame.f_code.co_filename == "tests.py"
            and trace.tb_lineno in self.raising_lines
        )

    def ask(self, operation: str, remote: Remote, *args: Any, origin: int = UNKNOWN) -> Any:
        """Do something to an object of the other side, and return the result."""
        data = self._ask([operation, parts(remote)[1], *[self.encode(a) for a in args]])[0]
        return self._result(data, origin)

    def _result(self, data: Any, origin: int) -> Any:
        """Decode a result. An object that came before is at most what it was."""
        handle = data.get("mine", data.get("function")) if type(data) is dict else None
        known = self._remotes.get(handle) if type(handle) is int else None
        before = MADE if known is None else parts(known)[2]
        result = self.decode(data)
        if isinstance(result, Remote):
            set_origin(result, min(origin, before))
        else:
            self._copies.add(result, self._received, self.encode)
        return result

    def call(self, remote: Remote, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a function of the other side.

        Where it returns None, lists, dicts and sets that it changed in place are changed here
        too. Where it returns something only :meth:`changed` gives them: a candidate that empties
        its argument could otherwise make ``f(x) == sorted(x)`` hold.
        """
        handle = parts(remote)[1]
        sent = [self.encode([*map(self.changed, args)])]
        sent.append(self.encode({name: self.changed(value) for name, value in kwargs.items()}))
        data, *changed = self._ask(["call", handle, *sent])
        made_here = handle in self._classes
        result = self._result(data, MADE if made_here else min(parts(remote)[2], FOUND))
        if changed:
            after = self.decode(changed[0])
            if type(after) is not list:
                raise self.end("it sent what is not the protocol")
            for old, new in zip([*args, *kwargs.values()], after, strict=False):
                if result is None:
                    update(old, new)
                elif type(old) is type(new):
                    self._changed[id(old)] = old, self.encode(old), new
            while len(self._changed) > _MOST_CHANGED:
                del self._changed[next(iter(self._changed))]
        return result

    def changed(self, value: Any) -> Any:
        """Return an argument as the program left it, unless the tests changed it since."""
        old, before, new = self._changed.get(id(value), (None, None, None))
        return new if old is value is not None and self.encode(old) == before else value

    def _ask(self, message: list[Any]) -> list[Any]:
        self._asked += message[0] != "content"
        try:
            with self._lock:
                self._tell_changes()
                self.send(message)
                return self._reply()
        except (StopIteration, StopAsyncIteration) as error:
            if message[0] in ("next", "next step"):
                raise
            # It would end the loop that called: all(map(f, xs)) would hold of no x at all.
            said = f"the program raised {type(error).__name__}"
            self.last_error = RuntimeError(said)
            raise self.last_error from None

    def _tell_changes(self) -> None:
        """Let the program see what the tests did since the last request, as in one process.

        They seeded random numbers, say, or changed a list, dict or set that it gave them.
        """
        if self.trusting:
            return
        while self.settings:
            name = self.settings.pop()
            self.send(["setting", name, self.encode(setting(name))])
            self._reply()
        for number, value in self._copies.changed(self.encode):
            self.send(["changed", number, value])
            self._reply()

    def _reply(self) -> list[Any]:
        """Wait for an answer; meanwhile do what the other side asks for to give it."""
        while True:
            kind, *content = self.receive()
            if kind == "value" and content:
                self._copies.received += 1
                return content
            if kind == "error" and content:
                self.last_error = self._error(content[0])
                raise self.last_error
            self.answer([kind, *content])

    def _error(self, data: Any) -> BaseException:
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
            self.returned = None
            if message[0] == "names" and self.find is not None:
                reply: list[Any] = [self.find(message[1])]
            elif self.trusting and message[0] in ("setting", "changed"):
                _, which, data = message
                if message[0] == "setting":
                    change_setting(which, self.decode(data))
                else:
                    self._copies.update(which, self.decode(data))
                reply = [None]
            else:
                reply = self._do(*message)
        except Exception as error:
            if before_reply is not None:
                before_reply()
            self.send_error(error)
        else:
            if before_reply is not None:
                before_reply()
            self._copies.keep(self.returned, self.send(["value", *reply]))

    def _do(self, operation: str, handle: Any = None, *data: Any) -> list[Any]:
        if type(handle) is not int or not 0 <= handle < len(self._objects):
            raise self.end("it named an object that it was never given")
        target = self._objects[handle]
        args = [self.decode(item) for item in data]
        if self._may is not None and not self._may(operation, target, args):
            refused = AttributeError if operation == "get" else TypeError
            raise refused(f"{operation} is not allowed on this object")
        if operation == "call":
            positional, keywords = args
            result = target(*positional, **keywords)
            self.returned = result
            reply = [self.encode(result)]
            if (result is None or self.reports_changes) and [
                self.encode(part) for part in args
            ] != [*data]:
                reply.append(self.encode([*positional, *keywords.values()]))
            return reply
        self.returned = result = _OPERATIONS[operation](target, *args)
        return [self.encode(result)]


def _method(function: Any) -> Callable[..., Any]:
    """Return a function, of which a class makes a method, as it does of one of its own process."""
    return lambda *args, **options: function(*args, **options)


_CONTENTS = (str, int, float, tuple, list, dict, set, frozenset)

_OPERATIONS: dict[str, Callable[..., Any]] = {
    **OPERATORS,
    **IN_PLACE,
    **CONVERSIONS,
    "get": getattr,
    "set": setattr,
    "define": lambda target, name, function: setattr(
        target, name, _method(function) if isinstance(target, type) else function
    ),
    "unset": delattr,
    "item": lambda target, key: target[key],
    "put": lambda target, key, value: target.__setitem__(key, value),
    "remove": lambda target, key: target.__delitem__(key),
    "contains": lambda target, item: item in target,
    "len": len,
    "bool": bool,
    "hash": hash,
    "dir": dir,
    "iter": iter,
    "reversed": reversed,
    "next": next,
    "str": str,
    "repr": repr,
    "format": format,
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "content": content,
    "class": lambda target: target.__class__,
    "library": lambda target, module, name, args, options: LIBRARY[module, name](
        target, *args, **options
    ),
    "isinstance": lambda target, value: isinstance(value, target),
    "issubclass": lambda target, value: issubclass(value, target),
    "start": Task,
    "aiter": lambda target: target.__aiter__(),
    "anext": lambda target: Task(target.__anext__()),
    "step": Task.step,
    "next step": Task.step,
    "cancel": Task.cancel,
}
