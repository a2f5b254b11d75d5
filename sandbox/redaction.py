"""Hide secrets in whatever is written down, printed or shown: the only place that knows them.

A secret is the value of a field that is named like one (``token``, ``hf_token``, ``api_key``,
``Authorization``, ...), the user info of a URL, or a bearer token in a text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any

REDACTED = "<redacted>"
"""Stands for a secret. A setting that holds it must be given again."""

_SHORTEST = 6
"""Of the values that are looked for in every message: a shorter one may be a plain word."""

_SECRET = re.compile(
    r"(?!.*(?:eos|bos|pad|unk|sep|cls|mask|stop|end|max|min|num)_token$)(?:.+_)?"
    r"(?:passw(?:or)?ds?|pwd|passphrase|secrets?|credentials?|token|authorization|auth|bearer"
    r"|cookies?|headers|apikey|(?:api|access|auth|private|secret|account|signing|encryption)_keys?)"
    r"|keys?"
)
_JOINT = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[^A-Za-z0-9]+")

_USER = re.compile(r"(?<![A-Za-z0-9+.-])([A-Za-z][A-Za-z0-9+.-]*)://([^\s/?#'\"<>]*)@")
_BEARER = re.compile(r"\bBearer +[\w.~+/=-]{16,}")
_ASSIGNED = re.compile(  # name=value, "name": "value", Authorization: Basic value
    r"(?<![\w.-])([A-Za-z][\w.-]*)(\s*=\s*|['\"]\s*[:=]\s*|:\s+)"
    r"(\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|(?:(?:Basic|Bearer|Token)\s+)?[^\s,;&'\")}\]]+)"
)
_HEADERS = {"authorization", "x-api-key", "cookie"}
_seen: set[str] = set()


def is_secret(name: str) -> bool:
    """Return whether a field of this name holds a secret: not ``eos_token`` or ``api_key_env``."""
    return _SECRET.fullmatch(_JOINT.sub("_", name).strip("_").lower()) is not None


def redact(value: Any, name: str = "") -> Any:
    """Copy a value with ``<redacted>`` for each secret in it.

    Args:
        value: settings by name, lists of them, or text; what is neither is returned as it is.
        name: the field that it is the value of.
    """
    if is_secret(name) and _may_be_secret(value):
        return REDACTED
    if isinstance(value, Mapping):
        return {key: redact(each, str(key)) for key, each in value.items()}
    if type(value) in (list, tuple):
        return type(value)(redact(each) for each in value)
    if not isinstance(value, str):
        return value
    text = _USER.sub(_without_user, value)
    text = _BEARER.sub(f"Bearer {REDACTED}", text)
    return _ASSIGNED.sub(_without_value, text)


def remember(values: Any, name: str = "") -> None:
    """Remember the secrets in settings, so that :func:`hide` finds them wherever they turn up."""
    if isinstance(values, Mapping):
        for key, each in values.items():
            remember(each, name if name and is_secret(name) else str(key))
    elif isinstance(values, list | tuple):
        for each in values:
            remember(each, name)
    else:
        text = str(values)
        found = [text] if is_secret(name) else [user for _, user in _USER.findall(text)]
        found += [password for user in found if (password := user.partition(":")[2])]
        _seen.update(secret for secret in found if len(secret) >= _SHORTEST)


def hide(text: str) -> str:
    """Redact a message, which may quote a secret that was given by any name."""
    for secret in sorted(_seen, key=len, reverse=True):
        text = text.replace(secret, REDACTED)
    return str(redact(text))


def redacted_paths(value: Any, path: str = "") -> Iterator[str]:
    """Yield where ``<redacted>`` stands for a secret, such as ``env_args.token``."""
    if isinstance(value, Mapping):
        for key, each in value.items():
            yield from redacted_paths(each, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list | tuple):
        for number, each in enumerate(value):
            yield from redacted_paths(each, f"{path}[{number}]")
    elif isinstance(value, str) and REDACTED in value:
        yield path


def redacted_repr(self: Any) -> str:
    """Show a dataclass as its own repr would, without secrets: its ``__repr__``."""
    shown = (f"{f.name}={redact(getattr(self, f.name), f.name)!r}" for f in fields(self) if f.repr)
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _may_be_secret(value: Any) -> bool:
    return value is not None and not isinstance(value, bool) and value not in ("", {}, [], ())


def _without_user(found: re.Match[str]) -> str:
    scheme, user = found.groups()
    shown = user if scheme.lower() == "ssh" and ":" not in user else REDACTED
    return f"{scheme}://{shown}@"


def _without_value(found: re.Match[str]) -> str:
    name, sign, value = found.groups()
    known = name.lower() in _HEADERS if sign[0] == ":" else name != "key" and is_secret(name)
    quote = value[0] if value[0] in "'\"" else ""
    return f"{name}{sign}{quote}{REDACTED}{quote}" if known else found[0]
