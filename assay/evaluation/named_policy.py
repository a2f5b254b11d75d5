"""Resolve ``--policy``: a file, a server, a model's directory, or a Python object."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

from ..envs import TextEnv, read_completions
from ..envs.plugins import import_module
from ..extras import needing
from ..naming import found_here
from ..verifiers.nearest import did_you_mean
from .digest import code_digest, digest
from .eval_policy import BatchEvalPolicy, EvalPolicy, FilePolicy, FunctionEvalPolicy
from .server_policy import ServerPolicy

FORMS = (
    "a JSONL file of completions, a server's address (http://127.0.0.1:8000/v1), a transformers "
    "directory, or module:attribute"
)


@dataclass(frozen=True)
class Sampling:
    """Sampling parameters.

    Attributes:
        model: the name that a server has for it.
        max_tokens: tokens after which a reply is cut off.
        temperature: divides the logits; ``None``: the server's own, or 1.0 for a directory.
        top_p: samples from the most likely tokens that have so much probability together.
        concurrency: requests in progress at a time.
        retries: of a request that failed.
        timeout_s: for one answer of a server.
        api_key_env: environment variable with a server's key.
        device: where a directory's model runs.
        extra: more fields of a server's requests.
    """

    model: str | None = None
    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    concurrency: int = 32
    retries: int = 4
    timeout_s: float = 600.0
    api_key_env: str | None = None
    device: str = "auto"
    extra: Mapping[str, Any] = field(default_factory=dict)


def find_policy(text: str, env: TextEnv, sampling: Sampling) -> EvalPolicy:
    """Find what answers.

    Raises:
        ValueError: there is no such thing, or it lacks what it needs.
        ImportError: a package or a module is missing.
    """
    if text.startswith(("http://", "https://")):
        refuse_others(sampling, _OF_SERVERS, "a server")
        return _server(text, sampling)
    if Path(text).is_dir():
        refuse_others(sampling, _OF_DIRECTORIES, "a model's directory")
        return _directory(Path(text), sampling)
    if Path(text).is_file():
        refuse_others(sampling, (), "a file of completions")
        return _file(text, env)
    module, colon, attribute = text.partition(":")
    if colon and module and attribute and "/" not in module:
        refuse_others(sampling, (), "a Python policy")
        return _python(text, module, attribute)
    raise ValueError(f"--policy: there is no {text!r}. Give {FORMS}")


_FLAGS = {"timeout_s": "--timeout", "extra": "--field"}
_OF_DIRECTORIES = ("max_tokens", "temperature", "top_p", "device")
_OF_SERVERS = tuple(field.name for field in fields(Sampling) if field.name != "device")


def refuse_others(sampling: Sampling, used: Collection[str], what: str) -> None:
    """Refuse settings that would be ignored.

    Raises:
        ValueError: one is not its default.
    """
    usual = Sampling()
    for name in (f.name for f in fields(Sampling) if f.name not in used):
        if getattr(sampling, name) != getattr(usual, name):
            flag = _FLAGS.get(name, f"--{name.replace('_', '-')}")
            raise ValueError(f"{flag} has no meaning for {what}: leave it out")


def _server(url: str, sampling: Sampling) -> EvalPolicy:
    if sampling.model is None:
        raise ValueError("a server needs --model: the name it has for the model")
    return ServerPolicy(url, **{name: getattr(sampling, name) for name in _OF_SERVERS})


def _file(path: str, env: TextEnv) -> EvalPolicy:
    if env.max_turns > 1:
        raise ValueError(
            f"{env.name} has up to {env.max_turns} turns, and saved completions answer one: give "
            "another policy"
        )
    return FilePolicy(path, read_completions(path, env.source))


def _directory(path: Path, sampling: Sampling) -> EvalPolicy:
    with needing("a model's directory as --policy", "train"):
        from ..grpo import ModelPolicy, load_model
    model, tokenizer = load_model(path, device=sampling.device, autocast=None)
    settings: dict[str, Any] = {
        "max_new_tokens": sampling.max_tokens or 256,
        "temperature": 1.0 if sampling.temperature is None else sampling.temperature,
        "top_p": 1.0 if sampling.top_p is None else sampling.top_p,
    }
    about = {**directory_record(path), "sampling": settings}
    return BatchEvalPolicy(ModelPolicy(model, tokenizer, **settings), about)


def directory_record(path: Path) -> dict[str, Any]:
    """Return what identifies a model's directory."""
    return {"kind": "directory", "path": str(path), "files": _files(path)}


def _files(path: Path) -> str:
    """Hash what distinguishes weights, without reading gigabytes."""
    kept = sorted(p for p in path.iterdir() if p.is_file())
    return digest([(p.name, p.stat().st_size, _sampled(p)) for p in kept])


_WHOLE, _BLOCKS, _BLOCK = 1 << 26, 4096, 1 << 12


def _sampled(path: Path) -> str:
    """Hash a file: all of it, or 4,096 blocks of 4 KiB if it exceeds 64 MiB."""
    size, hashed = path.stat().st_size, hashlib.sha256()
    with path.open("rb") as file:
        if size <= _WHOLE:
            hashed.update(file.read())
        else:
            for i in range(_BLOCKS):
                file.seek(i * (size - _BLOCK) // (_BLOCKS - 1))
                hashed.update(file.read(_BLOCK))
    return hashed.hexdigest()


def _imported(module: str) -> ModuleType:
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if module == "localhost" or "." in module:
            hint = "a server's address begins with http://"
            raise ValueError(f"--policy: there is no module {module!r}; {hint}") from error
        raise


def _python(text: str, module: str, attribute: str) -> EvalPolicy:
    found_here(text)
    imported = _imported(module)
    found = getattr(imported, attribute, None)
    if found is None:
        near = did_you_mean(attribute, vars(imported))
        raise ValueError(f"--policy: {module} has no {attribute!r}. {near}".rstrip())
    if inspect.iscoroutinefunction(found):
        raise ValueError(f"{text} is async: give a plain function of one conversation")
    if inspect.isroutine(found.func if isinstance(found, partial) else found):
        return FunctionEvalPolicy(text, found)
    policy = found() if inspect.isclass(found) else found
    if not callable(policy):
        raise ValueError(
            f"{text} is no policy, but {policy!r:.80}: give a function of one conversation, or an "
            "object (or its class) that maps a list of conversations to a list of Completions"
        )
    about = {"kind": "python", "name": text, "code": code_digest([policy, module])}
    return BatchEvalPolicy(policy, about)
