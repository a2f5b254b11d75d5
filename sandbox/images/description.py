"""What an image holds: a small TOML file, shipped in ``images/`` or a user's own."""

from __future__ import annotations

import importlib.resources
import re
import sys
import tomllib
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

PINNED = "python:3.12-slim@sha256:78387bc3881b8273120a12ebe6c1ab22b018ccc2c9adf565ae1ac9b536e184ea"
"""What is pulled where a registry answers: the same Python on every machine."""

_RULES = {  # everything here goes into a Dockerfile
    "name": (r"[a-z0-9]+([._-][a-z0-9]+)*", "lower-case letters, digits, '.', '_' and '-'"),
    "base": (r"([\w./:-]+@)?sha256:[0-9a-f]{64}", "an image by its digest: name@sha256:..."),
    "pip": (r"[A-Za-z0-9][A-Za-z0-9._-]*(==[A-Za-z0-9.!+]+)?", "NAME or NAME==VERSION"),
    "system": (r"[a-z0-9][a-z0-9+.-]+", "names of Debian packages"),
    "preload": (r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", "names of modules"),
}


@dataclass(frozen=True, slots=True)
class ImageDescription:
    """What to put into an image of programs.

    Attributes:
        name: names the image too, see :attr:`tag`.
        base: the image to start from where a registry answers, by its digest; it needs Python
            3.11 or later as ``python3``. Without a registry this machine's Python takes its place.
        pip: Python packages, ``NAME`` or ``NAME==VERSION``.
        system: Debian packages.
        preload: modules that every slot of the image imports once.

    Raises:
        ValueError: a field is not of its form.
    """

    name: str
    base: str = PINNED
    pip: tuple[str, ...] = ()
    system: tuple[str, ...] = ()
    preload: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for field, (pattern, rule) in _RULES.items():
            value = getattr(self, field)
            for item in (value,) if isinstance(value, str) else value:
                if not isinstance(item, str) or not re.fullmatch(pattern, item, re.ASCII):
                    raise ValueError(f"{field} must be {rule}, got {item!r}")

    @property
    def tag(self) -> str:
        """What ``assay sandbox build`` calls the image."""
        return f"assay-{self.name}:{sys.version_info.major}.{sys.version_info.minor}"


def shipped_images() -> list[str]:
    """Return the names of the descriptions that come with the package."""
    folder = importlib.resources.files(__package__)
    return sorted(
        f.name.removesuffix(".toml") for f in folder.iterdir() if f.name.endswith(".toml")
    )


def describe(name: str) -> ImageDescription:
    """Return the description of this name, or the one in this file.

    Raises:
        ValueError: there is none, or it is not one.
    """
    if name in shipped_images():
        file = importlib.resources.files(__package__) / f"{name}.toml"
        return _read(file.read_text("utf-8"), name)
    path = Path(name)
    if path.suffix != ".toml" or not path.is_file():
        known = ", ".join(shipped_images())
        raise ValueError(f"no image {name!r}: give one of {known}, or a .toml file that there is")
    try:
        return _read(path.read_text("utf-8"), name)
    except UnicodeDecodeError as error:
        raise ValueError(f"{name} is not UTF-8 text: {error}") from error


def _read(text: str, origin: str) -> ImageDescription:
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{origin} is not TOML: {error}") from error
    known = [field.name for field in fields(ImageDescription)]
    unknown = [key for key in found if key not in known]
    if unknown:
        raise ValueError(
            f"{origin} has the unknown key {unknown[0]!r}: there are {', '.join(known)}"
        )
    for key, value in found.items():
        kind = str if key in ("name", "base") else list
        if not isinstance(value, kind):
            raise ValueError(f"{origin}: {key} must be a {kind.__name__}, got {value!r}")
    if "name" not in found:
        raise ValueError(f"{origin} lacks a name")
    arguments: dict[str, Any] = {
        k: tuple(v) if isinstance(v, list) else v for k, v in found.items()
    }
    return ImageDescription(**arguments)
