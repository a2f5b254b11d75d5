"""Environments by id: ``namespace/Name-vN`` names one forever."""

from __future__ import annotations

import difflib
import importlib
import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode

from ..verifiers import FunctionVerifier, Verdict, Verifier
from .argument_types import refuse_types
from .group_vector import GroupVectorEnv
from .source import Generated, Split
from .task import Task
from .text_env import TextEnv

_ID = re.compile(r"[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+-v[0-9]+")


class UnknownEnvironment(KeyError):
    """No environment has this id. The message names the nearest."""

    def __str__(self) -> str:
        return str(self.args[0])


@dataclass(frozen=True, slots=True)
class EnvSpec:
    """How to make one environment.

    Attributes:
        id: ``namespace/Name-vN``. What an id pays for never changes: a change is a new N.
        entry_point: a callable that returns a TextEnv, or where it is: ``"module:name"``.
        kwargs: given to the entry point, before the caller's own.
        needs: what must be there: data, a sandbox; for people.
        summary: one line for people.
    """

    id: str
    entry_point: str | Callable[..., TextEnv]
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    needs: str = "nothing"
    summary: str = ""


_SPECS: dict[str, EnvSpec] = {}


def register(
    id: str,  # noqa: A002  # Gymnasium's own name for it
    entry_point: str | Callable[..., TextEnv],
    *,
    kwargs: Mapping[str, Any] | None = None,
    needs: str = "nothing",
    summary: str = "",
) -> None:
    """Give an environment an id, here and in Gymnasium.

    Raises:
        ValueError: the id is not of the form ``namespace/Name-vN``, or is taken.
    """
    if not _ID.fullmatch(id):
        raise ValueError(f"an id must look like 'namespace/Name-v0', got {id!r}")
    if id in _SPECS:
        raise ValueError(f"{id} is registered already: choose another name, or raise its version")
    _SPECS[id] = EnvSpec(id, entry_point, dict(kwargs or {}), needs, summary)
    gym.register(
        id,
        entry_point="assay.envs.registry:_make_for_gymnasium",
        vector_entry_point="assay.envs.registry:_make_vec_for_gymnasium",
        kwargs={"env_id": id},
    )


def environment(
    id: str,  # noqa: A002  # Gymnasium's own name for it
    *,
    rubric: Verifier | Callable[[str, Any], Verdict | float],
) -> Callable[[Callable[[np.random.Generator], Task]], Callable[[np.random.Generator], Task]]:
    """Register a function that makes one task from a random generator.

    The environment takes ``split`` (``"train"`` or ``"test"``) and ``seed``.

    Args:
        id: ``namespace/Name-vN``.
        rubric: a Rubric, one verifier, or a function of reply and reference.

    Example:
        >>> @environment("doctest/Double-v0", rubric=lambda reply, answer: reply == answer)
        ... def double(rng):
        ...     n = int(rng.integers(100, 1000))
        ...     return Task(f"2 * {n} =", reference=str(2 * n))
        >>> env = make("doctest/Double-v0", split="test")
        >>> question, info = env.reset(seed=0)
        >>> env.step(env.task(0).reference)[2]
        True
    """
    judge = rubric if isinstance(rubric, Verifier) else FunctionVerifier(rubric)

    def decorate(
        make_task: Callable[[np.random.Generator], Task],
    ) -> Callable[[np.random.Generator], Task]:
        def build(split: Split = "train", seed: int = 0, render_mode: str | None = None) -> TextEnv:
            source = Generated(make_task, name=id, split=split, seed=seed)
            return TextEnv(source, judge, name=id, render_mode=render_mode)

        summary = (make_task.__doc__ or "").strip().partition("\n")[0]
        register(id, build, summary=summary)
        return make_task

    return decorate


def specs() -> list[EnvSpec]:
    """Every registered environment, by id."""
    return [_SPECS[i] for i in sorted(_SPECS)]


def spec(id: str) -> EnvSpec:  # noqa: A002  # Gymnasium's own name for it
    """The environment with this id.

    Raises:
        UnknownEnvironment: there is none; the message names the nearest.
    """
    if id in _SPECS:
        return _SPECS[id]
    by_name = {known.partition("/")[2].lower(): known for known in _SPECS}
    wanted = id.partition("/")[2].lower() or id.lower()
    near = difflib.get_close_matches(wanted, by_name, n=3, cutoff=0.4)
    hint = f"Did you mean {' or '.join(by_name[n] for n in near)}?" if near else ""
    known = "" if near else f"Known: {', '.join(sorted(_SPECS))}."
    raise UnknownEnvironment(f"no environment is called {id!r}. {hint}{known}")


def arguments(id: str) -> list[str]:  # noqa: A002  # Gymnasium's own name for it
    """Names of the arguments that an environment takes.

    Raises:
        UnknownEnvironment: there is no such id.
    """
    return list(inspect.signature(_builder(spec(id))).parameters)


def make(id: str, **kwargs: Any) -> TextEnv:  # noqa: A002  # Gymnasium's own name for it
    """Make an environment.

    Args:
        id: a registered id.
        kwargs: the environment's own: ``data``, ``split``, ``seed``, ...

    Raises:
        UnknownEnvironment: there is no such id.
        ValueError: the environment takes no such argument, or refuses its value.
    """
    found, takes = spec(id), arguments(id)
    unknown = set(kwargs) - set(takes)
    if unknown:
        raise ValueError(f"{id} takes no {min(unknown)!r}; it takes {', '.join(takes)}")
    refuse_types(id, _builder(found), kwargs)
    env = _builder(found)(**{**found.kwargs, **kwargs})
    env.name = id
    return env


def _builder(found: EnvSpec) -> Callable[..., TextEnv]:
    if not isinstance(found.entry_point, str):
        return found.entry_point
    module, _, name = found.entry_point.partition(":")
    builder: Callable[..., TextEnv] = getattr(importlib.import_module(module), name)
    return builder


def make_group(
    id: str,  # noqa: A002  # Gymnasium's own name for it
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
