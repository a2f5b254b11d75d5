"""Arguments and options that several commands take."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, Any

from typer import Argument, Option

from .sandbox.redaction import remember

EnvName = Annotated[str, Argument(help="Environment id, such as assay/GSM8K-v1, or module:id.")]
DataOption = Annotated[
    str | None, Option("--data", help="The data: a file, a folder or a hub name.")
]
SetOption = Annotated[
    list[str] | None, Option("--set", help="Environment argument, such as split=train.")
]
ByOption = Annotated[
    str | None, Option("--by", help="Metadata to group by. Default: level or difficulty.")
]


def environment_options(pairs: Sequence[str] | None, data: str | None) -> dict[str, Any]:
    """Return the arguments of an environment that ``--set`` and ``--data`` give."""
    return settings(pairs or []) | ({} if data is None else {"data": data})


def settings(pairs: Sequence[str], flag: str = "--set") -> dict[str, Any]:
    """Read ``["split=train", "seed=1"]`` as keyword arguments; values are JSON, else text.

    Raises:
        ValueError: a pair has no equals sign.
    """
    found: dict[str, Any] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise ValueError(f"{flag} takes name=value, got {pair!r}")
        try:
            found[name] = json.loads(value)
        except json.JSONDecodeError:
            found[name] = value
    remember(found)
    return found
