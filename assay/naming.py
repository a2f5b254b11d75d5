"""Environments and verifiers by name, as the command line takes them.

``assay/GSM8K-v1``, ``Math``, ``Math:{"percent": "value"}``, ``module:attribute``.
"""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .envs import EnvSpec, Source, Split, TextEnv, arguments, make
from .envs.audit.subject import Sibling
from .envs.datasets.errors import SplitError
from .envs.datasets.splits import SAMPLE, make_for
from .envs.plugins import import_module
from .sandbox.redaction import redact, remember
from .verifiers import FunctionVerifier, Verifier
from .verifiers.nearest import did_you_mean

FORMS = (
    "an environment id (assay/GSM8K-v1), a verifier (Math), module:attribute, or module:id; each "
    'may be followed by options, as in \'Math:{"percent": "value"}\''
)

NAME_HELP = f"A{FORMS[1:]}."


@dataclass(frozen=True)
class Resolved:
    """A resolved name: an environment or a verifier.

    Attributes:
        name: as it was given.
        thing: what it names.
        sibling: other splits and seeds of an environment, if they can be made.
    """

    name: str
    thing: TextEnv | Verifier
    sibling: Sibling | None = None

    @property
    def judge(self) -> Verifier:
        """The verifier that judges replies."""
        return self.thing.rubric if isinstance(self.thing, TextEnv) else self.thing

    def close(self) -> None:
        """Give back what it holds."""
        self.thing.close()


def resolve(text: str, options: Mapping[str, Any] | None = None) -> Resolved:
    """Resolve a name.

    Args:
        text: one of :data:`FORMS`.
        options: more options; those in the name go before them.

    Raises:
        ValueError: there is no such thing, or its options are no JSON object or do not suit it.
        ImportError: there is no such module.
    """
    name, colon, braces = text.partition(":{")
    chosen = {**(options or {}), **(_object(text, f"{{{braces}") if colon else {})}
    remember(chosen)
    text = redact(text)
    if ":" in name:
        module, _, attribute = name.partition(":")
        found = _imported(module)
        if "/" in attribute:
            return _environment(attribute, chosen)
        return _attribute(name, found, attribute, chosen)
    if "/" in name or "-v" in name:  # suggest the nearest to an id without namespace
        return _environment(name, chosen)
    try:
        return Resolved(text, Verifier.from_json({"name": name, **chosen}))
    except ValueError as error:
        known = not str(error).startswith("no verifier is called")
        raise error if known else ValueError(f"{error} Give {FORMS}") from error


def resolve_with_data(
    text: str, data: str | None, options: Mapping[str, Any] | None = None
) -> Resolved:
    """Resolve a name; an environment's id takes the data, anything else does not."""
    takes_data = data is not None and "/" in text.partition(":{")[0]
    return resolve(text, {**(options or {}), "data": data} if takes_data else options)


def _object(text: str, source: str) -> dict[str, Any]:
    try:
        found = json.loads(source)
    except json.JSONDecodeError as error:
        raise ValueError(f"the options in {text!r} are not JSON: {error}") from error
    return dict(found)


def found_here(id_: str) -> str:
    """Resolve an environment's id, importing its module also from the current folder."""
    here = str(Path.cwd())
    if ":" in id_ and here not in sys.path:
        sys.path.insert(0, here)
    return id_


def make_to_judge(
    id_: str | EnvSpec, kwargs: Mapping[str, Any], *, answers: bool
) -> tuple[TextEnv, dict[str, Any]]:
    """Make an environment whose ``test`` tasks are asked, and return its arguments too.

    Args:
        id_: of the environment.
        kwargs: its arguments.
        answers: whether there are answers already. They may be to any split, so the environment
            keeps its own default, and only data of several splits is taken at ``test``.
    """
    if answers:
        try:
            return make(id_, **kwargs), dict(kwargs)
        except SplitError:
            if "split" in kwargs:
                raise
    return make_for("test", id_, kwargs)


def _imported(module: str) -> Any:
    """Import a module, also from the current folder."""
    found_here(f"{module}:")
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module.partition(".")[0]:
            raise
        raise ImportError(f"{error}. Give {FORMS}") from error


def _environment(id_: str, options: dict[str, Any]) -> Resolved:
    env, _ = make_to_judge(id_, options, answers=True)
    takes = arguments(id_)
    several = "split" in takes and not _is_one_split(env)

    def sibling(split: Split, seed: int) -> Source:
        wanted = {"split": split, **({"seed": seed} if "seed" in takes else {})}
        return make(id_, **{**options, **wanted}).source

    return Resolved(id_, env, sibling if several else None)


def _is_one_split(env: TextEnv) -> bool:
    """Return whether the data has a single split: a file, or the sample."""
    data = getattr(env, "data", None)
    return data is not None and (data == SAMPLE or Path(data).is_file())


def _attribute(name: str, module: Any, attribute: str, options: dict[str, Any]) -> Resolved:
    if not hasattr(module, attribute):
        near = did_you_mean(attribute, vars(module))
        raise ValueError(f"{module.__name__} has no {attribute!r}. {near}".rstrip())
    thing = getattr(module, attribute)
    if isinstance(thing, TextEnv | Verifier):
        if options:
            raise ValueError(f"{name} is made already and takes no options, got {redact(options)}")
        return Resolved(name, thing)
    if not callable(thing):
        raise ValueError(f"{name} is neither an environment nor a verifier, but {thing!r:.80}")
    if not inspect.isclass(thing) and _judges(thing):
        return Resolved(name, FunctionVerifier(thing))
    return _built(name, thing, options)


def _judges(function: Any) -> bool:
    """Return whether a function takes a reply and a reference: two arguments without defaults."""
    parameters = inspect.signature(function).parameters.values()
    return sum(p.default is p.empty and p.kind in _BY_PLACE for p in parameters) == 2


_BY_PLACE = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def _built(name: str, build: Any, options: dict[str, Any]) -> Resolved:
    takes = inspect.signature(build).parameters
    unknown = [key for key in options if key not in takes]
    if unknown:
        raise ValueError(f"{name} takes no {unknown[0]!r}; it takes {', '.join(takes)}")

    def make_one(**more: Any) -> Any:
        return build(**{**options, **{k: v for k, v in more.items() if k in takes}})

    needed = [
        p.name
        for p in takes.values()
        if p.default is p.empty and p.kind in (*_BY_PLACE, p.KEYWORD_ONLY) and p.name not in options
    ]
    if needed:
        raise ValueError(
            f"{name} is neither an environment nor a verifier, nor makes one without "
            f"{', '.join(needed)}. A reward is a function of reply and reference"
        )

    thing = make_one()
    if not isinstance(thing, TextEnv | Verifier):
        raise ValueError(f"{name} makes neither an environment nor a verifier, but {thing!r:.80}")
    several = isinstance(thing, TextEnv) and "split" in takes and not _is_one_split(thing)
    sibling: Sibling | None = None
    if several:

        def sibling(split: Split, seed: int) -> Source:
            return make_one(split=split, seed=seed).source  # type: ignore[no-any-return]  # the user's own builder

    return Resolved(name, thing, sibling)
