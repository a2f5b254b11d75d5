"""Short hashes: whether two runs are about the same thing."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from typing import Any

from ..envs import Task


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
