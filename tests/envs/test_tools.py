"""Tools: what a function becomes, which calls are made, and who is told of what goes wrong."""

import copy
import json
import pickle
import re
from pathlib import Path
from typing import Any, Literal, Optional, Union

import jsonschema
import pytest
from gymnasium.utils.env_checker import check_env
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.envs import Completion, FunctionPolicy, Generated, Rows, State, Task, Turn, play
from assay.envs.tools import Answer, BadTool, Tool, ToolEnv, ToolError, Toolset, Work
from assay.envs.tools.arguments import Misfit, fitted
from assay.envs.tools.calls import read_calls
from assay.envs.tools.telling import shortened
from assay.sandbox import BadTests, SandboxUnavailable
from assay.verifiers import Exact, Math
from assay.verifiers.form.json_text import NotJson


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


class Counter(Toolset):
    """Counts."""

    def __init__(self) -> None:
        self.count = 0

    def more(self, by: int = 1) -> str:
        """Count on.

        Args:
            by: How far.
        """
        self.count += by
        return f"now {self.count}"


@pytest.mark.parametrize("function", [add, plain, many, gives_odd, Counter.more])
def test_the_schema_is_the_one_that_transformers_makes(function) -> None:
    from transformers.utils import get_json_schema

    assert Tool(function).schema == get_json_schema(function)


HINTS = [
    int, float, str, bool, Any, list, list[int], list[list[str]], dict, dict[str, float],
    Literal["a", 1], Literal[True, None], int | None, list[int] | str, dict[str, int | None],
]  # fmt: skip
WORDS = st.sampled_from(["a value", "x: y", "see: that", "(int): z", "Returns it", "Args and", "."])


@settings(deadline=None, derandomize=True, max_examples=200)
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


def no_doc(a: int): ...
def no_type(a):
    """Do.

    Args:
        a: It.
    """


def no_description(a: int):
    """Do.

    Args:
        a (int): It.
    """


def odd(a: Odd):
    """Do.

    Args:
        a: It.
    """


def stars(*a: int):
    """Do.

    Args:
        a: It.
    """


def whole_keys(a: dict[int, str]):
    """Do.

    Args:
        a: It.
    """


def choices(a: str):
    """Do.

    Args:
        a: It (choices: ["x", "y"])
    """


class Empty(Toolset):
    """Has none."""


async def later():
    """Do later."""


def lost(a: "NoSuchType"):  # noqa: F821  # that is the point
    """Do.

    Args:
        a: It.
    """


@pytest.mark.parametrize(
    ("tool", "words"),
    [
        (no_doc, "no_doc has no docstring: say what it does"),
        (no_type, "'a' has no type: write a: str"),
        (no_description, "does not describe 'a': add a line 'a: what it is'"),
        (odd, "the type of 'a' is .*Odd.*, of which JSON has no kind: use int"),
        (stars, "cannot be given by name"),
        (whole_keys, r"use dict\[str, ...\]"),
        (choices, "use Literal"),
        (lambda: 1, "use def"),
        (Counter, r"give an object, Counter\(\)"),
        (Empty(), "Empty has no tools"),
        (later, "later is a coroutine"),
        (lost, "types cannot be looked up .*import them at the top"),
    ],
)
def test_what_cannot_be_a_tool_is_refused_with_the_remedy(tool, words) -> None:
    with pytest.raises(BadTool, match=words):
        env(tool)


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


@settings(deadline=None, derandomize=True, max_examples=400)
@given(hint=st.sampled_from(HINTS), value=SOME_JSON)
def test_arguments_fit_just_where_the_schema_is_valid(hint, value) -> None:
    def tool(a):
        """Do.

        Args:
            a: It.
        """

    tool.__annotations__["a"] = hint
    schema = null_allowed(Tool(tool).schema["function"]["parameters"]["properties"]["a"])
    valid = jsonschema.Draft202012Validator(schema).is_valid(value)
    if valid:
        found = fitted(hint, value, "a")
        assert found == value
        assert hint not in (int, float, str, bool) or type(found) is hint
    else:
        with pytest.raises(Misfit, match="a"):
            fitted(hint, value, "a")


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
    assert answers(env(add), call("add", **arguments)) == [f"error: {words}"]


# -- calls -----------------------------------------------------------------------------------------


def call(name, /, **arguments) -> str:
    return f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>"


@pytest.mark.parametrize(
    ("reply", "ways", "found"),
    [
        ("It is 3.", ("tags",), []),
        ("<think>" + call("add", a=1) + "</think>3", ("tags",), []),
        (f"I add.\n{call('add', a=1)}\nand{call('add', a=2)}", ("tags",), [{"a": 1}, {"a": 2}]),
        ('{"name": "add", "arguments": {"a": 1}}', ("tags",), []),
        ('{"name": "add", "arguments": {"a": 1}}', ("json",), [{"a": 1}]),
        ('```json\n{"name": "add", "parameters": {"a": 1}}\n```', ("json",), [{"a": 1}]),
        ('{"answer": 3}', ("json", "python"), []),
        ("[add(a=1)]", ("python",), [{"a": 1}]),
        ("Paris (France) is it", ("python",), []),
        ('<|python_tag|>{"name": "add", "parameters": {"a": 1}}', ("python_tag",), [{"a": 1}]),
    ],
)
def test_calls_are_read_in_the_ways_asked_for(reply, ways, found) -> None:
    assert [c.arguments for c in read_calls(reply, {"add"}, ways)] == found


@pytest.mark.parametrize(
    "reply", ["<tool_call>", "</tool_call>", '<tool_call>{"name": 1}</tool_call>', "<tool_call>x"]
)
def test_an_attempt_that_cannot_be_read_is_told(reply) -> None:
    with pytest.raises(NotJson):
        read_calls(reply, {"add"}, ("tags",))
    (told,) = answers(env(add), reply)
    assert told.startswith("error: the call cannot be read: ")


@settings(deadline=None, derandomize=True, max_examples=100)
@given(
    st.text() | st.text('<tool_cal>{}[]"name:add(=)/,') | st.builds(call, st.text(), a=SOME_JSON)
)
def test_no_reply_raises_or_is_our_fault(reply) -> None:
    told = env(add, ways=("tags", "python_tag", "json", "python"))
    told.reset(seed=0)
    *_, info = told.step(reply)
    assert info.get("status") in (None, "incorrect", "unparseable", "correct")


# -- episodes --------------------------------------------------------------------------------------


def env(*tools, answer="5", **options) -> ToolEnv:
    return ToolEnv(Rows([Task("What is 2 + 3?", answer)]), Exact(), tools=tools, **options)


def answers(env, *replies) -> list[str]:
    state = env.begin(env.task(0))
    for reply in replies:
        env.advance([state], [Completion(reply)])
    return [m["content"] for m in state.turns if m["role"] != "assistant"]


def fails(how: str) -> str:
    """Fail.

    Args:
        how: In which way.
    """
    raise {"told": ToolError("no such thing"), "ours": KeyError("a bug")}[how]


def look(state: State, at: int) -> str:
    """Look at a message.

    Args:
        state: The episode.
        at: Which.
    """
    return state.messages[at]["content"]


def test_calls_are_made_in_order_and_a_reply_without_one_is_judged() -> None:
    calculator = env(add, Counter())
    prompt, info = calculator.reset(seed=0)
    assert "<tools>" in prompt
    assert [t["function"]["name"] for t in info["tools"]] == ["add", "more"]
    twice = call("more", by=4) + call("add", a=2, b=3)
    said, reward, terminated, truncated, info = calculator.step(f"Let me see. {twice}")
    assert (said, reward, terminated, truncated) == ("now 4\n\n5", 0.0, False, False)
    assert info["messages"][-2:] == [
        {"role": "tool", "name": "more", "content": "now 4"},
        {"role": "tool", "name": "add", "content": "5"},
    ]
    assert calculator.step("5")[1:3] == (1.0, True)


def test_gymnasiums_checker_takes_it_and_copies_travel() -> None:
    calculator = env(add, Counter())
    check_env(calculator, skip_render_check=True)
    for copied in (copy.deepcopy(calculator), pickle.loads(pickle.dumps(calculator))):
        assert copied.reset(seed=1) == calculator.reset(seed=1)


def test_each_episode_has_toolsets_of_its_own_and_clones_too() -> None:
    counting = env(Counter())
    assert answers(counting, call("more"), call("more")) == ["now 1", "now 2"]
    assert answers(counting, call("more")) == ["now 1"]
    counting.reset(seed=0)
    counting.step(call("more", by=5))
    saved = counting.clone()
    for _ in range(2):
        counting.restore(saved)
        assert counting.step(call("more"))[0] == "now 6"


def test_what_went_wrong_is_told_where_it_is_the_policys_and_has_no_score_where_it_is_ours() -> (
    None
):
    told = env(fails, add)
    assert answers(told, call("fails", how="told")) == ["error: no such thing"]
    assert answers(told, call("nope")) == ["error: there is no tool 'nope'; there are fails, add"]
    state = told.begin(told.task(0))
    told.advance([state], [Completion(call("fails", how="ours"))])
    (verdict,) = told.verdicts([state])
    assert (verdict.status.value, verdict.score, state.ended) == ("verifier_error", None, "done")
    assert verdict.reason == "KeyError: 'a bug'"


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (SandboxUnavailable("gone"), "sandbox_error"),
        (BadTests("bad"), "bad_gold"),
        (ZeroDivisionError(), "verifier_error"),
        (ToolError("too large"), None),
    ],
)
def test_work_that_fails_ends_only_its_own_episode(error, status) -> None:
    def work(fail: bool) -> Work:
        """Work.

        Args:
            fail: Whether.
        """

        def run(box):
            if fail:
                raise error
            return "done"

        return Work(run, str.upper)

    class Box:
        def map(self, function, items):
            sizes.append(len(items))
            return [function(item) for item in items]

    sizes: list[int] = []
    working = env(work, sandbox=Box())
    states = [working.begin(working.task(0)) for _ in range(3)]
    replies = [call("work", fail=False) * 2, call("work", fail=True), "5"]
    working.advance(states, [Completion(r) for r in replies])
    assert sizes == [2, 1]  # all that wait are done together
    assert [m["content"] for m in states[0].turns[1:]] == ["DONE", "DONE"]
    if status is None:
        assert states[1].turns[-1]["content"] == "error: too large"
    else:
        assert working.verdicts(states[1:2])[0].status.value == status
    assert working.verdicts(states[2:])[0].score == 1.0


def test_a_tool_may_see_the_episode_and_end_it() -> None:
    def done() -> Turn:
        """End it."""
        return Turn.end()

    looking = env(look, done)
    assert list(looking.tools["look"].schema["function"]["parameters"]["properties"]) == ["at"]
    assert answers(looking, call("look", at=1)) == ["What is 2 + 3?"]
    state = looking.begin(looking.task(0))
    looking.advance([state], [Completion(call("look", at=1) + call("done") + call("look", at=1))])
    assert (state.ended, len(state.turns)) == ("done", 2)


def test_a_tool_may_give_the_answer_and_reward_its_turn() -> None:
    def submit(text: str) -> Answer:
        """Submit.

        Args:
            text: The answer.
        """
        return Answer(text)

    def good() -> Turn:
        """Be good."""
        return Turn.say("good", role="tool", reward=0.25)

    for text, score in (("5", 1.0), ("6", 0.0)):
        given = env(submit, good)
        given.reset(seed=0)
        assert given.step(call("good") * 2)[:2] == ("good\n\ngood", 0.5)
        assert given.step(call("submit", text=text) + call("good"))[1:3] == (score, True)


def test_what_stands_in_a_call_is_no_answer() -> None:
    def say(text: str) -> str:
        """Say.

        Args:
            text: Anything.
        """
        return text

    boxed = ToolEnv(Rows([Task("?", "5")]), Math(), tools=[say], max_turns=1)
    for reply, score in (
        (r"\boxed{5}", 1.0),
        (r"\boxed{5}" + call("say", text="x"), 0.0),
        (call("say", text=r"It is \boxed{5}"), 0.0),
        (r"\boxed{5} <tool_call>", 0.0),
    ):
        boxed.reset(seed=0)
        assert boxed.step(reply)[1] == score, reply


def test_long_answers_lose_their_middle_and_too_many_calls_are_not_made() -> None:
    def speak() -> str:
        """Speak."""
        return "a" * 500 + "b" * 500

    (said,) = answers(env(speak, longest=100), call("speak"))
    assert said == "a" * 50 + "\n[... 900 characters left out ...]\n" + "b" * 50
    assert shortened("abc", 3) == "abc"
    assert answers(env(Counter(), max_calls=2), call("more") * 3, call("more")) == [
        "error: 3 calls in one turn, at most 2: none was made",
        "now 1",
    ]


def test_it_is_told_as_the_chat_template_wants() -> None:
    bare = env(add, tell="template", role="user")
    assert bare.task(0).text == "What is 2 + 3?"
    assert answers(bare, call("add", a=1)) == ["<tool_response>\n3\n</tool_response>"]
    own = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "?"}]
    told = ToolEnv(Rows([Task(own, "5")]), Exact(), tools=[add]).task(0).messages
    assert [m["role"] for m in told] == ["system", "user"]
    assert told[0]["content"].startswith("Be brief.\n\nYou may call")


def test_generated_tasks_keep_their_splits() -> None:
    def make(rng):
        return Task(str(rng.integers(10**9)), "5")

    def texts(split):
        source = Generated(make, name="T", split=split)
        made = ToolEnv(source, Exact(), tools=[add])
        return {made.task(i).text for i in range(100)}

    assert not texts("train") & texts("test")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"max_calls": 0}, "max_calls must be from 1 to 32, got 0"),
        ({"longest": 5}, "longest must be at least 100 characters, got 5"),
        ({"tell": "x"}, "tell must be 'system' or 'template', got 'x'"),
        ({"role": "x"}, "role must be 'tool' or 'user', got 'x'"),
        ({"ways": ("x",)}, "ways must be a list of names from tags"),
    ],
)
def test_options_out_of_range_are_named(options, words) -> None:
    with pytest.raises(ValueError, match=words):
        env(add, **options)


class Caller:
    """Calls a tool, then answers; two tokens for each turn, three for what was said."""

    def __call__(self, conversations, /):
        return self.extend(conversations, [()] * len(conversations))

    def extend(self, conversations, prefixes, /):
        return [
            Completion(
                "5" if messages[-1]["role"] == "tool" else call("add", a=2, b=3),
                "stop",
                (*prefix, 1, 2, 3),
                (7, 0),
                (-0.5, -0.1),
            )
            for messages, prefix in zip(conversations, prefixes, strict=True)
        ]


def test_only_the_policys_tokens_are_its_own() -> None:
    calculator = env(add)
    ((episode,),) = [g.episodes for g in play(calculator, Caller(), [calculator.task(0)], 1)]
    assert episode.reward == 1.0
    assert [m["role"] for m in episode.turns] == ["assistant", "tool", "assistant"]
    assert [(s.author, s.ids) for s in episode.spans] == [
        ("environment", (1, 2, 3)),
        ("model", (7, 0)),
    ] * 2


def test_turns_run_out() -> None:
    endless = FunctionPolicy(lambda messages: call("add", a=1))
    short = env(add, max_turns=3)
    ((episode,),) = [g.episodes for g in play(short, endless, [short.task(0)], 1)]
    assert (episode.truncated, episode.reward, len(episode.turns)) == (True, 0.0, 6)


def test_the_tutorials_code_runs() -> None:
    page = (Path(__file__).parents[2] / "docs" / "multi_turn.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```", page, re.S | re.M)
    assert len(blocks) >= 4
    for block in blocks:
        exec(block, {"__name__": "tutorial"})  # noqa: S102  # our own page
