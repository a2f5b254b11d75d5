"""``assay new``: write an installable package with an environment."""

from __future__ import annotations

import importlib.util
import keyword
import os
import re
import tempfile
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Annotated

from typer import Argument, Option

from .console import say

_NAME = re.compile(r"[a-z][a-z0-9]*([-_][a-z0-9]+)*")


def new_command(
    name: Annotated[
        str, Argument(help="Name of the package: lower-case letters, digits, - and _.")
    ],
    folder: Annotated[Path, Option("--out", "-o", "--dir", help="Its parent folder.")] = Path(),
) -> None:
    """Write an installable package: an environment and its test."""
    made = write_package(name, folder)
    say(
        f"{made}: the environment {_id(name)}\n"
        f"  pip install -e {made}\n"
        f"  pytest {made}\n"
        "  assay list"
    )


def write_package(name: str, folder: Path) -> Path:
    """Write the package's folder atomically.

    Args:
        name: of the package, of its folder and, with ``_`` for ``-``, of its module.
        folder: what to put it into; it is made if it is missing.

    Returns:
        The package's folder.

    Raises:
        ValueError: the name cannot be one, or is taken.
        OSError: the folder cannot be written to.
    """
    _refuse_name(name)
    target = folder / name
    if target.exists():
        raise ValueError(f"{target} exists: choose another name, or another --dir")
    _refuse_module(name)
    folder.mkdir(parents=True, exist_ok=True)
    slots = {"name": name, "module": _module(name), "id": _id(name)}
    with tempfile.TemporaryDirectory(prefix=f".{name}-", dir=folder) as scratch:
        package = Path(scratch) / name
        for source, place in _FILES.items():
            path = package / Template(place).substitute(slots)
            path.parent.mkdir(parents=True, exist_ok=True)
            text = (files(__package__) / "template" / source).read_text(encoding="utf-8")
            path.write_text(Template(text).substitute(slots), encoding="utf-8")
        try:
            os.rename(package, target)
        except OSError as error:  # somebody was quicker
            raise ValueError(f"cannot write {target}: {error.strerror}") from error
    return target


_FILES = {
    "pyproject.toml.txt": "pyproject.toml",
    "README.md.txt": "README.md",
    "module.py.txt": "$module.py",
    "test_module.py.txt": "tests/test_$module.py",
}
"""By file of the template: its place in the package."""


def _module(name: str) -> str:
    return name.replace("-", "_")


def _id(name: str) -> str:
    return f"{_module(name)}/Halves-v0"


def _refuse_name(name: str) -> None:
    if not _NAME.fullmatch(name) or keyword.iskeyword(_module(name)):
        raise ValueError(
            "a package's name is made of small letters and digits, with single '-' or '_' between "
            f"them, begins with a letter and is no word of Python's; got {name!r}"
        )


def _refuse_module(name: str) -> None:
    """Refuse a name whose module would hide another one, or be hidden by it."""
    found = importlib.util.find_spec(_module(name))
    if found is not None:
        where = found.origin or "a folder on the path"
        raise ValueError(
            f"{name!r} would be imported as {_module(name)}, which there is already ({where}): "
            "choose another name"
        )
