"""Other packages' environments: found by their metadata, imported when one is asked for.

A package names itself in its ``pyproject.toml``; the key is the namespace of its ids, the value
the module that registers them::

    [project.entry-points."assay.envs"]
    capitals = "capitals.tasks"
"""

from __future__ import annotations

import importlib
import importlib.metadata
import re
import traceback
from dataclasses import dataclass
from types import ModuleType

GROUP = "assay.envs"


class PluginWarning(UserWarning):
    """A plug-in is left out, or in part. The message names it, and why."""


@dataclass(frozen=True, slots=True)
class Plugin:
    """An installed package that brings environments.

    Attributes:
        namespace: what its ids begin with.
        module: what registers them when it is imported.
        package: the name and version it is installed by.
        faults: what is wrong with it, one line each; known when it has been imported.
    """

    namespace: str
    module: str
    package: str
    faults: tuple[str, ...] = ()

    @property
    def root(self) -> str:
        """The top-level package that its module is in."""
        return self.module.partition(".")[0]

    def __str__(self) -> str:
        return f"plug-in {self.namespace!r} of {self.package} ({self.module})"


def installed() -> list[Plugin]:
    """Return the installed plugins by namespace, without importing any."""
    found = {
        Plugin(entry.name, re.split(r"[:\[]", entry.value)[0].strip(), _package(entry.dist))
        for entry in importlib.metadata.entry_points(group=GROUP)
    }
    return sorted(found, key=lambda p: (p.namespace, p.package, p.module))


def import_fault(plugin: Plugin) -> str:
    """Import a plugin; return the error, or the empty text."""
    try:
        importlib.import_module(plugin.module)
    except (Exception, SystemExit) as error:  # whatever it is, it is not this program's end
        return _said(error)
    return ""


def import_module(name: str) -> ModuleType:
    """Import a user's module.

    Raises:
        ModuleNotFoundError: there is no such module.
        ImportError: it raises; the message says what, and where.
    """
    try:
        return importlib.import_module(name)
    except (Exception, SystemExit) as error:
        missing = error.name if isinstance(error, ModuleNotFoundError) else None
        if missing and f"{name}.".startswith(f"{missing}."):
            raise
        raise ImportError(f"{name} cannot be imported: {_said(error)}") from error


def _said(error: BaseException) -> str:
    """Return an error's first line, and the last line of third-party code in its traceback."""
    said = f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"
    frames = [f for f in traceback.extract_tb(error.__traceback__)[2:] if f.filename[:1] != "<"]
    if not frames or isinstance(error, SyntaxError):  # which names its line itself
        return said
    return f"{said} ({frames[-1].filename}, line {frames[-1].lineno})"


def _package(dist: importlib.metadata.Distribution | None) -> str:
    return "a package without a name" if dist is None else f"{dist.name} {dist.version}"
