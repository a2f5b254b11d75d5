"""Environments by id: ``namespace/Name-vN`` names one forever, here and in Gymnasium."""

from __future__ import annotations

import difflib
import importlib
import inspect
import sys
import threading
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode

from ..verifiers.nearest import did_you_mean
from .argument_types import refuse_types
from .plugins import GROUP, Plugin, PluginWarning, import_fault, import_module, installed
from .spec import EnvSpec, refuse_id
from .text_env import TextEnv
from .vector import GroupVectorEnv

Builder = Callable[..., TextEnv]


class UnknownEnvironment(KeyError):
    """No environment has this id. The message names the nearest."""

    def __str__(self) -> str:
        return str(self.args[0])


class RetiredEnvironment(UnknownEnvironment):
    """An environment of this id is no more. The message names its successor, and why."""


_SPECS: dict[str, EnvSpec] = {}
_BUILDERS: dict[str, Builder] = {}
"""What was registered as a callable."""
_SITES: dict[str, tuple[str, int, object]] = {}
"""Where a callable was registered: file, line, and the import, which a reload repeats."""
_RETIRED: dict[str, tuple[str, str, bool]] = {}
"""By id: the successor, why, and whether it is made in the id's place."""
_IMPORTED: dict[Plugin, Plugin] = {}
"""Plug-ins that were imported, or tried: as found, and with their faults."""
_IMPORTING: list[tuple[Plugin, list[str]]] = []
"""Plug-ins that are being imported, and what is wrong with them."""
_LOCK = threading.RLock()


# -- registering -------------------------------------------------------------------------------


def register(
    id: str,  # noqa: A002  # Gymnasium's own name for it
    entry_point: str | Builder,
    *,
    kwargs: Mapping[str, Any] | None = None,
    needs: str = "nothing",
    summary: str = "",
    module: str | None = None,
) -> None:
    """Give an environment an id, here and in Gymnasium.

    An id that is taken is refused; only a notebook's cell that is run again, or a module that is
    reloaded, may register its ids again.

    Args:
        id: ``namespace/Name-vN``.
        entry_point: a callable that returns a TextEnv, or its location ``"module:name"``.
        kwargs: for the entry point, before the caller's own; plain JSON.
        needs: what must be there: data, a sandbox; for people.
        summary: one line for people.
        module: what registers the id when it is imported; the caller's, by default.

    Raises:
        ValueError: the id is not of the form ``namespace/Name-vN``, is taken or retired, or an
            argument is not plain JSON.
    """
    module = module or sys._getframe(1).f_globals.get("__name__", "")
    if module == "__mp_main__":  # a spawned child's name for the script
        module = "__main__"
    where = entry_point if isinstance(entry_point, str) else f"{module}:{id}"
    new = EnvSpec(id, where, dict(kwargs or {}), needs, summary, module)
    builder = None if isinstance(entry_point, str) else entry_point
    with _LOCK:
        site = _call_site()
        fault = _taken(new, builder, site)
        if fault and _IMPORTING:  # a plug-in's other ids are not lost for one
            _IMPORTING[-1][1].append(fault)
            return
        if fault:
            raise ValueError(fault)
        _forget(id)
        _SPECS[id] = new
        if builder is not None:
            _BUILDERS[id], _SITES[id] = builder, site
        _mirror(new.id, new.address)


def retire(
    id: str,  # noqa: A002  # Gymnasium's own name
    successor: str,
    why: str,
    *,
    substitute: bool = False,
) -> None:
    """Retire an id: asking for it names the one to take instead, and why.

    Args:
        id: the id that is no more; its ``register`` call must be gone.
        successor: the id to take instead.
        why: what was wrong with it, in a sentence.
        substitute: make the successor in place of the id, with a ``DeprecationWarning``; by
            default the id is refused.

    Raises:
        ValueError: either is not an id, both are one, or the id is registered still.
    """
    refuse_id(id)
    refuse_id(successor)
    if id == successor:
        raise ValueError(f"{id} cannot be its own successor: raise its version")
    with _LOCK:
        if id in _SPECS:
            raise ValueError(f"{id} is registered: take away what registers it, then retire it")
        if id in gym.registry and id not in _RETIRED:
            raise ValueError(_theirs(id))
        _forget(id)
        _RETIRED[id] = successor, why, substitute
        _mirror(id, id)


def _taken(new: EnvSpec, builder: Builder | None, site: tuple[str, int, object]) -> str:
    """Return why an id cannot be registered, if so."""
    if new.id in _RETIRED:
        return f"{new.id} is retired: {_RETIRED[new.id][1]} An id never comes back with other tasks"
    old = _SPECS.get(new.id)
    if old is None:
        return _theirs(new.id) if new.id in gym.registry else ""
    # A cell of a notebook has no file, and is run again and again.
    cell = new.module == "__main__" and not hasattr(sys.modules["__main__"], "__file__")
    if old.module == new.module and (cell or _repeated(new, builder, old, site)):
        return ""
    return f"{new.id} is registered already, by {old.module}: choose another name, or a new version"


def _theirs(id_: str) -> str:
    return f"{id_} is taken in Gymnasium, by {gym.registry[id_].entry_point}"


def _repeated(
    new: EnvSpec, builder: Builder | None, old: EnvSpec, site: tuple[str, int, object]
) -> bool:
    """Return whether the same piece of code registers an id again."""
    name = getattr(builder, "__qualname__", "<lambda>")
    if builder is None or name.endswith("<lambda>"):
        return builder is None and new == old
    file, line, run = _SITES.get(new.id, site)
    if (file, line) != site[:2] and run is site[2]:
        return False
    return name == getattr(_BUILDERS.get(new.id), "__qualname__", "")


def _call_site() -> tuple[str, int, object]:
    """Return the file, the line and the import of the code that registers an id."""
    frame = sys._getframe(2)
    while frame.f_back and frame.f_globals.get("__name__") == "assay.envs.define":
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno, frame.f_globals.get("__spec__")


def _mirror(id_: str, address: str) -> None:
    gym.register(
        id_,
        entry_point="assay.envs.registry:_make_for_gymnasium",
        vector_entry_point="assay.envs.registry:_make_vec_for_gymnasium",
        kwargs={"env_id": address},
    )


def _forget(id_: str) -> None:
    for known in (_SPECS, _BUILDERS, _SITES, _RETIRED, gym.registry):
        known.pop(id_, None)


# -- plug-ins ----------------------------------------------------------------------------------


def plugins() -> list[Plugin]:
    """Return the installed plugins, imported, each with its error.

    This also puts their environments into Gymnasium's registry.
    """
    _import_plugins()
    with _LOCK:
        return [_IMPORTED.get(plugin, plugin) for plugin in installed()]


def _import_plugins(namespace: str | None = None) -> None:
    """Import the plug-ins of a namespace, or all; a broken one costs only itself."""
    for plugin in installed():
        if namespace in (None, plugin.namespace):
            with _LOCK:
                if plugin not in _IMPORTED:
                    _import_plugin(plugin)


def _import_plugin(plugin: Plugin) -> None:
    _IMPORTED[plugin] = plugin  # before it is imported: what it imports may ask for a listing
    before, faults = set(_SPECS), list[str]()
    _IMPORTING.append((plugin, faults))
    try:
        broken = import_fault(plugin)
    except BaseException:  # an interrupt, such as Ctrl-C: it is tried again when asked for
        del _IMPORTED[plugin]
        raise
    finally:
        _IMPORTING.pop()
    new = [_SPECS[id_] for id_ in set(_SPECS) - before]
    if broken:
        for half in (s for s in new if not _imported(s.module)):  # half of a plug-in is none
            _forget(half.id)
        faults[:] = [f"it cannot be imported: {broken}"]
    else:
        faults += _strays(plugin, new)
    _IMPORTED[plugin] = replace(plugin, faults=tuple(faults))
    for fault in faults:
        warnings.warn(f"{plugin}: {fault}", PluginWarning, stacklevel=2)


def _imported(module: str) -> bool:
    """Return whether a module and its packages are imported; a failed import is not."""
    parts = module.split(".")
    return all(".".join(parts[: i + 1]) in sys.modules for i in range(len(parts)))


def _strays(plugin: Plugin, new: list[EnvSpec]) -> list[str]:
    """Return ids outside the plugin's namespace, which could not be found by it."""
    named = {p.namespace for p in installed() if p.root == plugin.root}
    strays = {s.namespace for s in new if s.module.partition(".")[0] == plugin.root} - named
    return [
        f"its ids under {namespace!r} are found only after a listing: give it an entry point of "
        f"that name in the group {GROUP!r} as well"
        for namespace in sorted(strays)
    ]


# -- finding -----------------------------------------------------------------------------------


def specs() -> list[EnvSpec]:
    """Return every registered environment and those of all plugins, by id."""
    _import_plugins()
    return [_SPECS[i] for i in sorted(_SPECS)]


def spec(id: str) -> EnvSpec:  # noqa: A002  # Gymnasium's own name for it
    """Return the environment with this id.

    Args:
        id: ``namespace/Name-vN``; ``module:namespace/Name-vN`` imports the module first. Without
            a version it is the latest one, with a warning.

    Raises:
        UnknownEnvironment: there is none; the message names the nearest.
        RetiredEnvironment: it is retired, without a substitute; the message names its successor.
        ImportError: there is no such module.
    """
    if not isinstance(id, str):
        raise UnknownEnvironment(f"an id is text, like 'namespace/Name-v0', got {id!r:.80}")
    module, _, bare = id.rpartition(":")
    if module and bare not in _SPECS:
        import_module(module)
    if bare not in _SPECS and "/" in bare:
        _import_plugins(bare.partition("/")[0])
    if bare in _SPECS:
        return _SPECS[bare]
    versions = {s.version: s for s in _SPECS.values() if s.versionless == bare}
    latest = versions[max(versions)] if versions else None
    gone = [i for i in _RETIRED if i == bare or (not latest and i.rpartition("-v")[0] == bare)]
    if gone:
        successor, why, substitute = _RETIRED[gone[-1]]
        message = f"{gone[-1]} is retired: {why} Take {successor} instead"
        if not substitute:
            raise RetiredEnvironment(message)
        warnings.warn(f"{message}, which is made here", DeprecationWarning, stacklevel=3)
        return spec(successor)
    if latest is None:
        raise UnknownEnvironment(_unknown(bare, module))
    warnings.warn(
        f"{bare!r} has no version, so it is {latest.id}, the latest: write that, since what an "
        "id with a version asks and pays for stays the same",
        UserWarning,
        stacklevel=3,
    )
    return latest


def _unknown(id_: str, module: str) -> str:
    """Return the error message for an unknown id."""
    if module == "__main__":
        return (
            f"{id_} was registered by the script or notebook of another process (__main__) and is "
            "not known in this one: put it into a module of its own, and import that"
        )
    if module:
        own = [known for known, found in _SPECS.items() if found.module == module]
        return f"{module} registers no environment {id_!r}. {did_you_mean(id_, own)}".rstrip()
    faults = [
        f" {plugin}: {fault}."
        for plugin in _IMPORTED.values()
        for fault in plugin.faults
        if plugin.namespace == id_.partition("/")[0]
    ]
    by_name = {known.partition("/")[2].lower(): known for known in _SPECS}
    wanted = id_.partition("/")[2].lower() or id_.lower()
    near = difflib.get_close_matches(wanted, by_name, n=3, cutoff=0.4)
    hint = f" Did you mean {' or '.join(by_name[n] for n in near)}?" if near else ""
    known = "" if near else " `assay list` lists them."
    unopened = {p.namespace for p in installed() if p not in _IMPORTED}
    others = f" Plug-ins have more, under {', '.join(sorted(unopened))}." if unopened else ""
    return f"no environment is called {id_!r}.{hint}{known}{others}{''.join(faults)}"


# -- making ------------------------------------------------------------------------------------


def arguments(id: str | EnvSpec) -> list[str]:  # noqa: A002  # Gymnasium's own name for it
    """Return the names of the arguments that an environment takes.

    Raises:
        UnknownEnvironment: there is no such id.
    """
    found = id if isinstance(id, EnvSpec) else spec(id)
    return list(inspect.signature(_builder(found)).parameters)


def make(id: str | EnvSpec, **kwargs: Any) -> TextEnv:  # noqa: A002  # Gymnasium's own name for it
    """Make an environment.

    Args:
        id: a registered id, as for :func:`spec`; or a record, registered or not.
        kwargs: the environment's own: ``data``, ``split``, ``seed``, ...

    Raises:
        UnknownEnvironment: there is no such id.
        ValueError: the environment takes no such argument, or refuses its value.
        TypeError: what its entry point returns is no TextEnv.
    """
    found = id if isinstance(id, EnvSpec) else spec(id)
    builder = _builder(found)
    # Seeds hash their JSON, which has no NumPy numbers.
    kwargs = {k: v.item() if isinstance(v, np.generic) else v for k, v in kwargs.items()}
    given = {**found.kwargs, **kwargs}
    parameters = inspect.signature(builder).parameters
    unknown = set(given) - set(parameters)
    if unknown and all(p.kind is not p.VAR_KEYWORD for p in parameters.values()):
        raise ValueError(f"{found.id} takes no {min(unknown)!r}; it takes {', '.join(parameters)}")
    refuse_types(found.id, builder, kwargs)
    env = builder(**given)
    if not isinstance(env, TextEnv):
        raise TypeError(f"{found.id}: its entry point must return a TextEnv, got {env!r:.80}")
    env.name = found.id
    return env


def _builder(found: EnvSpec) -> Builder:
    module, _, name = found.entry_point.partition(":")
    if "/" in name:  # what a module registered as a callable
        known = spec(found.entry_point)
        if name in _BUILDERS:
            return _BUILDERS[name]
        if known.entry_point == found.entry_point:
            raise UnknownEnvironment(_unknown(name, module))
        return _builder(known)
    builder: Builder = getattr(importlib.import_module(module), name)
    return builder


def make_group(
    id: str | EnvSpec,  # noqa: A002  # Gymnasium's own name for it
    *,
    prompts: int,
    group_size: int,
    autoreset_mode: AutoresetMode | str = AutoresetMode.DISABLED,
    **kwargs: Any,
) -> GroupVectorEnv:
    """Make P prompts times G copies of an environment."""
    return GroupVectorEnv(
        make(id, **kwargs),
        num_envs=prompts * group_size,
        group_size=group_size,
        autoreset_mode=autoreset_mode,
    )


def _make_for_gymnasium(env_id: str, **kwargs: Any) -> TextEnv:
    return make(env_id, **kwargs)


def _make_vec_for_gymnasium(
    env_id: str,
    num_envs: int = 1,
    group_size: int = 1,
    autoreset_mode: AutoresetMode | str = AutoresetMode.DISABLED,
    max_episode_steps: int | None = None,
    **kwargs: Any,
) -> GroupVectorEnv:
    return GroupVectorEnv(
        make(env_id, **kwargs),
        num_envs=num_envs,
        group_size=group_size,
        autoreset_mode=autoreset_mode,
        max_episode_steps=max_episode_steps,
    )
