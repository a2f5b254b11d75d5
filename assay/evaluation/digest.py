"""Short hashes of tasks and of source code: whether two runs are about the same thing.

A corrected verifier is another one, even under the same name.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import inspect
import json
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from ..envs import Task

_PACKAGE = __name__.partition(".")[0]
_ROOMS = {"verifiers": ("sandbox", "verifiers"), "envs": ("envs",), "grpo": ("grpo",)}
_FOREIGN = frozenset({*sys.stdlib_module_names, "gymnasium", "numpy", "torch"})
"""Their versions are known, or they are none of ours."""
_SOURCE = frozenset({".py", ".toml"})
"""A package's data, which may be large, is hashed as tasks."""


def digest(value: Any) -> str:
    """Return the first 16 hexadecimal digits of the SHA-256 of a JSON value with sorted keys."""
    text = json.dumps(value, sort_keys=True, default=lasting_repr)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def digest_tasks(tasks: Sequence[Task]) -> str:
    """Hash tasks in order: prompts, references, ids, metadata and solutions."""
    whole = hashlib.sha256()
    for task in tasks:
        whole.update(
            json.dumps(task.to_json(), sort_keys=True, default=lasting_repr).encode() + b"\n"
        )
    return whole.hexdigest()[:16]


def lasting_repr(value: Any) -> str:
    """Represent what JSON cannot hold, without its memory address, which differs by process."""
    return re.sub(r" at 0x[0-9a-fA-F]+", "", repr(value))


def code_digest(things: Iterable[Any]) -> str:
    """Hash the source of the modules that define the given things.

    Of a module in a package, all files of the package count; of Assay's own, those of its room.
    What was typed into a console has no file, and counts by its name alone.

    Args:
        things: classes (with those they derive from), functions, objects, and names of modules.

    Returns:
        The first 16 hexadecimal digits of a SHA-256.
    """
    names = sorted({name for thing in things for name in _modules(thing)})
    whole = hashlib.sha256()
    for root in dict.fromkeys(root for name in names for root in _roots(name)):
        for file in _files(root):
            place = file.name if file == root else file.relative_to(root).as_posix()
            whole.update(f"{place}\0{hashlib.sha256(file.read_bytes()).hexdigest()}\n".encode())
    return whole.hexdigest()[:16]


def _modules(thing: Any) -> Iterator[str]:
    """Yield the names of the modules that define a thing."""
    while isinstance(thing, functools.partial):
        thing = thing.func
    if isinstance(thing, str):
        found: tuple[Any, ...] = (thing,)
    elif inspect.isroutine(thing):
        found = (getattr(inspect.unwrap(thing), "__module__", None),)
    else:
        kind = thing if inspect.isclass(thing) else type(thing)
        found = tuple(base.__module__ for base in kind.__mro__)
    yield from (name for name in found if name and name.partition(".")[0] not in _FOREIGN)


def _roots(name: str) -> list[Path]:
    """Return the file of a module, the folder of a package, or the folders of this package."""
    top, _, rest = name.partition(".")
    if top == _PACKAGE:
        rooms = _ROOMS.get(rest.partition(".")[0], ())
        return [Path(folder) for room in rooms for folder in _found(f"{top}.{room}")]
    return [Path(place) for place in _found(top)]


def _found(module: str) -> list[str]:
    made = sys.modules.get(module)
    spec = getattr(made, "__spec__", None)
    if made is not None and spec is None:  # __main__ of a script
        return [file] if (file := getattr(made, "__file__", None)) else []
    try:
        spec = spec or importlib.util.find_spec(module)
    except (ImportError, ValueError):
        return []
    if spec is None:
        return []
    if spec.submodule_search_locations is not None:
        return [str(folder) for folder in spec.submodule_search_locations]
    return [spec.origin] if spec.has_location and spec.origin else []


def _files(root: Path) -> list[Path]:
    if root.is_file():
        return [root]
    return sorted(
        file
        for file in root.rglob("*")
        if file.suffix in _SOURCE
        and file.is_file()
        and not any(part.startswith(".") for part in file.relative_to(root).parts)
    )
