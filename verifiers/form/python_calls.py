"""Read calls as Python writes them, ``[book(city="Oslo", nights=2)]``: names and plain values.

An own reader: Python's recurses on what it reads, warns of escapes, and knows far more than calls.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from .call import Call
from .json_text import MAX_DEPTH, NotJson, read_number

MAX_LENGTH = 20_000
"""Characters. Longer calls are not read."""

_TOKEN = re.compile(
    r"""\s*+(?:
      (?P<text>[rR]?+(?:"(?>(?:[^"\\\n]|\\.)*)"|'(?>(?:[^'\\\n]|\\.)*)'))
    | (?P<name>[^\W\d]\w{0,99}(?:\.[^\W\d]\w{0,99}){0,9})
    | (?P<number>-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][-+]?[0-9]++)?(?![\w.]))
    | (?P<mark>[()\[\]{},:=])
    )""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|(.))", re.DOTALL)
_ESCAPED = {
    "n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "0": "\0",
    "\\": "\\", "'": "'", '"': '"', "/": "/",
}  # fmt: skip
_CONSTANTS = {
    "True": True, "False": False, "None": None, "true": True, "false": False, "null": None,
}  # fmt: skip


def read_calls(text: str) -> list[Call]:
    """Parse the calls of ``f(a=1)`` or ``[f(a=1), g()]``.

    Every argument has a name, and its value is a string, number, list, tuple, dict, or one of
    ``True``, ``False`` and ``None``, also as JSON writes them.

    Raises:
        NotJson: the text is anything else.

    Example:
        >>> read_calls("[add(a=1, b=[2.5, None])]")[0].arguments
        {'a': 1, 'b': [2.5, None]}
    """
    return _Reader(text).read()


def read_value(text: str) -> Any:
    """Parse one value, as :func:`read_calls` does an argument's.

    Raises:
        NotJson: the text is anything else.
    """
    reader = _Reader(text)
    value = reader.value(1)
    reader.end()
    return value


class _Reader:
    """Recursive descent, as deep as :data:`MAX_DEPTH`."""

    def __init__(self, text: str) -> None:
        if len(text) > MAX_LENGTH:
            raise NotJson(f"calls of more than {MAX_LENGTH} characters")
        self.tokens: list[tuple[str, str]] = []
        at, text = 0, text.rstrip()
        while at < len(text):
            found = _TOKEN.match(text, at)
            if found is None:
                raise NotJson(f"unexpected {text[at : at + 20].strip()!r} in calls")
            kind = found.lastgroup or ""
            self.tokens.append((kind, found[kind]))
            at = found.end()
        self.tokens.append(("end", ""))
        self.at = 0

    def read(self) -> list[Call]:
        listed = self._takes("[")
        calls = [self._call()]
        while listed and self._takes(","):
            if self._peek() == ("mark", "]"):
                break
            calls.append(self._call())
        if listed:
            self._expect("]")
        self.end()
        return calls

    def end(self) -> None:
        if self._peek()[0] != "end":
            raise NotJson(f"unexpected {self._peek()[1]!r:.40} at the end")

    def _call(self) -> Call:
        name = self._name("the name of a function")
        self._expect("(")
        arguments: dict[str, Any] = {}
        for _ in self._until(")"):
            argument = self._name("the name of an argument")
            if argument in arguments:
                raise NotJson(f"the argument {argument!r} occurs twice")
            self._expect("=")
            arguments[argument] = self.value(1)
        return Call(name, arguments)

    def value(self, depth: int) -> Any:
        if depth > MAX_DEPTH:
            raise NotJson(f"nested deeper than {MAX_DEPTH}")
        kind, token = self._take()
        if kind == "number":
            return read_number(token)
        if kind == "text":
            return token[2:-1] if token[0] in "rR" else _ESCAPE.sub(_escape, token[1:-1])
        if kind == "name" and token in _CONSTANTS:
            return _CONSTANTS[token]
        if kind == "mark" and token in "([":
            return self._items("]" if token == "[" else ")", depth)
        if kind == "mark" and token == "{":
            return self._pairs(depth)
        raise NotJson(f"expected a value, got {token!r:.40}")

    def _items(self, end: str, depth: int) -> Any:
        items = [self.value(depth + 1) for _ in self._until(end)]
        comma = self.tokens[self.at - 2] == ("mark", ",")
        # brackets around one value are brackets, not a tuple
        return items[0] if end == ")" and len(items) == 1 and not comma else items

    def _pairs(self, depth: int) -> dict[str, Any]:
        pairs: dict[str, Any] = {}
        for _ in self._until("}"):
            key = self.value(depth + 1)
            if not isinstance(key, str) or key in pairs:
                raise NotJson(f"keys must be strings that differ, got {key!r:.40}")
            self._expect(":")
            pairs[key] = self.value(depth + 1)
        return pairs

    def _until(self, end: str) -> Iterator[None]:
        """Yield before each of the items that commas separate, and take the mark at their end."""
        while not self._takes(end):
            yield
            if not self._takes(","):
                self._expect(end)
                return

    def _name(self, what: str) -> str:
        kind, token = self._take()
        if kind != "name":
            raise NotJson(f"expected {what}, got {token!r:.40}")
        return token

    def _peek(self) -> tuple[str, str]:
        return self.tokens[self.at]

    def _take(self) -> tuple[str, str]:
        token = self.tokens[self.at]
        self.at = min(self.at + 1, len(self.tokens) - 1)
        return token

    def _takes(self, mark: str) -> bool:
        if self._peek() != ("mark", mark):
            return False
        self.at += 1
        return True

    def _expect(self, mark: str) -> None:
        if not self._takes(mark):
            raise NotJson(f"expected {mark!r}, got {self._peek()[1]!r:.40}")


def _escape(found: re.Match[str]) -> str:
    code = found[1] or found[2]
    if code:
        if 0xD800 <= int(code, 16) <= 0xDFFF:
            raise NotJson("half of a surrogate pair")
        return chr(int(code, 16))
    return _ESCAPED.get(found[3], found[0])  # Python keeps an unknown one as it stands
