"""JSON Schema: agreement with jsonschema, and bounds where it has none."""

import inspect
import json
import random
import re
import sys
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from assay.verifiers import JsonSchema
from assay.verifiers.form.formats import FORMATS
from assay.verifiers.form.schema_cache import schema_of

ADA = {"type": "object", "required": ["a"], "properties": {"a": {"type": "integer"}}}


def under(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema of an array whose items hold to another."""
    return {"type": "array", "items": {"type": ["integer", "string", "boolean"], **schema}}


def score(schema: Any, value: Any, **options: Any) -> float | None:
    text = value if isinstance(value, str) else json.dumps(value)
    return JsonSchema(**options).verify(text, schema).score


@pytest.mark.parametrize(
    "extra",
    [{"x": float("nan")}, {"x": {1, 2}}, {"$ref": "other.json#/a"}, {"dependencies": {"a": ["b"]}}],
)
def test_a_schema_that_cannot_be_used_is_refused_at_once(extra: Any) -> None:
    assert JsonSchema().verify('{"a": 1}', {**ADA, **extra}).score is None
    with pytest.raises(ValueError, match=r"plain JSON|is not local|Draft 7"):
        JsonSchema({**ADA, **extra})


def test_a_schema_nested_without_end_is_refused() -> None:
    deep: Any = ADA
    for _ in range(5000):
        deep = {"not": deep}
    assert JsonSchema().check_reference(deep)
    shallow: Any = ADA
    for _ in range(150):
        shallow = {"not": shallow}
    assert JsonSchema().check_reference(shallow)


EITHER = {
    "type": "object",
    "anyOf": [
        {"properties": {"a": {"$ref": "#"}}, "required": ["x"]},
        {"properties": {"a": {"$ref": "#"}}, "required": ["y"]},
    ],
}
TERM = {
    "$ref": "#/$defs/term",
    "type": "object",
    "required": ["op"],
    "$defs": {
        "term": {
            "oneOf": [{"type": "number"}, {"$ref": "#/$defs/sum"}, {"$ref": "#/$defs/product"}]
        },
        "sum": {
            "type": "object",
            "properties": {"left": {"$ref": "#/$defs/term"}, "op": {"const": "+"}},
            "required": ["op", "left"],
        },
        "product": {
            "type": "object",
            "properties": {"left": {"$ref": "#/$defs/term"}, "op": {"const": "*"}},
            "required": ["op", "left"],
        },
    },
}


def nested(schema: str, depth: int, inner: str) -> str:
    return schema * depth + inner + "}" * depth


def test_recursive_schemas_cost_no_power_of_the_depth() -> None:
    """2 ** 20 steps and more in jsonschema: minutes."""
    assert score(EITHER, nested('{"y": 1, "a": ', 20, '{"y": 1}')) == 1.0
    assert score(EITHER, nested('{"y": 1, "a": ', 20, '{"z": 1}')) == 0.0
    assert score(EITHER, nested('{"y": 1, "a": ', 60, '{"y": 1}')) == 0.0  # nested too deep
    assert score(TERM, nested('{"op": "*", "left": ', 20, "1")) == 1.0
    assert score(TERM, nested('{"op": "*", "left": ', 20, '"x"')) == 0.0


def test_hostile_values_end() -> None:
    """Each takes minutes, or for ever, in jsonschema."""
    backtracks = under({"pattern": "^(x+x+)+y$"})
    assert score(backtracks, ["x" * 90_000]) == 0.0
    keys = {"type": "object", "patternProperties": {"^(x+x+)+y$": {}}, "maxProperties": 2,
            "additionalProperties": {"type": "integer"}}  # fmt: skip
    assert score(keys, {"x" * 50_000: 1}) == 1.0
    unique = {"type": "array", "uniqueItems": True, "items": {"type": ["integer", "object"]}}
    assert score(unique, [{"a": i} for i in range(7000)] + [1]) == 1.0
    closed = {"type": "object", "properties": {"a": {}}, "unevaluatedProperties": {"type": "null"}}
    assert score(closed, {f"k{i}": None for i in range(6000)}) == 0.0  # too many steps


def test_no_verdict_hangs_on_the_depth_of_the_stack() -> None:
    reply = nested('{"y": 1, "a": ', 60, '{"y": 1}')

    def deeper(frames: int) -> Any:
        return deeper(frames - 1) if frames else JsonSchema().verify(reply, EITHER)

    depth = len(inspect.stack())
    assert deeper(0) == deeper(sys.getrecursionlimit() - depth - 700)


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        (
            "date",
            ["2024-02-29"],
            ["2023-02-29", "20240229", "2024-W01-1", "2024-2-9", "٢٠٢٤-٠٢-٢٩"],
        ),
        (
            "time",
            ["08:30:06Z", "23:59:60Z", "15:59:60.5-08:00", "05:29:60+05:30", "08:30:06.25-08:00"],
            ["08:30:06", "24:00:00Z", "23:59:60+01:00", "08:30:60Z", "23:59:60-00:30"],
        ),
        ("date-time", ["1990-12-31T15:59:50.5-08:00"], ["1990-12-31 15:59:50Z", "1990-12-31"]),
        ("ipv4", ["10.0.0.255"], ["10.0.0.256", "10.0.0", "010.0.0.1", "٤.0.0.1"]),
        ("ipv6", ["::1", "2001:db8::8a2e:370:7334"], ["::1%eth0", "12345::", "1::2::3"]),
        ("uuid", ["2EB8AA08-aa98-11ea-b4aa-73b441d16380"], ["2eb8aa08aa9811eab4aa73b441d16380"]),
        ("email", ["a.b+c@example.com"], ["a@", "@b", "a b@c.d", "a..b@c.d", "a@b..c", "a@b\n"]),
        ("uri", ["https://a.b/c?d#e", "urn:x:y"], ["/a", "a b:c", "http://a b", "http://a|b", "%"]),
    ],
)
def test_each_format(name: str, good: list[str], bad: list[str]) -> None:
    assert [text for text in good if not FORMATS[name](text)] == []
    assert [text for text in ["", " ", *bad] if FORMATS[name](text)] == []


KINDS = ("null", "boolean", "integer", "number", "string", "array", "object")
DEFS = {"one": {"type": ["integer", "array", "object"]}, "two": {"minProperties": 1}}


def drawn_value(rng: random.Random, depth: int = 3) -> Any:
    kind = rng.randrange(9 if depth else 6)
    if kind < 6:
        return rng.choice([None, True, False, 0, 1, 2, -1, 0.5, 1.0, "", "a", "b", "ab"])
    if kind < 7:
        return [drawn_value(rng, depth - 1) for _ in range(rng.randrange(4))]
    return {rng.choice("abc"): drawn_value(rng, depth - 1) for _ in range(rng.randrange(3))}


def drawn_schema(rng: random.Random, depth: int = 3) -> Any:
    if not depth:
        return rng.choice([True, False, {"type": rng.choice(KINDS)}, {"type": "integer"}])

    def inner() -> Any:
        return drawn_schema(rng, depth - rng.randint(1, depth))

    def several() -> list[Any]:
        return [inner() for _ in range(rng.randint(1, 3))]

    def named() -> dict[str, Any]:
        return {name: inner() for name in rng.sample("abc", rng.randrange(3))}

    def names() -> list[str]:
        return rng.sample("abc", rng.randrange(3))

    small = rng.randrange(3)
    drawn = {
        "type": lambda: rng.sample(KINDS, rng.randint(1, 5)),
        "enum": lambda: [drawn_value(rng) for _ in range(3)],
        "const": lambda: drawn_value(rng),
        "multipleOf": lambda: rng.choice([1, 2, 0.5]),
        "pattern": lambda: rng.choice(["a", "^b", "a$", "^$"]),
        "patternProperties": lambda: {rng.choice(["a", "^b"]): inner()},
        "uniqueItems": lambda: rng.random() < 0.5,
        "required": names,
        "dependentRequired": lambda: {"a": names()},
        "$ref": lambda: rng.choice(["#/$defs/one", "#/$defs/two"]),
    }
    bounds = ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties",
              "minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum")  # fmt: skip
    one = ("items", "contains", "propertyNames", "additionalProperties", "not", "if", "then",
           "else", "unevaluatedItems", "unevaluatedProperties")  # fmt: skip
    drawn |= dict.fromkeys(bounds, lambda: small)
    drawn |= dict.fromkeys(one, inner)
    drawn |= dict.fromkeys(("allOf", "anyOf", "oneOf", "prefixItems"), several)
    drawn |= dict.fromkeys(("properties", "dependentSchemas"), named)
    return {name: drawn[name]() for name in rng.sample(sorted(drawn), rng.randint(1, 3))}


@pytest.mark.slow
def test_verdicts_are_those_of_jsonschema() -> None:
    rng, valid, invalid = random.Random(5), 0, 0  # noqa: S311  # schemas, not secrets
    for _ in range(1500):
        schema = {"title": "drawn", **drawn_schema(rng), "$defs": DEFS}
        if {"patternProperties", "unevaluatedProperties"} <= set(re.findall(r"\w+", str(schema))):
            continue
        theirs, ours = Draft202012Validator(schema), schema_of(schema)
        for value in [drawn_value(rng) for _ in range(8)]:
            fault = ours.fault(value)
            assert (fault is None) == theirs.is_valid(value), (schema, value, fault)
            valid, invalid = valid + (fault is None), invalid + (fault is not None)
    assert min(valid, invalid) > 2000
