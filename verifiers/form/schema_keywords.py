"""JSON Schema's keywords, so that no reply makes a schema take long.

jsonschema's own are used if they are bounded. Patterns become RE2's, ``uniqueItems`` a set,
``multipleOf`` exact decimals; a ``$ref`` is followed once for each value, so that recursive
schemas take polynomial time; and each step is counted, so that the verdict on a reply that takes
too many does not hang on any clock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from fractions import Fraction
from typing import Any

from jsonschema import Draft202012Validator, FormatChecker
from jsonschema.exceptions import FormatError, ValidationError
from jsonschema.validators import extend

from .formats import FORMATS
from .json_text import hashable_json
from .linear import compiled

MAX_STEPS = 200_000
"""Keywords that may be tried on one reply: some seconds' work."""

_MAX_NESTED = 120  # keywords within one another; each takes about five of Python's 1,000 frames

_Keyword = Callable[[Any, Any, Any, Any], Iterable[ValidationError] | None]


class TooMuch(ValueError):
    """A schema takes too many steps on a value, or follows references too deep."""


class Endless(TooMuch):
    """A schema refers to itself on the same value."""


class Run(FormatChecker):
    """One validation: which formats count, and how much work is left.

    jsonschema hands a format checker on to every part of a validation, so this rides on it.
    """

    def __init__(self, formats: bool, steps: int = MAX_STEPS) -> None:
        super().__init__(formats=())
        self.formats, self.steps, self.nested = formats, steps, 0
        self.followed: dict[tuple[int, int], ValidationError | None] = {}
        self.following: set[tuple[int, int]] = set()
        self.allowed: dict[int, frozenset[Any]] = {}  # the values of each enum, by its identity

    def spend(self, steps: int) -> None:
        """Take steps from those that are left.

        Raises:
            TooMuch: none are.
        """
        self.steps -= steps
        if self.steps < 0:
            raise TooMuch(f"the schema takes more than {MAX_STEPS} steps on it")

    def check(self, instance: object, format: str) -> None:  # noqa: A002  # jsonschema's name
        """Check a string against a format, if formats are checked.

        Raises:
            FormatError: it is none.
        """
        if self.formats and isinstance(instance, str) and not FORMATS[format](instance):
            raise FormatError(f"{instance!r:.80} is no {format}")


def _counted(check: _Keyword) -> _Keyword:
    """Wrap a keyword to count a step and stop at its first error."""

    def keyword(validator: Any, value: Any, instance: Any, schema: Any) -> list[ValidationError]:
        run: Run = validator.format_checker
        run.spend(1)
        run.nested += 1
        try:
            if run.nested > _MAX_NESTED:
                raise TooMuch(f"the schema nests more than {_MAX_NESTED} keywords on it")
            error = next(iter(check(validator, value, instance, schema) or ()), None)
        finally:
            run.nested -= 1
        return [] if error is None else [error]

    return keyword


def _ref(validator: Any, ref: str, instance: Any, schema: Any) -> Iterator[ValidationError]:
    run: Run = validator.format_checker
    key = (id(schema), id(instance))  # both live as long as the run
    if key in run.following:
        raise Endless(f"$ref {ref!r:.80} leads back to itself")
    if key not in run.followed:
        run.following.add(key)
        followed = Draft202012Validator.VALIDATORS["$ref"](validator, ref, instance, schema)
        run.followed[key] = next(iter(followed or ()), None)
        run.following.discard(key)
    error = run.followed[key]
    if error is not None:
        yield ValidationError(error.message)


def _pattern(_: Any, pattern: str, instance: Any, __: Any) -> Iterator[ValidationError]:
    if isinstance(instance, str) and not compiled(pattern).stands_in(instance):
        yield ValidationError(f"{instance!r:.80} does not match {pattern!r:.80}")


def _pattern_properties(
    validator: Any, schemas: Mapping[str, Any], instance: Any, _: Any
) -> Iterator[ValidationError]:
    if isinstance(instance, dict):
        validator.format_checker.spend(len(instance) * len(schemas))
        for pattern, schema in schemas.items():
            held = compiled(pattern)
            for key, item in instance.items():
                if held.stands_in(key):
                    yield from validator.descend(item, schema, path=key, schema_path=pattern)


def _additional(
    validator: Any, wanted: Any, instance: Any, schema: Mapping[str, Any]
) -> Iterator[ValidationError]:
    if not isinstance(instance, dict):
        return
    known = schema.get("properties", {})
    patterns = [compiled(pattern) for pattern in schema.get("patternProperties", {})]
    validator.format_checker.spend(len(instance) * len(patterns))
    for key, item in instance.items():
        if key in known or any(held.stands_in(key) for held in patterns):
            continue
        if wanted is False:
            yield ValidationError(f"the key {key!r:.80} is unexpected")
        else:
            yield from validator.descend(item, wanted, path=key)


def _unique(_: Any, wanted: bool, instance: Any, __: Any) -> Iterator[ValidationError]:
    if (
        wanted
        and isinstance(instance, list)
        and len(set(map(hashable_json, instance))) < len(instance)
    ):
        yield ValidationError("two items are equal")


def _multiple(_: Any, unit: float, instance: Any, __: Any) -> Iterator[ValidationError]:
    if isinstance(instance, bool) or not isinstance(instance, int | float):
        return
    # the decimals that are written: 19.99 is a multiple of 0.01, which no double is
    if Fraction(repr(instance)) % Fraction(repr(unit)):
        yield ValidationError(f"{instance!r:.80} is no multiple of {unit!r:.80}")


def _enum(validator: Any, values: list[Any], instance: Any, _: Any) -> Iterator[ValidationError]:
    allowed = validator.format_checker.allowed
    if id(values) not in allowed:
        allowed[id(values)] = frozenset(map(hashable_json, values))
    if hashable_json(instance) not in allowed[id(values)]:
        yield ValidationError(f"{instance!r:.80} is not one of {values!r:.200}")


def _const(_: Any, value: Any, instance: Any, __: Any) -> Iterator[ValidationError]:
    if hashable_json(instance) != hashable_json(value):
        yield ValidationError(f"{instance!r:.80} is not {value!r:.80}")


def _quadratic(check: _Keyword) -> _Keyword:
    """Wrap a keyword that compares the members of an array or object with each other."""

    def keyword(
        validator: Any, value: Any, instance: Any, schema: Any
    ) -> Iterable[ValidationError] | None:
        if isinstance(instance, list | dict):
            validator.format_checker.spend(len(instance) ** 2 // 100)
        return check(validator, value, instance, schema)

    return keyword


_THEIRS: Mapping[str, Any] = Draft202012Validator.VALIDATORS
_OURS: dict[str, _Keyword] = {
    "$ref": _ref,
    "additionalProperties": _additional,
    "const": _const,
    "enum": _enum,
    "multipleOf": _multiple,
    "pattern": _pattern,
    "patternProperties": _pattern_properties,
    "unevaluatedItems": _quadratic(_THEIRS["unevaluatedItems"]),
    "unevaluatedProperties": _quadratic(_THEIRS["unevaluatedProperties"]),
    "uniqueItems": _unique,
}
_extend: Any = extend  # its stub has no types
SchemaValidator = _extend(
    Draft202012Validator,
    {name: _counted(check) for name, check in {**_THEIRS, **_OURS}.items()},
)
"""Draft 2020-12, bounded; its ``format_checker`` must be a :class:`Run`."""
