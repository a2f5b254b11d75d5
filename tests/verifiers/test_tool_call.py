"""Calls of tools: five ways to write them, and only the right ones win."""

import itertools
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.verifiers import Status, ToolCall
from assay.verifiers.form.call import Call, RequiredCall, all_made, share_made
from assay.verifiers.form.call_text import WAYS, find_calls
from assay.verifiers.form.json_text import NotJson
from assay.verifiers.form.python_calls import read_calls

F = {"name": "f", "arguments": {"a": 1}}
GOLD = {"calls": [F]}
TOOL = {
    "name": "f",
    "parameters": {
        "type": "object",
        "required": ["a"],
        "properties": {"a": {"type": "integer"}, "b": {"type": "string"}},
    },
}
ONE = json.dumps(F)


@pytest.mark.parametrize(
    ("reply", "score"),
    [
        (f'<|python_tag|>{ONE}; {{"name": "g", "parameters": {{}}}}<|eom_id|>', 1.0),
        (f'{ONE}\n\n{{"name": "g"}}', 1.0),
        (f'```json\n{ONE};\n{{"name": "g"}}\n```', 1.0),
        (f'{ONE} {{"name": "g"}}', 0.0),
        (f'{ONE}; {{"name": "g"}}; {{"name": "g"}}', 0.0),
        (f'{ONE}; {{"name": "g"}} done', 0.0),
        (f"{ONE};", 0.0),
    ],
)
def test_parallel_calls_may_be_separated_as_llama_does(reply: str, score: float) -> None:
    gold = {"calls": [{"name": "g", "arguments": {}}, F]}
    assert ToolCall().verify(reply, gold).score == score


@pytest.mark.parametrize(
    ("arguments", "score"),
    [
        ('{"a": 1}', 1.0),
        ('{"a": 1, "b": null}', 1.0),
        ('{"a": 1, "b": 2}', 0.0),
        ('{"b": null}', 0.0),
    ],
)
def test_an_argument_that_a_table_made_null_may_be_left_out(arguments: str, score: float) -> None:
    call = {"name": "f", "arguments": {"a": 1, "b": None}, "alternatives": None, "optional": None}
    gold = {"calls": [call]}
    assert ToolCall().check_reference(gold) is None
    assert ToolCall().verify(f'{{"name": "f", "arguments": {arguments}}}', gold).score == score


def test_only_the_ways_that_are_asked_for_are_read() -> None:
    replies = {
        "tags": f"<tool_call>{ONE}</tool_call>",
        "python_tag": f"<|python_tag|>{ONE}",
        "json": ONE,
        "python": "f(a=1)",
    }
    for way, (other, reply) in itertools.product(WAYS, replies.items()):
        assert ToolCall(ways=[way]).verify(reply, GOLD).score == float(way == other)
    with pytest.raises(ValueError, match="ways must be"):
        ToolCall(ways=["xml"])


@pytest.mark.parametrize(
    "reference", [{"calls": [{"name": "f", "arguments": {1: 2}}]}, {1: 2, "a": 3}]
)
def test_references_that_are_no_json_are_named(reference: Any) -> None:
    assert ToolCall().check_reference(reference)
    assert ToolCall().verify(ONE, reference).status is Status.BAD_GOLD


def test_the_known_calls_win_as_each_way_writes_them() -> None:
    gold = {"calls": [F, {"name": "g", "arguments": {"t": "a</b> 'c'"}, "optional": ["t"]}]}
    for way in ("tags", "python_tag", "json"):
        verifier = ToolCall(ways=[way])
        reply = verifier.oracle_reply(gold)
        assert reply is not None
        assert verifier.verify(reply, gold).score == 1.0


HOSTILE = [
    "f(a=" + "[" * 9000, "f(a=" + "(" * 65 + "1" + ")" * 65 + ")", "f(a=" + "-" * 9000 + "1)",
    "f(a=" + "9" * 9000 + ")", "f(a=1e999)", "f(a='" + "\\" * 9001, "f(a='\\ud800')",
    "f(a=f'{x}')", "f(a=b'x')", "f(a=1)" * 9000, "f" * 9000 + "(", "f." * 9000 + "g()",
    "[" + "f()," * 4000 + "]", "f(a=__import__('os'))", "f(a={[]: 1})", "f(a={'x': 1, 'x': 1})",
    "f(a=1__0)", "f(a=0x10)", "f(a=007)", "f(a=1\0)", "<tool_call>" * 9000, "</tool_call>" * 8000,
    "<tool_call></tool_call>" * 4000, "<|python_tag|>" * 7000,
]  # fmt: skip


@pytest.mark.parametrize("reply", HOSTILE, ids=lambda reply: reply[:20])
def test_hostile_calls_lose_and_end(reply: str) -> None:
    with pytest.raises(NotJson):
        find_calls(reply, WAYS, text=True)


def test_what_python_writes_is_read() -> None:
    call = read_calls(
        "tools.search(q='it\\'s \\u00e5 \"x\"', n=-2, r=1.5e3, t=(1, 2), u=(3), v=(4,), "
        "d={'k': [True, None, false]}, e=[], f={}, g=(),)"
    )[0]
    assert call.name == "tools.search"
    assert call.arguments == {
        "q": "it's å \"x\"", "n": -2, "r": 1500.0, "t": [1, 2], "u": 3, "v": [4],
        "d": {"k": [True, None, False]}, "e": [], "f": {}, "g": [],
    }  # fmt: skip


plain_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="ascii", categories=["L", "N", "P", "Zs"]), max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab\"'\\"), inner),
    max_leaves=6,
)  # fmt: skip


@settings(deadline=None, derandomize=True, max_examples=150)
@given(arguments=st.dictionaries(st.from_regex(r"\A[a-z_]\w{0,5}\Z"), plain_values, max_size=3))
def test_what_repr_writes_is_read(arguments: dict[str, Any]) -> None:
    written = ", ".join(f"{name}={value!r}" for name, value in arguments.items())
    assert read_calls(f"[f({written})]")[0].arguments == arguments


calls = st.builds(
    Call, st.sampled_from("fg"), st.dictionaries(st.sampled_from("ab"), st.integers(0, 1))
)
wanted_calls = st.builds(
    lambda call, more, optional: RequiredCall(
        call.name, call.arguments, dict.fromkeys(call.arguments, more),
        frozenset(optional) & set(call.arguments),
    ),
    calls, st.lists(st.integers(0, 1), max_size=1), st.sets(st.sampled_from("ab")),
)  # fmt: skip


@settings(deadline=None, derandomize=True, max_examples=300)
@given(wanted=st.lists(wanted_calls, min_size=1, max_size=4), made=st.lists(calls, max_size=4))
def test_calls_are_matched_as_by_trying_every_order(
    wanted: list[RequiredCall], made: list[Call]
) -> None:
    def fits(order: tuple[Call, ...]) -> bool:
        return all(w.allows(call, True) for w, call in zip(wanted, order, strict=True))

    same = len(wanted) == len(made)
    expected = same and any(fits(order) for order in itertools.permutations(made))
    assert all_made(wanted, made, False, True) == expected
    assert all_made(wanted, made, True, True) == (same and fits(tuple(made)))
    share, names = share_made(wanted, made, False, True)
    assert 0 <= share <= names <= 1
    assert not (share == 1 and not expected)
