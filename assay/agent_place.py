"""The programs of ``--agent``, in the sandbox or as processes of this machine."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

from .envs import TextEnv
from .extras import needing
from .sandbox import Sandbox, SessionLimits

if TYPE_CHECKING:
    from .gateway import AgentEnv

Backend = Literal["docker", "bwrap"]


@contextmanager
def agent_env(
    env: TextEnv,
    command: str,
    *,
    unsafe: bool,
    backend: Backend | None,
    image: str | None,
    memory_mib: int,
    file: str | None,
    **settings: Any,
) -> Iterator[AgentEnv]:
    """Yield an environment's tasks as a program plays them; close the sandbox.

    Raises:
        ValueError: ``unsafe`` is set beside an option of the sandbox.
    """
    with needing("--agent", "serve,train"):
        from .gateway import AgentEnv
    words, limits = shlex.split(command), SessionLimits(memory_mib=memory_mib)
    settings["files"] = () if file is None else (file,)
    if not unsafe:
        with Sandbox(backend=backend) as sandbox:
            yield AgentEnv(env, words, sandbox=sandbox, image=image, limits=limits, **settings)
        return
    if backend or image or limits != SessionLimits():
        raise ValueError("the sandbox's backend, image and memory have no effect with unsafe_agent")
    yield AgentEnv(env, words, unsafe=True, **settings)
