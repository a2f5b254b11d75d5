"""The agent's process: it imports the agent's modules for the tests, and knows no answers.

Harbor tasks send it to a container with the rest of the guest; slots do without.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import json
import os
import sys
import types
from typing import Any

from .candidate import answer_requests, encoded
from .channel import Peer
from .wire import LIBRARIES


def main(socket: int, libraries: list[str]) -> None:
    """Do what the tests' process asks for, until it closes the socket."""
    LIBRARIES.update(libraries)
    peer = Peer(socket, None)

    def find(keys: list[str]) -> dict[str, Any]:
        return {name: value for key in keys for name, value in _find(peer, key).items()}

    peer.find = find
    answer_requests(peer)


def _find(peer: Peer, key: str) -> dict[str, Any]:
    attribute, _, rest = key.partition("\n")
    if not rest:
        return {}
    if not attribute:  # where the tests are now
        folder, variables = json.loads(rest)
        with contextlib.suppress(OSError):  # it may be theirs alone
            os.chdir(folder)
        os.environ.clear()
        os.environ.update(variables)
        return {}
    name, file, path = json.loads(rest)
    sys.path[:] = path
    try:
        module = sys.modules.get(name) or _load(name, file)
    except BaseException as error:
        return {"!": f"{type(error).__name__}: {error}"[:500]}
    if attribute == "*":
        public = [n for n in vars(module) if not n.startswith("_")]
        return {key: list(getattr(module, "__all__", public))}
    try:
        return {key: encoded(peer, getattr(module, attribute))}
    except AttributeError:
        return {}


def _load(name: str, file: str) -> types.ModuleType:
    if not file:
        return importlib.import_module(name)
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise ImportError(f"{file} is no Python module")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module
