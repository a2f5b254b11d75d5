"""Read files of settings; format values as YAML."""

from __future__ import annotations

import io
import tomllib
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from .sandbox.redaction import redact, remember


def read_settings(path: str | Path) -> dict[str, Any]:
    """Read the settings in a file, unconverted.

    YAML is version 1.2: ``1e-6`` is a number, ``no`` is text, ``010`` is ten.

    Args:
        path: ``*.yaml``, ``*.yml``, ``*.json`` or ``*.toml``.

    Raises:
        ValueError: it cannot be read, is no mapping of settings, or repeats a name.
        OSError: it does not exist.
    """
    path = Path(path)
    kind = path.suffix.lower()
    if kind not in (".yaml", ".yml", ".json", ".toml"):
        raise ValueError(f"{str(path)!r} must end in .yaml, .yml, .json or .toml")
    if not path.is_file():
        raise FileNotFoundError(f"no such file: {str(path)!r}")
    text = path.read_text(encoding="utf-8")
    try:  # JSON is YAML 1.2, and the reader of YAML refuses repeated names
        found = tomllib.loads(text) if kind == ".toml" else YAML(typ="safe", pure=True).load(text)
    except MarkedYAMLError as error:  # its text quotes lines and values, which may be secrets
        problem = str(error.problem).partition(" with value")[0]
        place = f" (line {error.problem_mark.line + 1})" if error.problem_mark else ""
        raise ValueError(f"{str(path)!r} cannot be read: {problem}{place}") from None
    except (YAMLError, ValueError) as error:
        raise ValueError(f"{str(path)!r} cannot be read: {error}") from error
    if found is None:
        return {}
    if not isinstance(found, dict) or not all(isinstance(key, str) for key in found):
        raise ValueError(f"{str(path)!r} must hold lines 'name: value', got {redact(found)!r:.80}")
    remember(found)
    return found


def as_yaml(value: Any) -> str:
    """Format a value as YAML on one line."""
    writer = YAML(typ="safe", pure=True)
    writer.default_flow_style, writer.width, writer.allow_unicode = True, 1 << 30, False
    writer.sort_base_mapping_type_on_output = False  # type: ignore[assignment]  # typed as None
    stream = io.StringIO()
    writer.dump(value, stream)
    return stream.getvalue().removesuffix("...\n").rstrip("\n")
