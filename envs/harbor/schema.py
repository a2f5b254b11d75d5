"""Read ``task.toml`` of a Harbor task folder, schema 1.0 to 1.4."""

from __future__ import annotations

import difflib
import math
import os
import tomllib
import types
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from ipaddress import ip_address
from pathlib import Path, PurePosixPath
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from ...sandbox import Allowlist

VERSIONS = ("1.0", "1.1", "1.2", "1.3", "1.4")

LOCAL_HOSTS = "ASSAY_HARBOR_LOCAL_HOSTS"
"""Variable that lets tasks list addresses of this machine and of its network."""

User = str | int | None
"""A user's name or number; ``None`` is the image's own."""


Network = Literal["none"] | Allowlist
"""What a container may reach, as :meth:`~assay.sandbox.Sandbox.session` takes it."""


class TaskError(ValueError):
    """A task folder cannot be used. The message names the file, the key, the rule, the remedy."""


@dataclass(frozen=True)
class Package:
    """The table ``[task]``."""

    name: str = ""
    version: str = ""
    description: str = ""
    authors: tuple[Any, ...] = ()
    keywords: tuple[str, ...] = ()


@dataclass(frozen=True)
class Healthcheck:
    """A command that must succeed before the agent starts."""

    command: str
    interval_sec: float = 5.0
    timeout_sec: float = 30.0
    start_period_sec: float = 0.0
    start_interval_sec: float = 5.0
    retries: int = 3


@dataclass(frozen=True)
class MCPServer:
    """A server whose tools the agent has: one of ``[[environment.mcp_servers]]``."""

    name: str
    transport: Literal["sse", "streamable-http", "http", "stdio"] = "sse"
    url: str = ""
    command: str = ""
    args: tuple[str, ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Environment:
    """The table ``[environment]``."""

    docker_image: str = ""
    build_timeout_sec: float = 600.0
    os: Literal["linux", "windows"] = "linux"
    cpus: float | None = None
    memory_mb: int | None = None
    storage_mb: int | None = None
    gpus: int | None = None
    gpu_types: tuple[str, ...] = ()
    tpu: Mapping[str, Any] | None = None
    mcp_servers: tuple[MCPServer, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    skills_dir: str = ""
    healthcheck: Healthcheck | None = None
    workdir: str = ""
    network_mode: Literal["public", "no-network", "allowlist"] = "public"
    allowed_hosts: tuple[str, ...] = ()


@dataclass(frozen=True)
class Agent:
    """The table ``[agent]``."""

    timeout_sec: float | None = None
    user: User = None
    network_mode: Literal["public", "no-network", "allowlist"] | None = None
    allowed_hosts: tuple[str, ...] = ()


@dataclass(frozen=True)
class Collect:
    """A command that runs after the agent and before its files are collected."""

    command: str
    service: str = "main"
    timeout_sec: float = 60.0
    user: User = None


@dataclass(frozen=True)
class Verifier:
    """The table ``[verifier]``."""

    timeout_sec: float = 600.0
    env: Mapping[str, str] = field(default_factory=dict)
    user: User = None
    environment_mode: Literal["shared", "separate"] | None = None
    environment: Environment | None = None
    collect: tuple[Collect, ...] = ()
    network_mode: Literal["public", "no-network", "allowlist"] | None = None
    allowed_hosts: tuple[str, ...] = ()

    @property
    def separate(self) -> bool:
        """True if the tests see the artifacts only, not the agent's container."""
        return self.environment_mode == "separate" or self.environment is not None


@dataclass(frozen=True)
class Solution:
    """The table ``[solution]``."""

    env: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Artifact:
    """A path of the agent's container that the tests get."""

    source: str
    destination: str = ""
    exclude: tuple[str, ...] = ()
    service: str = "main"


@dataclass(frozen=True)
class Step:
    """One of ``[[steps]]``: a folder below ``steps/`` with its own instruction and tests."""

    name: str
    agent: Agent = field(default_factory=Agent)
    verifier: Verifier = field(default_factory=Verifier)
    min_reward: Any = None
    healthcheck: Healthcheck | None = None
    artifacts: tuple[Artifact, ...] = ()


@dataclass(frozen=True)
class Config:
    """All of ``task.toml``.

    Attributes:
        unknown: keys that no schema has, as dotted paths with a suggestion; they change nothing.
    """

    schema_version: str = "1.4"
    task: Package = field(default_factory=Package)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    agent: Agent = field(default_factory=Agent)
    verifier: Verifier = field(default_factory=Verifier)
    environment: Environment = field(default_factory=Environment)
    solution: Solution = field(default_factory=Solution)
    source: str = ""
    artifacts: tuple[Artifact, ...] = ()
    steps: tuple[Step, ...] = ()
    multi_step_reward_strategy: Literal["mean", "final"] = "mean"
    unknown: tuple[str, ...] = ()


def network_of(*tables: Environment | Agent | Verifier) -> Network:
    """Return the network of the first table that sets one; ``public`` gives none either."""
    table = next(table for table in tables if table.network_mode is not None)
    if table.network_mode != "allowlist":
        return "none"
    return Allowlist([host.strip().rstrip(".") for host in table.allowed_hosts])


def read_config(file: Path) -> Config:
    """Read ``task.toml``.

    Raises:
        TaskError: it cannot be read, or a value breaks a rule.
    """
    try:
        table = tomllib.loads(file.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise TaskError(f"{file}: {error}. Give a task.toml in valid TOML") from error
    _rename(table)
    reader = _Reader(file)
    config: Config = reader.table(Config, table, "")
    if config.schema_version not in VERSIONS:
        reader.refuse("schema_version", f"must be one of {', '.join(VERSIONS)}", "convert the task")
    object.__setattr__(config, "unknown", tuple(reader.unknown))
    _check(config, reader)
    return config


def _rename(table: dict[str, Any]) -> None:
    """Rename what earlier schemas call otherwise."""
    if "version" in table:
        table.setdefault("schema_version", table.pop("version"))
    steps = table.get("steps")
    verifiers = [
        part.get("verifier")
        for part in [table, *(steps if isinstance(steps, list) else [])]
        if isinstance(part, dict)
    ]
    inner = [verifier.get("environment") for verifier in verifiers if isinstance(verifier, dict)]
    for env in (table.get("environment"), *inner):
        if not isinstance(env, dict):
            continue
        internet = env.pop("allow_internet", None)
        if internet is not None:
            env.setdefault("network_mode", "public" if internet else "no-network")
        for name in ("memory", "storage"):
            size = env.get(name)
            if isinstance(size, str) and size[-1:].upper() in ("K", "M", "G"):
                factor = {"K": 1 / 1024, "M": 1, "G": 1024}[size[-1].upper()]
                try:
                    env.setdefault(f"{name}_mb", int(float(size[:-1]) * factor))
                except ValueError:
                    continue  # named as an unknown key
                del env[name]


class _Reader:
    """Turns tables of TOML into dataclasses by their types."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.unknown: list[str] = []

    def refuse(self, key: str, rule: str, remedy: str) -> None:
        raise TaskError(f"{self.file}: {key} {rule}. To mend it, {remedy}")

    def table(self, kind: type, table: Any, path: str) -> Any:
        if kind is Artifact and isinstance(table, str):
            table = {"source": table}
        if not isinstance(table, dict):
            self.refuse(path, f"must be a table, got {table!r:.60}", f"write [{path}]")
        hints = get_type_hints(kind)
        known = {f.name: f for f in fields(kind) if f.name != "unknown"}
        found = {}
        for key, value in table.items():
            where = f"{path}.{key}" if path else key
            if key in known:
                found[key] = self.value(hints[key], value, where)
                continue
            near = difflib.get_close_matches(key, known, 1)
            self.unknown.append(where + (f" (did you mean {near[0]}?)" if near else ""))
        for name, each in known.items():
            if name not in found and each.default is each.default_factory is MISSING:
                self.refuse(f"{path}.{name}", "is missing", "add it")
        return kind(**found)

    def value(self, kind: Any, value: Any, path: str) -> Any:
        origin, args = get_origin(kind), get_args(kind)
        if origin in (Union, types.UnionType):
            choices = [each for each in args if each is not type(None)]
            if len(choices) == 1:
                return self.value(choices[0], value, path)
            if type(value) in choices:
                return value
        elif kind is Any:
            return value
        elif is_dataclass(kind) and isinstance(kind, type):
            return self.table(kind, value, path)
        elif origin is tuple and isinstance(value, list):
            return tuple(self.value(args[0], v, f"{path}[{i}]") for i, v in enumerate(value))
        elif origin is Literal:
            word = value.lower() if isinstance(value, str) else value
            if word in args:
                return word
            self.refuse(path, f"must be one of {', '.join(args)}, got {value!r:.60}", "correct it")
        elif origin is not None and issubclass(origin, Mapping) and isinstance(value, dict):
            if args[1] is not str or all(isinstance(v, str) for v in value.values()):
                return value
        elif kind is float and type(value) in (int, float) and math.isfinite(value):
            return float(value)
        elif kind in (str, int, bool) and type(value) is kind:
            return value
        wanted = getattr(kind, "__name__", str(kind))
        self.refuse(path, f"must be {wanted}, got {value!r:.60}", "correct its type")
        raise AssertionError


def _check(config: Config, reader: _Reader) -> None:
    """Refuse values out of range, and by name what this runner does not do."""
    refuse = reader.refuse
    name = config.task.name
    if name and (name.count("/") != 1 or ".." in name or name.strip("/") != name):
        refuse("task.name", f"must look like 'org/name', got {name!r}", "rename the task")
    positive: list[tuple[str, float | None]] = []
    verifiers = {"verifier": config.verifier}
    verifiers |= {f"steps.{s.name}.verifier": s.verifier for s in config.steps}
    environments = {"environment": config.environment}
    environments |= {
        f"{path}.environment": verifier.environment
        for path, verifier in verifiers.items()
        if verifier.environment is not None
    }
    for path, env in environments.items():
        if env.os != "linux":
            refuse(f"{path}.os", f"{env.os!r} is not supported", "use a Linux image")
        if env.gpus:
            refuse(f"{path}.gpus", "is not supported: containers get no GPU", "take it out")
        if env.tpu:
            refuse(f"{path}.tpu", "is not supported: containers get no TPU", "take it out")
        if env.mcp_servers and path != "environment":
            refuse(f"{path}.mcp_servers", "are for the agent only", "take them out")
        for at, server in enumerate(env.mcp_servers):
            where = f"{path}.mcp_servers[{at}]"
            if server.transport != "stdio":
                rule = f"{server.transport!r} is not supported: it needs a side service"
                refuse(f"{where}.transport", rule, "start the server by stdio")
            if not server.command:
                refuse(f"{where}.command", "is missing", "add it")
        if env.skills_dir:
            refuse(f"{path}.skills_dir", "is not supported", "name the folder in the instruction")
        if env.workdir and not env.workdir.startswith("/"):
            refuse(f"{path}.workdir", "must be an absolute path", "begin it with '/'")
        for key in ("build_timeout_sec", "cpus", "memory_mb", "storage_mb"):
            positive.append((f"{path}.{key}", getattr(env, key)))
    agents = {"agent": config.agent, **{f"steps.{s.name}.agent": s.agent for s in config.steps}}
    tables: list[tuple[str, Environment | Agent | Verifier]] = [*environments.items()]
    for path, table in [*tables, *agents.items(), *verifiers.items()]:
        _check_network(reader, path, table)
    for path, verifier in verifiers.items():
        if verifier.environment_mode == "shared" and verifier.environment is not None:
            refuse(f"{path}.environment", "contradicts environment_mode 'shared'", "remove one")
        positive.append((f"{path}.timeout_sec", verifier.timeout_sec))
        for at, hook in enumerate(verifier.collect):
            if hook.service != "main":
                _refuse_service(reader, f"{path}.collect[{at}].service", hook.service)
    positive += [(f"{path}.timeout_sec", agent.timeout_sec) for path, agent in agents.items()]
    for key, number in positive:
        if number is not None and not number > 0:
            refuse(key, f"must be positive, got {number:g}", "correct it")
    for artifact in (*config.artifacts, *(a for s in config.steps for a in s.artifacts)):
        if artifact.service != "main":
            _refuse_service(reader, "artifacts.service", artifact.service)
        if ".." in PurePosixPath(artifact.source).parts:
            refuse("artifacts.source", f"must not contain '..', got {artifact.source!r}", "mend it")
    names = [step.name for step in config.steps]
    if len(set(names)) < len(names):
        refuse("steps", "must have names that differ", "rename one")
    for name in names:
        if not name or "/" in name or name.startswith("."):
            refuse("steps.name", f"must be a plain folder name, got {name!r}", "rename the step")


def _check_network(reader: _Reader, path: str, table: Environment | Agent | Verifier) -> None:
    if table.network_mode != "allowlist":
        if table.allowed_hosts:
            rule = f"needs network_mode 'allowlist', got {table.network_mode!r}"
            reader.refuse(f"{path}.allowed_hosts", rule, "set it")
        return
    key = f"{path}.allowed_hosts"
    try:
        network_of(table)
    except ValueError as error:
        reader.refuse(key, f"cannot be held: {error}", "name its hosts")
    if LOCAL_HOSTS not in os.environ and (local := [h for h in table.allowed_hosts if _local(h)]):
        rule = f"names an address of this machine or its network, {local[0]!r}"
        reader.refuse(key, rule, f"set {LOCAL_HOSTS}=1 if you trust the task with it")


def _local(host: str) -> bool:
    """Return whether a host is an address that is not public; a name leads to public ones only."""
    name = host.strip().rstrip(".").partition(":")[0].lower()
    try:
        return not ip_address(name).is_global
    except ValueError:
        return name == "localhost"


def _refuse_service(reader: _Reader, key: str, service: str) -> None:
    reader.refuse(
        key,
        f"{service!r} is a side service of docker-compose, which is not supported",
        "start the service from the environment's own image",
    )
