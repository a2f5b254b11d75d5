"""Tools: which calls are made, what the policy is told, and whose fault it is where one fails."""

import copy
import json
import pickle
import threading

import pytest
from gymnasium.utils.env_checker import check_env
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.envs import Completion, Generated, Rows, State, Task, Turn
from assay.envs.tools import Answer, BadTool, ToolEnv, ToolError, Toolset, Work
from assay.envs.tools.calls import read_calls
from assay.envs.tools.messages import shortened
from assay.sandbox import BadTests, SandboxUnavailable
from assay.verifiers import Exact, Math
from assay.verifiers.form.json_text import NotJson

SOME_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from([1.0, 2.5, "a", "1", ""]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab"), inner),
    max_leaves=4,
)


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


async def later() -> int:
    return 5


@pytest.mark.parametrize("made", [later, lambda: iter([5])])
def test_a_result_that_is_still_to_come_is_the_tools_fault(made) -> None:
    """The policy read "<coroutine object later at 0x7f...>"."""

    def wrapped() -> int:
        """Look it up."""
        return result

    result = made()
    waiting = env(wrapped)
    waiting.reset(seed=0)
    info = waiting.step(call("wrapped"))[4]
    assert (info["status"], "a tool returns its result" in info["reason"]) == (
        "verifier_error",
        True,
    )
    getattr(result, "close", int)()


def test_a_toolset_that_cannot_be_copied_is_named() -> None:
    counter = Counter()
    counter.lock = threading.Lock()
    with pytest.raises(BadTool, match="copies of Counter, and deepcopy raised TypeError"):
        env(counter).reset(seed=0)


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

    def name() -> str:
        """Name a file, as os.listdir gives what is no UTF-8."""
        return "caf\udce9"

    assert answers(env(name), call("name")) == ["caf\ufffd"]  # tokenizers refuse half a pair
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
