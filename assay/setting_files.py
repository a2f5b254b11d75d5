"""Files of settings: YAML and TOML in, YAML with the meaning of each setting out."""

from __future__ import annotations

import json
import re
import textwrap
import tomllib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from .sandbox.redaction import redact, remember

_PLAIN = re.compile(r"[A-Za-z_][\w./-]*")
# What some reader of YAML takes for something else than text.
_WORDS = {"y", "n", "yes", "no", "on", "off", "true", "false", "null", "nan", "inf"}


def read_settings(path: str | Path) -> dict[str, Any]:
    """Read the settings in a file, unconverted.

    YAML is read as its version 1.2 says: ``1e-6`` is a number, ``no`` is text, ``010`` is ten.

    Args:
        path: ``*.yaml``, ``*.yml``, ``*.json`` or ``*.toml``.

    Raises:
        ValueError: it cannot be read, is no mapping of settings, or says one twice.
        OSError: it is not there.
    """
    path = Path(path)
    kind = path.suffix.lower()
    if kind not in (".yaml", ".yml", ".json", ".toml"):
        raise ValueError(f"{str(path)!r} must end in .yaml, .yml, .json or .toml")
    if not path.is_file():
        raise FileNotFoundError(f"no such file: {str(path)!r}")
    try:
        text = path.read_text(encoding="utf-8")
        found = _READERS.get(kind, _read_yaml)(text)
    except yaml.MarkedYAMLError as error:  # its own text quotes the line, which may be a secret's
        where = f" (line {error.problem_mark.line + 1})" if error.problem_mark else ""
        raise ValueError(f"{str(path)!r} cannot be read: {error.problem}{where}") from None
    except (yaml.YAMLError, ValueError) as error:
        raise ValueError(f"{str(path)!r} cannot be read: {error}") from error
    if found is None:
        return {}
    if not isinstance(found, dict) or not all(isinstance(key, str) for key in found):
        raise ValueError(f"{str(path)!r} must hold lines 'name: value', got {redact(found)!r:.80}")
    remember(found)
    return found


class _Loader(yaml.SafeLoader):
    """The core schema of YAML 1.2; in PyYAML's 1.1, 1e-6 is text and ``no`` is False."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012  # PyYAML's own way


_INTEGER = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_NUMBER = re.compile(
    r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)"
    r"|\.(?:nan|NaN|NAN)"
)


def _resolve(tag: str, pattern: str, first: Iterable[str]) -> None:
    # In this order: what looks like an integer is one, and no float.
    _Loader.add_implicit_resolver(
        f"tag:yaml.org,2002:{tag}", re.compile(f"(?:{pattern})$"), list(first)
    )


_resolve("null", "~|null|Null|NULL|", ["~", "n", "N", ""])
_resolve("bool", "true|True|TRUE|false|False|FALSE", "tTfF")
_resolve("int", _INTEGER.pattern, "-+0123456789")
_resolve("float", _NUMBER.pattern, "-+.0123456789")


def _integer(loader: Any, node: Any) -> int:
    text = loader.construct_scalar(node)
    return int(text, 0) if text[:2] in ("0o", "0x") else int(text)


def _number(loader: Any, node: Any) -> float:
    text = loader.construct_scalar(node).lower()
    return float(text.replace(".inf", "inf").replace(".nan", "nan"))


def _mapping(loader: Any, node: Any) -> dict[Any, Any]:
    keys = [loader.construct_object(key, deep=True) for key, _ in node.value]
    for i, key in enumerate(keys):
        if key in keys[:i]:
            raise ValueError(f"line {node.value[i][0].start_mark.line + 1}: {key!r} is there twice")
    found: dict[Any, Any] = yaml.SafeLoader.construct_mapping(loader, node, deep=True)
    return found


_Loader.add_constructor("tag:yaml.org,2002:int", _integer)
_Loader.add_constructor("tag:yaml.org,2002:float", _number)
_Loader.add_constructor("tag:yaml.org,2002:map", _mapping)


def _read_yaml(text: str) -> Any:
    return yaml.load(text, _Loader)  # noqa: S506  # it is a SafeLoader, and makes no objects


def _read_json(text: str) -> Any:
    return json.loads(text, object_pairs_hook=_once)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    for i, (name, _) in enumerate(pairs):
        if any(name == before for before, _ in pairs[:i]):
            raise ValueError(f"{name!r} is there twice")
    return dict(pairs)


_READERS: dict[str, Callable[[str], Any]] = {".toml": tomllib.loads, ".json": _read_json}


def yaml_lines(
    values: Mapping[str, Any], meanings: Mapping[str, str], groups: Mapping[str, Iterable[str]]
) -> list[str]:
    """Format settings as lines of YAML, each below its description.

    Args:
        values: by name; what is not there is shown as a comment, to be filled in.
        meanings: a sentence for each name.
        groups: headings, and the names under them.
    """
    lines: list[str] = []
    for heading, names in groups.items():
        lines += ["", f"# --- {heading} ---"]
        for name in names:
            lines += textwrap.wrap(meanings[name], 96, initial_indent="# ", subsequent_indent="# ")
            lines.append(f"{name}: {as_yaml(values[name])}" if name in values else f"# {name}:")
    return lines[1:]


def as_yaml(value: Any) -> str:
    """Format a value as YAML on one line that versions 1.1 and 1.2 read alike."""
    if isinstance(value, float):
        text = repr(value)
        if text in ("inf", "-inf", "nan"):
            return text.replace("inf", ".inf").replace("nan", ".nan")
        mantissa, e, exponent = text.partition("e")
        return text if not e or "." in mantissa else f"{mantissa}.0e{exponent}"
    if isinstance(value, str):
        plain = _PLAIN.fullmatch(value) and value.lower() not in _WORDS
        return value if plain else _quoted(value)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_quoted(k)}: {as_yaml(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(as_yaml, value)) + "]"
    return json.dumps(value)


def _quoted(text: str) -> str:
    """Quote a text in YAML, with JSON's escapes except for characters past 2^16."""
    known = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t"}
    return '"' + "".join(known.get(c) or (c if c.isprintable() else _escape(c)) for c in text) + '"'


def _escape(character: str) -> str:
    return f"\\U{ord(character):08x}"
