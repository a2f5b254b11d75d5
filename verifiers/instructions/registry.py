"""Constraints by their public names: what each checks, with which arguments.

A new one is a function of the reply and of typed keyword arguments, under ``@constraint``::

    @constraint("punctuation:no_semicolon")
    def no_semicolon(reply: str) -> bool:
        "The reply has no semicolon."
        return ";" not in reply

The first line of its docstring is its line in the docs; the types of its arguments are the rules
that references are held to.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar, get_args, get_type_hints

_Check = TypeVar("_Check", bound=Callable[..., bool])


@dataclass(frozen=True)
class Rule:
    """The condition on an argument: in words, and as a test."""

    says: str
    holds: Callable[[Any], bool]


def _blank(value: Any) -> bool:
    return not isinstance(value, str) or not value.strip()


Relation = Annotated[
    str, Rule("'less than' or 'at least'", lambda v: v in ("less than", "at least"))
]
Count = Annotated[int, Rule("a whole number from 1", lambda v: type(v) is int and v >= 1)]
Index = Annotated[int, Rule("a whole number from 0", lambda v: type(v) is int and v >= 0)]
Percentage = Annotated[
    float, Rule("a number from 0 to 100", lambda v: type(v) in (int, float) and 0 <= v <= 100)
]
Text = Annotated[str, Rule("text that is not blank", lambda v: not _blank(v))]
Texts = Annotated[
    list[str],
    Rule(
        "a list of texts, none blank",
        lambda v: isinstance(v, list) and v != [] and not any(map(_blank, v)),
    ),
]
Letter = Annotated[str, Rule("one character", lambda v: isinstance(v, str) and len(v.strip()) == 1)]


@dataclass(frozen=True)
class Constraint:
    """One kind of instruction.

    Attributes:
        id: its public name, such as ``"punctuation:no_comma"``.
        check: whether a reply follows it; pure, and in time linear in the reply.
        rules: the rule of each argument.
        optional: arguments that may be left out.
        whole: it fixes all that a reply may say, so a reply that follows it may be very short,
            or a copy of the prompt.
        together: what is wrong with arguments that do not fit each other, or ``None``.
    """

    id: str
    check: Callable[..., bool]
    rules: Mapping[str, Rule]
    optional: frozenset[str]
    whole: bool
    together: Callable[..., str | None] | None

    @property
    def says(self) -> str:
        """One line that says when a reply follows it."""
        return (inspect.getdoc(self.check) or "").partition("\n")[0]

    def fault(self, arguments: Mapping[str, Any]) -> str | None:
        """Return what is wrong with arguments, naming the rule, or ``None``."""
        for name in arguments:
            if name not in self.rules:
                known = ", ".join(self.rules) or "none"
                return f"{self.id} takes no argument {name!r:.80}; it takes {known}"
        for name, rule in self.rules.items():
            if name not in arguments:
                if name not in self.optional:
                    return f"{self.id} needs {name}: {rule.says}"
            elif not rule.holds(arguments[name]):
                return f"{self.id}: {name} must be {rule.says}, got {arguments[name]!r:.80}"
        return self.together(**arguments) if self.together else None


CONSTRAINTS: dict[str, Constraint] = {}
"""All constraints by name; the modules of this folder fill it when they are imported."""


def constraint(
    *ids: str, whole: bool = False, together: Callable[..., str | None] | None = None
) -> Callable[[_Check], _Check]:
    """Register a function ``(reply, *, arguments) -> bool`` under a public name, or several.

    Args:
        *ids: the public names.
        whole: it fixes all that a reply may say.
        together: says what is wrong with arguments that do not fit each other.

    Raises:
        ValueError: the name is taken.
        TypeError: an argument's type has no rule.
    """

    def register(check: _Check) -> _Check:
        hints = get_type_hints(check, include_extras=True)
        parameters = list(inspect.signature(check).parameters.values())[1:]
        optional = frozenset(p.name for p in parameters if p.default is not p.empty)
        for id_ in ids:
            if id_ in CONSTRAINTS:
                raise ValueError(f"{id_!r} is registered already: choose another name")
            rules = {p.name: _rule(id_, p.name, hints[p.name]) for p in parameters}
            CONSTRAINTS[id_] = Constraint(id_, check, rules, optional, whole, together)
        return check

    return register


def _rule(id_: str, name: str, hint: Any) -> Rule:
    for part in get_args(hint):
        if isinstance(part, Rule):
            return part
    raise TypeError(f"{id_}: {name} needs a type with a rule, such as Count or Text, got {hint}")


def compare(number: int, relation: str, bound: int) -> bool:
    """Return whether a number is ``less than`` or ``at least`` a bound."""
    return number < bound if relation == "less than" else number >= bound
