"""What a function becomes as a tool, which cannot be one, and which arguments fit."""

import json
from typing import Any, Literal, Optional, Union

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.envs import Completion, Rows, Task
from assay.envs.tools import BadTool, FileTools, Tool, ToolEnv, Toolset
from assay.envs.tools.arguments import Misfit, fitted
from assay.verifiers import Exact


def env(*tools) -> ToolEnv:
    return ToolEnv(Rows([Task("What is 2 + 3?", "5")]), Exact(), tools=tools)


def add(a: int, b: int = 2) -> int:
    """Add two numbers.

    Args:
        a: One.
        b: The other, which is described
            on two lines.

    Returns:
        Their sum.
    """
    return a + b


def plain() -> None:
    """Do nothing."""


def many(
    text: str,
    share: float,
    sure: bool,
    items: list[int],
    table: dict[str, list[float]],
    kind: Literal["a", "b"],
    level: Literal[1, "x", None],
    maybe: int | None = None,
    old: Optional[str] = None,  # noqa: UP045  # as people still write it
    either: Union[int, str] = 1,  # noqa: UP007  # likewise
    lists: list[int] | str = "",
    bare: list = [],  # noqa: B006  # never changed
    anything: Any = None,
    loose: dict | None = None,
) -> dict[str, int]:
    """Take many kinds.

    A second paragraph: with a colon.

    Args:
        text: A text: with a colon.
        share: A share.

        sure: Whether.
        items: Some.
        table: A table.
        kind: Which.
        level: How high.
        maybe: Perhaps.
        old: Old.
        either: Either.
        lists: Lists.
        bare: Bare.
        anything: Anything.
        loose: Loose.

    Returns:
        A count by name,
        on two lines.

    Raises:
        ValueError: never.
    """
    return {}


class Odd:
    """Has no JSON."""


def gives_odd(a: str) -> Odd:
    """Give something that has no JSON.

    Args:
        a: Any text.
    """
    return Odd()


@pytest.mark.parametrize("function", [add, plain, many, gives_odd, FileTools.read_file])
def test_the_schema_is_the_one_that_transformers_makes(function) -> None:
    from transformers.utils import get_json_schema

    assert Tool(function).schema == get_json_schema(function)


HINTS = [
    int, float, str, bool, Any, list, list[int], list[list[str]], dict, dict[str, float],
    Literal["a", 1], Literal[True, None], int | None, list[int] | str, dict[str, int | None],
]  # fmt: skip
WORDS = st.sampled_from(["a value", "x: y", "see: that", "(int): z", "Returns it", "Args and", "."])


@settings(deadline=None, derandomize=True, max_examples=60)
@given(st.data())
def test_any_docstring_gives_the_same_schema(data) -> None:
    from transformers.utils import get_json_schema

    lines = ["Do it.", *data.draw(st.lists(WORDS, max_size=2))]
    names = data.draw(st.lists(st.sampled_from("abc"), unique=True))
    lines += ["", "Args:"] if names else []
    for name in names:
        lines.append(f"    {name}: {data.draw(WORDS)}")
        lines += [
            f"        {more}" for more in data.draw(st.lists(WORDS | st.just(""), max_size=2))
        ]
    lines += data.draw(st.sampled_from([[], ["", "Returns:", "    It: all", "    of it."]]))
    lines += data.draw(st.sampled_from([[], ["", "Raises:", "    ValueError: x"]]))
    tool = eval(f"lambda {', '.join(names)}: 0")  # noqa: S307  # three letters
    tool.__name__, tool.__doc__ = "tool", "\n".join(lines)
    tool.__annotations__ = {name: data.draw(st.sampled_from(HINTS)) for name in names}
    tool.__annotations__ |= data.draw(st.sampled_from([{}, {"return": int}, {"return": None}]))
    assert Tool(tool).schema == get_json_schema(tool)


def documented(hint=None, line="a: It."):
    """A tool of one argument, with this type and this line in its docstring."""

    def tool(a): ...

    tool.__annotations__ = {} if hint is None else {"a": hint}
    tool.__doc__ = f"Do.\n\nArgs:\n    {line}\n"
    return tool


def no_doc(a: int): ...


def stars(*a: int):
    """Do.

    Args:
        a: It.
    """


class Empty(Toolset):
    """Has none."""


async def later():
    """Do later."""


@pytest.mark.parametrize(
    ("tool", "words"),
    [
        (no_doc, "no_doc has no docstring: say what it does"),
        (documented(), "'a' has no type: write a: str"),
        (documented(int, "a (int): It."), "does not describe 'a': add a line 'a: what it is'"),
        (documented(Odd), "the type of 'a' is .*Odd.*, of which JSON has no kind: use int"),
        (stars, "cannot be given by name"),
        (documented(dict[int, str]), r"use dict\[str, ...\]"),
        (documented(str, 'a: It (choices: ["x", "y"])'), "use Literal"),
        (lambda: 1, "use def"),
        (FileTools, r"give an object, FileTools\(\)"),
        (Empty(), "Empty has no tools"),
        (later, "later is a coroutine"),
        (documented("NoSuchType"), "types cannot be looked up .*import them at the top"),
    ],
)
def test_what_cannot_be_a_tool_is_refused_with_the_remedy(tool, words) -> None:
    with pytest.raises(BadTool, match=words):
        env(tool)


def test_an_environment_of_tools_has_one() -> None:
    with pytest.raises(BadTool, match="tools is empty: give a function or a Toolset"):
        env()


def test_two_tools_cannot_have_one_name() -> None:
    with pytest.raises(BadTool, match="two tools are called 'add': rename one"):
        env(add, add)


# -- arguments -------------------------------------------------------------------------------------

SOME_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from([1.0, 2.5, "a", "1", ""]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab"), inner),
    max_leaves=4,
)


def null_allowed(schema):
    """``nullable`` as JSON Schema says it."""
    if isinstance(schema, list):
        return [null_allowed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    inner = {k: null_allowed(v) for k, v in schema.items() if k != "nullable"}
    return {"anyOf": [inner, {"type": "null"}]} if schema.get("nullable") else inner


@settings(deadline=None, derandomize=True, max_examples=120)
@given(hint=st.sampled_from(HINTS), value=SOME_JSON)
def test_arguments_fit_just_where_the_schema_is_valid(hint, value) -> None:
    takes = Tool(documented(hint)).schema["function"]["parameters"]
    schema = null_allowed(takes["properties"]["a"])
    valid = jsonschema.Draft202012Validator(schema).is_valid(value)
    if valid:
        found = fitted(hint, value, "a")
        assert found == value
        assert hint not in (int, float, str, bool) or type(found) is hint
    else:
        with pytest.raises(Misfit, match="a"):
            fitted(hint, value, "a")


def test_what_may_be_null_too_is_named_by_its_other_type() -> None:
    for hint in (list[str] | None, None | list[str]):
        with pytest.raises(Misfit, match=r"a\[1\] must be a string, got 1"):
            fitted(hint, ["x", 1], "a")
    with pytest.raises(Misfit, match='a must be a whole number, got "1"'):
        fitted(int | None, "1", "a")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"a": "1"}, 'add: a must be a whole number, got "1"'),
        ({"a": True}, "add: a must be a whole number, got true"),
        ({"a": 1.5}, "add: a must be a whole number, got 1.5"),
        ({}, "add needs the argument 'a'"),
        ({"a": 1, "c": 2}, "add takes no argument 'c': it takes a, b"),
        ({"a": None}, "add: a must be a whole number, got null"),
    ],
)
def test_wrong_arguments_are_told_and_nothing_is_called(arguments, words) -> None:
    adding = env(add)
    state = adding.begin(adding.task(0))
    call = json.dumps({"name": "add", "arguments": arguments})
    adding.advance([state], [Completion(f"<tool_call>{call}</tool_call>")])
    assert state.turns[-1]["content"] == f"error: {words}"
