"""Test cases that travel as base64 of zlib of a pickled text, read without unpickling.

A pickle is a program: reading one from a data set runs whatever its author wanted. Here its
instructions are only looked at, and all but those that push one text are refused.
"""

from __future__ import annotations

import base64
import binascii
import pickletools
import zlib

LARGEST = 512 << 20
"""Bytes that packed cases may take when unpacked."""

_TEXT = frozenset({"BINUNICODE", "BINUNICODE8", "SHORT_BINUNICODE", "UNICODE"})
_HARMLESS = frozenset({"PROTO", "FRAME", "MEMOIZE", "PUT", "BINPUT", "LONG_BINPUT", "STOP"})


def unpacked(text: str) -> str:
    """Unpack a text.

    Raises:
        ValueError: it is not base64 of zlib, is larger than LARGEST, or what was pickled is
            anything but one text.
    """
    try:
        packed = base64.b64decode(text, validate=True)
        unpacker = zlib.decompressobj()
        data = unpacker.decompress(packed, LARGEST)
    except (binascii.Error, zlib.error) as error:
        raise ValueError(f"expected base64 of zlib, got {text[:60]!r} ({error})") from error
    if not unpacker.eof:
        raise ValueError(f"expected at most {LARGEST >> 20} MiB of zlib, got more, or a part of it")
    return _pickled_text(data)


def _pickled_text(data: bytes) -> str:
    try:
        found = [(op.name, argument) for op, argument, _ in pickletools.genops(data)]
    except Exception as error:  # it raises half a dozen kinds, none of them promised
        raise ValueError(f"expected one pickled text, got {data[:40]!r}") from error
    strange = [name for name, _ in found if name not in _TEXT | _HARMLESS]
    if strange:
        raise ValueError(f"expected one pickled text, got the instruction {strange[0]}")
    texts = [argument for name, argument in found if name in _TEXT]
    if len(texts) != 1:
        raise ValueError(f"expected one pickled text, got {len(texts)}")
    return str(texts[0])
