"""Text of a model, for the eyes of a person: nothing in it acts on a terminal or a page."""

from __future__ import annotations

import json
import re
from typing import Any

# Control characters (a terminal obeys them), lone surrogates (no file takes them), and marks that
# turn the direction of writing (they show a text as another).
_ODD = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff]"
)


def escape_invisible(text: str) -> str:
    r"""Show what cannot be seen as an escape, such as ``\x1b``; tabs and newlines stay."""
    return _ODD.sub(lambda m: _escape(ord(m[0])), text.replace("\r\n", "\n"))


def visible_json(value: Any, *, indent: int | None = None) -> str:
    r"""Encode as JSON that shows what cannot be seen as an escape, such as ``\u009b``."""
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    return _ODD.sub(lambda m: f"\\u{ord(m[0]):04x}", text)  # such characters are in strings only


def one_line(text: str) -> str:
    r"""Show a text on one line, its newlines as ``\n``: it cannot pass for a line of another's."""
    return escape_invisible(text).replace("\n", "\\n")


def shortened(text: str, most: int) -> str:
    """Shorten a text to about ``most`` characters: the head, the tail, and the number omitted."""
    if len(text) <= most:
        return text
    head, tail = most - most // 3, most // 3
    return f"{text[:head]} [... {len(text) - head - tail} characters ...] {text[-tail:]}"


def _escape(code: int) -> str:
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"
