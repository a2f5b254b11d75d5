"""The plan of a run, ``run.json``: what it evaluates, equal for equal evaluations."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from importlib import metadata
from typing import Any, Self

from ..envs import Task, TextEnv, spec
from ..envs.audit.subject import parts
from ..envs.datasets.bad_rows import bad_rows_record
from ..envs.registry import UnknownEnvironment
from ..sandbox.redaction import redact
from ..verifiers import FunctionVerifier, Verifier
from .digest import code_digest, digest, digest_tasks, lasting_repr

FORMAT = 1
_PACKAGES = ("assay", "math-verify", "sympy", "numpy", "torch", "transformers", "openai")


@dataclass(frozen=True)
class Plan:
    """Everything that an evaluation's results depend on. It holds no times and no secrets.

    Attributes:
        environment: its id, arguments and record.
        verifier: the rubric, as far as it is serialisable, and a hash of it.
        data: how many tasks, and a hash of them.
        policy: what answers.
        n: replies to each task; 0 if the number of saved replies varies.
        seed: of the replies.
        batch: tasks played together.
        versions: of Python and packages.
        rescored_from: the run whose replies were judged again; empty otherwise.
        format: of the files.
    """

    environment: Mapping[str, Any]
    verifier: Mapping[str, Any]
    data: Mapping[str, Any]
    policy: Mapping[str, Any]
    n: int
    seed: int
    batch: int
    versions: Mapping[str, str]
    rescored_from: str = ""
    format: int = FORMAT

    def __post_init__(self) -> None:
        for name in ("environment", "verifier", "policy"):
            object.__setattr__(self, name, redact(getattr(self, name)))

    def to_json(self) -> dict[str, Any]:
        """Return a dict of plain JSON values."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> Self:
        """Invert :meth:`to_json`.

        Raises:
            ValueError: it is no plan, or one of another format.
        """
        if not isinstance(row, Mapping) or row.get("format") != FORMAT:
            raise ValueError(
                f"expected the record of an evaluation of format {FORMAT}, got {str(row)[:80]}"
            )
        try:
            found = cls(**row)
        except TypeError as error:
            raise ValueError(f"not the record of an evaluation: {error}") from error
        for name in ("environment", "verifier", "data", "policy", "versions"):
            if not isinstance(row[name], Mapping):
                raise ValueError(f"{name} must be an object, got {row[name]!r:.80}")
        if not isinstance(found.data.get("tasks"), int) or not isinstance(found.batch, int):
            raise ValueError("data.tasks and batch must be whole numbers")
        return found

    def differences(self, other: Plan) -> list[str]:
        """List the differences, one per line: field, here, there."""
        found = []
        for field in fields(self):
            mine, its = getattr(self, field.name), getattr(other, field.name)
            if mine != its:
                found += _differing(field.name, mine, its)
        return found


_NOTHING = "nothing"


def _differing(name: str, mine: Any, its: Any) -> list[str]:
    """Describe the values that differ in nested records, not the whole records."""
    if not (isinstance(mine, Mapping) and isinstance(its, Mapping)):
        return [f"{name}: {mine!s:.120} against {its!s:.120}"]
    return [
        line
        for key in sorted({*mine, *its})
        if mine.get(key, _NOTHING) != its.get(key, _NOTHING)
        for line in _differing(f"{name}.{key}", mine.get(key, _NOTHING), its.get(key, _NOTHING))
    ]


def environment_record(
    env_id: str, kwargs: Mapping[str, Any], env: TextEnv | None = None
) -> dict[str, Any]:
    """Record what makes the environment again, and a hash of its code."""
    try:
        record: Mapping[str, Any] | None = spec(env_id).to_json()
    except (UnknownEnvironment, ValueError):  # of a script; it can be named, but not made again
        record = None
    found = {"id": env_id, "kwargs": dict(kwargs), "spec": record}
    if env is None:
        return found
    module = () if record is None else (record["entry_point"].partition(":")[0],)
    if env.bad_rows:
        found["bad_rows"] = bad_rows_record(env.bad_rows)
    return {**found, "max_turns": env.max_turns, "code": code_digest([env, *module])}


def verifier_record(env: TextEnv) -> dict[str, Any]:
    """Record the rubric, the group's rubric, a hash of both, and one of their code."""
    record: dict[str, Any] = {"rubric": redact(env.rubric.to_json())}
    code = [thing for part in parts(env.rubric) for thing in (part, _function(part))]
    if env.group_rubric is not None:
        group = env.group_rubric
        named = {name: lasting_repr(part) for name, part in group.parts.items()}
        record["group_rubric"] = redact(group.to_json() | {"parts": named})
        code += group.parts.values()
    return {**record, "sha256": digest(record), "code": code_digest(code)}


def _function(part: Verifier) -> Any:
    """Return the function that a verifier calls, or the verifier itself."""
    return part.function if isinstance(part, FunctionVerifier) else part


def data_record(tasks: Sequence[Task]) -> dict[str, Any]:
    """Record the number of tasks and a hash of their content."""
    return {"tasks": len(tasks), "sha256": digest_tasks(tasks)}


def versions() -> dict[str, str]:
    """Return the versions of Python and of the installed packages that affect results."""
    found = {"python": platform.python_version()}
    for name in _PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found
