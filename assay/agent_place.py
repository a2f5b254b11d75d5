"""Where the programs of ``--agent`` run: in the sandbox, or as processes of this machine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

from .sandbox import Sandbox, SessionLimits

Backend = Literal["docker", "bwrap"]


@contextmanager
def agent_place(
    *, unsafe: bool, backend: Backend | None, image: str | None, memory_mib: int, file: str | None
) -> Iterator[dict[str, Any]]:
    """Yield the arguments of AgentEnv that say where; close the sandbox.

    Raises:
        ValueError: ``unsafe`` is set beside an option of the sandbox.
    """
    files = () if file is None else (file,)
    limits = SessionLimits(memory_mib=memory_mib)
    if not unsafe:
        with Sandbox(backend=backend) as box:
            yield {"sandbox": box, "image": image, "limits": limits, "files": files}
        return
    if backend or image or limits != SessionLimits():
        raise ValueError("the sandbox's backend, image and memory have no effect with unsafe_agent")
    yield {"unsafe": True, "files": files}
