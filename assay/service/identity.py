"""Identity of a served environment: servers with equal hashes have equal tasks and scores."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any

from ..envs import Generated, Rows, Task, TextEnv
from ..envs.mixed import Mixed
from ..sandbox.redaction import redact

PROTOCOL = 1
"""Version of the messages; client and server must agree."""

HEADER = "assay-serves"
"""Header with the hash that a client expects; the server refuses another one."""

_TASKS = 2000
_MADE = 16
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")


def identity(env: TextEnv) -> str:
    """Hash an environment's tasks, verifiers and version, as 16 hexadecimal digits.

    The hash covers every id of rows and the content of up to 2,000; the first 16 tasks of a
    generator; only the type and size of other sources.
    """
    from .. import __version__

    group = None if env.group_rubric is None else _of_itself(env.group_rubric)
    whole = {
        "version": __version__,
        "environment": [type(env).__qualname__, env.name, env.max_turns],
        "rubric": _of_itself(env.rubric),
        "group_rubric": group,
        "source": [type(env.source).__qualname__, env.source.size],
        "tasks": [task.to_json() for task in _some(env)],
    }
    if isinstance(env.source, Rows):
        whole["ids"] = list(env.source.index)
    text = json.dumps(whole, sort_keys=True, default=lambda value: type(value).__qualname__)
    return hashlib.sha256(_ADDRESS.sub("", text).encode()).hexdigest()[:16]


def _of_itself(rubric: Any) -> Any:
    try:
        return redact(rubric.to_json())
    except Exception:  # a user's rubric without serialisable options
        return type(rubric).__qualname__


def _some(env: TextEnv) -> list[Task]:
    source = env.source
    if isinstance(source, Rows):
        return source.tasks[:: -(-len(source.tasks) // _TASKS)]
    if not isinstance(source, Generated | Mixed):  # making a task may have side effects
        return []
    size = _MADE if source.size is None else min(_MADE, source.size)
    return [source.task(index) for index in range(size)]
