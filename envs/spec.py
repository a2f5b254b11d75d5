"""A serialisable record that makes an environment."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from ..sandbox.redaction import redact, redacted_repr

# Gymnasium's own, but for the namespace and the version, which an id of ours always has.
_ID = re.compile(r"(?P<namespace>[A-Za-z0-9_-]+)/(?P<name>[A-Za-z0-9_.-]+)-v(?P<n>0|[1-9][0-9]*)")


@dataclass(frozen=True, slots=True)
class EnvSpec:
    """A serialisable record that makes one environment.

    Attributes:
        id: ``namespace/Name-vN``. What an id pays for never changes: a change is a new N.
        entry_point: where what makes it is: ``"module:name"``; or ``"module:id"`` for what a
            module registers by this id.
        kwargs: given to the entry point, before the caller's own; plain JSON.
        needs: what must be there: data, a sandbox; for people.
        summary: one line for people.
        module: what registers the id when it is imported; empty if nothing does.

    Raises:
        ValueError: the id, the entry point or an argument is not of that form.
    """

    id: str
    entry_point: str
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    needs: str = "nothing"
    summary: str = ""
    module: str = ""

    def __post_init__(self) -> None:
        refuse_id(self.id)
        if not isinstance(self.entry_point, str) or ":" not in self.entry_point:
            raise ValueError(
                f"{self.id}: an entry point must be text like 'module:name', got "
                f"{self.entry_point!r:.80}. Give a callable to register() instead"
            )
        for name in ("needs", "summary", "module"):
            if not isinstance(getattr(self, name), str):
                raise ValueError(f"{self.id}: {name} must be text, got {getattr(self, name)!r:.80}")
        object.__setattr__(self, "kwargs", plain_kwargs(self.id, self.kwargs))

    __repr__ = redacted_repr

    @property
    def namespace(self) -> str:
        """The part before the slash."""
        return self.id.partition("/")[0]

    @property
    def versionless(self) -> str:
        """The id without its version."""
        return self.id.rpartition("-v")[0]

    @property
    def version(self) -> int:
        """N of ``-vN``."""
        return int(self.id.rpartition("-v")[2])

    @property
    def address(self) -> str:
        """The id with the module to import for it: ``module:id`` resolves in any process."""
        everywhere = not self.module or self.module.split(".")[:2] == ["assay", "envs"]
        return self.id if everywhere else f"{self.module}:{self.id}"

    def to_json(self) -> dict[str, Any]:
        """Return a dict of plain JSON values.

        Raises:
            ValueError: the id was registered by a script or a notebook, so that no other process
                could make it.
        """
        if self.entry_point.startswith("__main__:"):
            raise ValueError(
                f"{self.id} is made by a script or a notebook (module __main__), which no other "
                "process can import: put it into a module of its own and import that"
            )
        return asdict(self)

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> Self:
        """Invert :meth:`to_json`, without importing anything yet.

        Raises:
            ValueError: a field is missing, unknown, or not of its form.
        """
        try:
            return cls(**row)
        except TypeError as error:
            raise ValueError(f"not an environment's record: {error}") from error


def refuse_id(id: str) -> None:  # noqa: A002  # Gymnasium's own name for it
    """Refuse what is no id.

    Raises:
        ValueError: it is not of the form ``namespace/Name-vN``.
    """
    if not isinstance(id, str) or not _ID.fullmatch(id):
        raise ValueError(
            "an id must look like 'namespace/Name-v0': letters, digits, '_' and '-' (in the name "
            f"also '.'), and a version without leading zeros; got {id!r}"
        )


def plain_kwargs(name: str, kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Copy arguments, requiring that JSON preserves them.

    Raises:
        ValueError: one of them is not such a value.
    """
    if not isinstance(kwargs, Mapping) or not all(isinstance(key, str) for key in kwargs):
        raise ValueError(f"{name}: kwargs must be arguments by name, got {redact(kwargs)!r:.80}")
    copies = {}
    for key, value in kwargs.items():
        try:
            copies[key] = json.loads(json.dumps(value, allow_nan=False))
            same = copies[key] == value
        except (TypeError, ValueError, RecursionError):
            same = False
        if not same:
            raise ValueError(
                f"{name}: kwargs[{key!r}] must be plain JSON (text, numbers, true, false, null, "
                f"lists, objects with text keys), got {redact(value, key)!r:.80}. Give a path or a "
                "name, and let the entry point make of it what it needs"
            )
    return copies
