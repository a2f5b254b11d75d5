"""The forms in which models write calls: each is read as it was written, and nothing else is."""

import json
import re
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from assay.envs.tools.calls import read_calls
from assay.verifiers import ToolCall
from assay.verifiers.form.call import Call
from assay.verifiers.form.call_text import WAYS, find_calls
from assay.verifiers.form.json_text import NotJson


def text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def listed(calls: list[Call]) -> str:
    return json.dumps([{"name": c.name, "arguments": dict(c.arguments)} for c in calls])


def each(form: str, between: str, argument: str = "") -> Any:
    """Return a writer of calls, each with NAME, NUMBER and ARGUMENTS replaced."""

    def write(calls: list[Call]) -> str:
        written = []
        for number, call in enumerate(calls):
            arguments = json.dumps(call.arguments)
            if argument:
                pairs = [
                    argument.replace("KEY", key).replace("STRING", str(isinstance(v, str)).lower())
                    .replace("VALUE", text(v)) for key, v in call.arguments.items()
                ]  # fmt: skip
                arguments = "".join(pairs)
            head, tail = form.replace("NUMBER", str(number)).split("ARGUMENTS")
            written.append(head.replace("NAME", call.name) + arguments + tail)
        return between.join(written)

    return write


def within(begin: str, inner: Any, close: str) -> Any:
    return lambda calls: begin + inner(calls) + close


FORMS: dict[str, tuple[str, Any]] = {
    "Hermes": (
        "tags",
        each('<tool_call>\n{"name": "NAME", "arguments": ARGUMENTS}\n</tool_call>', "\n"),
    ),
    "Granite 3.1": ("tags", lambda calls: f"<tool_call>{listed(calls)}"),
    "Qwen3-Coder": (
        "tags",
        each(
            "<tool_call>\n<function=NAME>\nARGUMENTS</function>\n</tool_call>", "\n",
            "<parameter=KEY>\nVALUE\n</parameter>\n",
        ),
    ),
    "GLM-4.5": (
        "tags",
        each(
            "<tool_call>NAME\nARGUMENTS</tool_call>", "\n",
            "<arg_key>KEY</arg_key>\n<arg_value>VALUE</arg_value>\n",
        ),
    ),
    "GLM-4.7": (
        "tags",
        each(
            "<tool_call>NAMEARGUMENTS</tool_call>", "",
            "<arg_key>KEY</arg_key><arg_value>VALUE</arg_value>",
        ),
    ),
    "gpt-oss": (
        "harmony",
        within(
            "<|channel|>analysis<|message|>I call f: to=functions.g {}<|end|><|start|>assistant",
            each(
                "<|channel|>commentary to=functions.NAME <|constrain|>json<|message|>ARGUMENTS"
                "<|call|>", "<|start|>assistant",
            ),
            "",
        ),
    ),
    "gpt-oss, to first": (
        "harmony",
        each(
            " to=functions.NAME<|channel|>commentary json<|message|>ARGUMENTS<|call|>",
            "<|start|>assistant",
        ),
    ),
    "DeepSeek V3": (
        "deepseek",
        within(
            "<｜tool▁calls▁begin｜>",
            each(
                "<｜tool▁call▁begin｜>function<｜tool▁sep｜>NAME\n```json\nARGUMENTS\n```"
                "<｜tool▁call▁end｜>", "\n",
            ),
            "<｜tool▁calls▁end｜><｜end▁of▁sentence｜>",
        ),
    ),
    "DeepSeek V3.1": (
        "deepseek",
        within(
            "<｜tool▁calls▁begin｜>",
            each("<｜tool▁call▁begin｜>NAME<｜tool▁sep｜>ARGUMENTS<｜tool▁call▁end｜>", ""),
            "<｜tool▁calls▁end｜>",
        ),
    ),
    "DeepSeek V3.2": (
        "deepseek",
        within(
            "<｜DSML｜function_calls>\n",
            each(
                '<｜DSML｜invoke name="NAME">\nARGUMENTS</｜DSML｜invoke>', "\n",
                '<｜DSML｜parameter name="KEY" string="STRING">VALUE</｜DSML｜parameter>\n',
            ),
            "\n</｜DSML｜function_calls><｜end▁of▁sentence｜>",
        ),
    ),
    "Kimi K2": (
        "kimi",
        within(
            "<|tool_calls_section_begin|>",
            each(
                "<|tool_call_begin|>functions.NAME:NUMBER<|tool_call_argument_begin|>ARGUMENTS"
                "<|tool_call_end|>", "",
            ),
            "<|tool_calls_section_end|><|im_end|>",
        ),
    ),
    "MiniMax M2": (
        "minimax",
        within(
            "<minimax:tool_call>\n",
            each(
                '<invoke name="NAME">\nARGUMENTS</invoke>\n', "",
                '<parameter name="KEY">VALUE</parameter>\n',
            ),
            "</minimax:tool_call>",
        ),
    ),
    "Mistral": ("json", lambda calls: f"[TOOL_CALLS]{listed(calls)}</s>"),
    "Mistral, 2025": ("json", each("[TOOL_CALLS]NAME[ARGS]ARGUMENTS", "")),
    "Mistral, with ids": ("json", each("[TOOL_CALLS]NAME[CALL_ID]a1b2[ARGS]ARGUMENTS", "")),
    "Phi-4-mini": ("json", lambda calls: f"<|tool_call|>{listed(calls)}<|/tool_call|>"),
    "functools": ("json", lambda calls: f"functools{listed(calls)}"),
    "Llama": (
        "python_tag",
        lambda calls: "<|python_tag|>" + "; ".join(
            json.dumps({"name": c.name, "parameters": dict(c.arguments)}) for c in calls
        ),
    ),
    "OpenAI": ("json", listed),
    "Python": (
        "python",
        lambda calls: "[{}]".format(", ".join(
            f"{c.name}({', '.join(f'{k}={v!r}' for k, v in c.arguments.items())})" for c in calls
        )),
    ),
}  # fmt: skip
TOOLS = [
    {"name": name, "parameters": {"type": "object", "properties": {
        "s": {"type": "string"}, "i": {"type": "integer"}, "x": {"anyOf": [
            {"type": "number"}, {"type": "null"}]}, "b": {"type": "boolean"},
        "l": {"type": "array"}, "n": {"type": "string", "nullable": True},
        "o": {"$ref": "#/$defs/o"},
    }, "$defs": {"o": {"type": "object"}}}}
    for name in ("f", "get_weather-2")
]  # fmt: skip
MARKS = sorted({
    mark for _, write in FORMS.values() for mark in re.findall(
        r"</?[^\s<>]+>|\[/?[A-Z_]+\]|```json|to=functions\.|functools",
        write([Call("f", {"s": "", "i": 1})] * 2),
    )
} | {*"\"'\\\n{}[] aé1", "};{", "null", "</s>"})  # fmt: skip
hostile = st.lists(st.sampled_from(MARKS), max_size=6).map("".join)
values = {
    "s": hostile, "i": st.integers(-9, 99), "x": st.none() | st.sampled_from([0.5, 2, -1e300]),
    "b": st.booleans(), "l": st.lists(hostile | st.integers(), max_size=2),
    "o": st.dictionaries(hostile, hostile, max_size=2),
}  # fmt: skip
calls_to_write = st.lists(
    st.builds(
        Call, st.sampled_from(["f", "get_weather-2"]), st.fixed_dictionaries({}, optional=values)
    ),
    min_size=1, max_size=3,
)  # fmt: skip
ENDS = re.compile(  # what text between tags cannot hold, since nothing escapes it
    r"</parameter>\s*(?:<parameter[= ]|</function>|</invoke>)"
    r"|</arg_value>\s*(?:<arg_key>|</tool_call>|\Z)"
    r"|</｜DSML｜parameter>\s*(?:<｜DSML｜parameter|</｜DSML｜invoke>)"
)


def written(form: str, calls: list[Call]) -> str:
    pieces = [v for c in calls for value in c.arguments.values() for v in (text(value), value)]
    assume(not any(isinstance(piece, str) and ENDS.search(piece) for piece in pieces))
    if form == "Python":  # whose names have no dash
        calls[:] = [Call("f", call.arguments) for call in calls]
    reply = FORMS[form][1](calls)
    assert isinstance(reply, str)
    return reply


@pytest.mark.parametrize("form", FORMS)
@settings(deadline=None, derandomize=True, max_examples=60)
@given(calls=calls_to_write)
def test_what_a_form_writes_is_read(form: str, calls: list[Call]) -> None:
    reply = written(form, calls)
    for ways in ((FORMS[form][0],), WAYS):
        assert find_calls(reply, ways, text=False, tools=TOOLS)[0] == calls
    assert read_calls(reply, ["f", "get_weather-2"], (FORMS[form][0],), TOOLS) == calls
    assert read_calls(f"<think>{reply}</think>No.", ["f"], (FORMS[form][0],), TOOLS) == []


@pytest.mark.parametrize("form", FORMS)
def test_a_call_that_is_cut_off_is_none(form: str) -> None:
    calls = [Call("f", {"s": "a b", "i": 5})]
    way, write = FORMS[form]
    reply = write(calls)
    if way != "harmony" and form not in ("OpenAI", "Python"):  # which stand alone
        assert find_calls(f"I look.\n{reply}", (way,), text=True, tools=TOOLS)[0] == calls
    for end in range(len(reply)):
        if re.fullmatch(r"\s*(<[|｜][\w▁]+[|｜]>|</s>|<\|/tool_call\|>)?", reply[end:]):
            continue  # what ends a reply, which samplers leave out
        with pytest.raises(NotJson):
            find_calls(reply[:end], (way,), text=False, tools=TOOLS)


QWEN = "<tool_call>\n<function=f>\n{}</function>\n</tool_call>"
GLM = "<tool_call>f\n{}</tool_call>"
KIMI = "<|tool_calls_section_begin|>{}<|tool_calls_section_end|>"
COMMENTARY = "<|channel|>commentary to=functions.f <|constrain|>json<|message|>{}"


@pytest.mark.parametrize(
    "reply",
    [
        QWEN.format("<parameter=s>\na\n"),
        QWEN.format("<parameter=s>\na\n</parameter>\n" * 2),
        QWEN.format("a"),
        QWEN.format("").replace("</function>", ""),
        QWEN.format("").replace("<function=f>", "<function=>"),
        "<function=f>\n</function>\n</tool_call>",
        GLM.format("<arg_key>s</arg_key>"),
        GLM.format("<arg_value>a</arg_value>"),
        GLM.format("a"),
        GLM.format("<arg_key>s</arg_key><arg_value>a</arg_value>" * 2),
        KIMI.format("<|tool_call_begin|>f<|tool_call_argument_begin|>{}<|tool_call_end|>"),
        KIMI.format("<|tool_call_begin|>f:0<|tool_call_argument_begin|>[]<|tool_call_end|>"),
        KIMI.format("<|tool_call_begin|>f:0<|tool_call_argument_begin|>{'s': 1}<|tool_call_end|>"),
        "<|tool_call_begin|>f:0<|tool_call_argument_begin|>{}<|tool_call_end|>",
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>{}<｜tool▁calls▁end｜>",
        '<｜DSML｜invoke name="f"></｜DSML｜invoke>',
        '<｜DSML｜function_calls><｜DSML｜invoke name="f">'
        '<｜DSML｜parameter name="i" string="false">a</｜DSML｜parameter>'
        "</｜DSML｜invoke></｜DSML｜function_calls>",
        '<minimax:tool_call><invoke name="f"></minimax:tool_call>',
        '<minimax:tool_call><invoke name="f"><b></invoke></minimax:tool_call>',
        COMMENTARY.format("{'s': 1}"),
        COMMENTARY.format("{}<|start|>assistant" + COMMENTARY.format("{}")),
        COMMENTARY.format("{}<|call|>") + COMMENTARY.format("{}<|call|>"),
        " to=functions.g" + COMMENTARY.format("{}"),
        COMMENTARY.replace("commentary", "final").format("{}"),
        "<|channel|>commentary<|message|>a<|end|>b" + COMMENTARY.format("{}"),
        '[TOOL_CALLS]f[ARGS]{"s": }',
        "[TOOL_CALLS]f[CALL_ID]{}",
        'functools[{"name": "f"]',
    ],
)
def test_a_malformed_call_is_a_wrong_one(reply: str) -> None:
    with pytest.raises(NotJson):
        find_calls(reply, WAYS, text=True, tools=TOOLS)
    with pytest.raises(NotJson):
        read_calls(reply, ["f"], WAYS, TOOLS)


@pytest.mark.parametrize(
    "reply",
    [
        "Kimi writes <|tool_calls_section_begin|>, DeepSeek <｜tool▁calls▁begin｜>.",
        "MiniMax writes <minimax:tool_call>, and Mistral [TOOL_CALLS].",
        "functools is a module; gpt-oss writes <|channel|>commentary before a call.",
        "<|channel|>analysis<|message|>a<|end|>"
        "<|start|>assistant<|channel|>final<|message|>to=f {}",
        "<|channel|>analysis<|message|>I call to=functions.f {}.",
    ],
)
def test_prose_that_mentions_a_form_makes_no_call(reply: str) -> None:
    assert read_calls(reply, ["f"], WAYS, TOOLS) == []
    assert ToolCall(text=True).verify(reply, {"calls": [{"name": "f", "arguments": {}}]}).score == 0


@pytest.mark.parametrize(
    ("key", "written", "read"),
    [
        ("i", "5", 5),
        ("i", "five", "five"),
        ("s", "5", "5"),
        ("s", "null", "null"),
        ("n", "null", None),
        ("n", "5", "5"),
        ("x", "None", None),
        ("x", "2.5", 2.5),
        ("b", "True", True),
        ("b", "true", True),
        ("l", "['a', 1]", ["a", 1]),
        ("o", '{"a": {}}', {"a": {}}),
        ("o", "{'a': None}", {"a": None}),
        ("other", "5", (5, "5")),
        ("other", "null", (None, None)),
        ("other", "Oslo", ("Oslo", "Oslo")),
        ("other", '"5"', ("5", '"5"')),
        ("other", "[1, 'a']", ([1, "a"], "[1, 'a']")),
    ],
)
def test_text_becomes_what_the_schema_says_or_what_the_model_means(
    key: str, written: str, read: Any
) -> None:
    glm, qwen = read if isinstance(read, tuple) else (read, read)
    pairs = f"<arg_key>{key}</arg_key>\n<arg_value>{written}</arg_value>\n"
    assert find_calls(GLM.format(pairs), WAYS, text=False, tools=TOOLS)[0][0].arguments == {
        key: glm
    }
    pairs = f"<parameter={key}>\n{written}\n</parameter>\n"
    found = find_calls(QWEN.format(pairs), WAYS, text=False, tools=TOOLS)[0][0].arguments
    assert found == {key: qwen}
    if isinstance(read, tuple):  # the same without tools
        assert find_calls(QWEN.format(pairs), WAYS, text=False)[0][0].arguments == found


def test_the_tools_of_a_reference_type_what_is_compared() -> None:
    gold = {"calls": [{"name": "f", "arguments": {"i": 5}}], "tools": TOOLS}
    assert ToolCall().verify(QWEN.format("<parameter=i>\n5\n</parameter>\n"), gold).score == 1.0
    assert ToolCall().verify(QWEN.format("<parameter=i>\n6\n</parameter>\n"), gold).score == 0.0
