"""Regular expressions that take time linear in the text, whatever text and pattern are.

They are RE2's, so look-around and back-references, which no linear matcher has, are refused.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import re2

MAX_PATTERN = 2000
"""Characters of a pattern."""

_MAX_MEMORY = 1 << 20  # bytes of a compiled pattern; time is linear in them as well
_HINT = (
    "write it in RE2's syntax (no look-around, no back-references, repetitions up to 1000): "
    "https://github.com/google/re2/wiki/Syntax"
)


class Linear:
    """A compiled pattern over text of any kind, lone surrogates and NUL included."""

    def __init__(self, pattern: str, *, case: bool = True, memory: int = _MAX_MEMORY) -> None:
        if len(pattern) > MAX_PATTERN:
            raise ValueError(f"the pattern has {len(pattern)} characters, at most {MAX_PATTERN}")
        options = re2.Options()
        options.log_errors = False
        options.never_capture = True
        options.max_mem = memory
        options.case_sensitive = case
        try:
            self._compiled = re2.compile(pattern, options)
        except UnicodeEncodeError as error:
            raise ValueError(f"the pattern {pattern!r:.80} is no Unicode text") from error
        except re2.error as error:
            cause = error.args[0] if error.args else "unknown"
            why = cause.decode("utf-8", "replace") if isinstance(cause, bytes) else str(cause)
            raise ValueError(f"RE2 refuses the pattern {pattern!r:.80} ({why}): {_HINT}") from error

    def fills(self, text: str) -> bool:
        """Return whether the pattern matches the whole text."""
        return self._compiled.fullmatch(_bytes(text)) is not None

    def stands_in(self, text: str) -> bool:
        """Return whether the pattern matches any part of the text."""
        return self._compiled.search(_bytes(text)) is not None

    def count(self, text: str, most: int) -> int:
        """Count non-overlapping matches, up to ``most``.

        Each takes time linear in the text, so that ``most`` bounds the whole.
        """
        data, found, at = _bytes(text), 0, 0
        while found < most:
            match: Any = self._compiled.search(data, at)
            if match is None:
                break
            found += 1
            if match.end() >= len(data):
                break
            at = max(match.end(), match.start() + 1)
            while at < len(data) and data[at] & 0xC0 == 0x80:  # within a character
                at += 1
        return found


@lru_cache(maxsize=256)
def compiled(pattern: str, case: bool = True) -> Linear:
    """Compile a pattern once.

    Raises:
        ValueError: it is too long, or RE2 cannot hold it; the message says what to do.
    """
    return Linear(pattern, case=case)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
