"""A JSON Schema of Draft 2020-12, checked before it is used and bounded when it is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from jsonschema import Draft202012Validator, FormatChecker
from jsonschema.exceptions import SchemaError
from referencing import Registry, Resource
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012

from .formats import FORMATS
from .json_text import NotJson, read_json
from .linear import compiled
from .schema_cache import SchemaFault
from .schema_keywords import Run, SchemaValidator, TooMuch

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_ONE = frozenset({
    "additionalProperties", "contains", "else", "if", "items", "not", "propertyNames", "then",
    "unevaluatedItems", "unevaluatedProperties",
})  # fmt: skip
_MANY = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_NAMED = frozenset({"$defs", "definitions", "dependentSchemas", "patternProperties", "properties"})
_UNSUPPORTED = ("$dynamicRef", "$dynamicAnchor", "$recursiveRef")
_JUNK: dict[str, Any] = {
    "object": {"zq7x": [None, {"": 0.5}], "": "zq7x"},
    "array": ["zq7x", None, [{}], -0.5, {"zq7x": False}],
}


class Schema:
    """A schema that can be used.

    Raises:
        SchemaFault: it cannot.
    """

    def __init__(self, text: str, formats: bool) -> None:
        self._formats = formats
        self._root = _own_dialect(_read(text))
        _check(self._root)
        self._registry: Any = Registry()  # retrieves nothing
        self._targets: dict[str, Any] = {}
        parts = list(self._parts())
        for part in parts:
            self._check_part(part)
        self._refuse_loops(parts)
        if {"patternProperties", "unevaluatedProperties"} <= {name for p in parts for name in p}:
            # jsonschema would match the patterns with Python's re, which can take for ever
            raise SchemaFault("unevaluatedProperties does not go with patternProperties here")
        self._validator = SchemaValidator(self._root, registry=self._registry)
        for value in _JUNK.values():
            self._first_error(value)  # finds a schema that takes too many steps on anything

    def fault(self, value: Any) -> str | None:
        """Return what is wrong with a value and where, or ``None`` if it is valid."""
        try:
            return self._first_error(value)
        except SchemaFault as fault:
            return str(fault)

    def refuse_junk(self) -> None:
        """Refuse a schema that pays for anything.

        Raises:
            SchemaFault: it takes any object or any array, or neither objects nor arrays.
        """
        for kind, junk in _JUNK.items():
            if self._first_error(junk) is None:
                raise SchemaFault(
                    f"the schema accepts any {kind}, so that junk would be paid: name its type, "
                    "and what is required of it or that it has no additionalProperties"
                )
        kinds = self._root.get("type")
        if kinds is not None and not {"object", "array"} & set(
            [kinds] if isinstance(kinds, str) else kinds
        ):
            raise SchemaFault(f"the schema must be of an object or an array, got type {kinds!r}")
        const = [self._root["const"]] if "const" in self._root else None
        listed = self._root.get("enum", const)
        if listed is not None and not any(v and isinstance(v, dict | list) for v in listed):
            raise SchemaFault(f"the schema must be of an object or an array, got {listed!r:.80}")

    def _first_error(self, value: Any) -> str | None:
        run = Run(self._formats)
        try:
            error = next(self._validator.evolve(format_checker=run).iter_errors(value), None)
        except TooMuch as error:
            raise SchemaFault(str(error)) from error
        if error is None:
            return None
        place = ".".join(map(str, error.absolute_path))
        return f"at {place:.80}: {error.message:.200}" if place else f"{error.message:.200}"

    def _parts(self) -> Iterator[dict[str, Any]]:
        """Yield every schema within the schema and its references, without recursion."""
        todo: list[Any] = [self._root]
        seen: set[int] = set()
        while todo:
            part = todo.pop()
            if not isinstance(part, dict) or id(part) in seen:
                continue
            seen.add(id(part))
            yield part
            for name, value in part.items():
                if name in _ONE:
                    todo.append(value)
                elif name in _MANY:
                    todo += value
                elif name in _NAMED:
                    todo += value.values()
                elif name == "$ref":
                    todo.append(self._target(value))

    def _refuse_loops(self, parts: list[dict[str, Any]]) -> None:
        """Refuse a schema that would be followed for ever on one value."""
        left = {id(part): self._in_place(part) for part in parts}
        while True:  # take away what leads nowhere but to what is taken away: loops stay
            done = [part for part, to in left.items() if not any(id(t) in left for t in to)]
            if not done:
                break
            for part in done:
                del left[part]
        if left:
            raise SchemaFault("$ref leads back to itself on the same value, without end")

    def _in_place(self, part: dict[str, Any]) -> list[Any]:
        """Return the schemas that apply to the same value as this one."""
        found = [part[name] for name in ("else", "if", "not", "then") if name in part]
        for name in ("allOf", "anyOf", "oneOf"):
            found += part.get(name, [])
        found += part.get("dependentSchemas", {}).values()
        return [*found, self._target(part["$ref"])] if "$ref" in part else found

    def _target(self, ref: str) -> Any:
        if not ref.startswith("#"):
            raise SchemaFault(f"$ref {ref!r:.80} is not local (#...): put what it names in $defs")
        if ref in self._targets:
            return self._targets[ref]
        resource = Resource.from_contents(self._root, default_specification=DRAFT202012)
        try:
            target = self._registry.resolver_with_root(resource).lookup(ref).contents
        except Unresolvable as error:
            raise SchemaFault(f"$ref {ref!r:.80} leads nowhere") from error
        _check(target)  # what a reference leads to may stand if no schema is looked for
        self._targets[ref] = target
        return target

    def _check_part(self, part: dict[str, Any]) -> None:
        banned = _UNSUPPORTED if part is self._root else ("$schema", "$id", *_UNSUPPORTED)
        for name in banned:
            if name in part:
                raise SchemaFault(f"{name} is not supported here: use $ref and $defs")
        if "dependencies" in part:  # Draft 2020-12 takes no notice of it
            raise SchemaFault("dependencies is of Draft 7: use dependentRequired, dependentSchemas")
        patterns = list(part.get("patternProperties", {}))
        for pattern in [*patterns, *([part["pattern"]] if "pattern" in part else [])]:
            try:
                compiled(pattern)
            except ValueError as error:
                raise SchemaFault(str(error)) from error
        wanted = part.get("format")
        if self._formats and wanted is not None and wanted not in FORMATS:
            raise SchemaFault(f"format {wanted!r:.80} is not one of {', '.join(FORMATS)}")


def _read(text: str) -> dict[str, Any]:
    try:
        schema = read_json(text)
    except NotJson as error:
        raise SchemaFault(f"the schema must be plain JSON: {error}") from error
    if not isinstance(schema, dict) or not schema:
        raise SchemaFault(f"the schema must be an object that says something, got {schema!r:.80}")
    return schema


def _own_dialect(schema: dict[str, Any]) -> dict[str, Any]:
    """Remove the schema's names of itself and its dialect, so that ours applies throughout."""
    named = schema.get("$schema", _DIALECT)
    if str(named).rstrip("#") != _DIALECT:
        raise SchemaFault(f"$schema must be {_DIALECT}, got {named!r:.80}: rewrite the schema")
    return {name: value for name, value in schema.items() if name not in ("$schema", "$id")}


def _check(schema: Any) -> None:
    try:
        # without formats: "regex" would hold patterns to Python's syntax, not to RE2's
        Draft202012Validator.check_schema(schema, format_checker=FormatChecker(formats=()))
    except SchemaError as error:
        place = "/".join(map(str, error.absolute_path))
        raise SchemaFault(
            f"the schema is not valid at #/{place:.80}: {error.message:.200}"
        ) from error
    except RecursionError as error:
        raise SchemaFault("the schema is nested too deep") from error
