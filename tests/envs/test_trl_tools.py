"""Tools in TRL's GRPOTrainer: what the model may call, what it earns, trained for real."""

import inspect
import json
import pickle
import re

import pytest

from assay.envs import Generated, Rows, State, Task, TextEnv, TRLSpec, Turn, make, register
from assay.envs.tools import ToolEnv, ToolError, Toolset
from assay.envs.trl.tools import _method
from assay.verifiers import Exact, Rubric

trl = pytest.importorskip("trl")
torch = pytest.importorskip("torch")

CALL = '<tool_call>{{"name": "{}", "arguments": {}}}</tool_call>'
LOOK, SHAKE = CALL.format("look", "{}"), CALL.format("shake", '{"times": 2}')
# Qwen's form of a call, in as few tokens as may be.
TEMPLATE = """\
{%- for m in messages %}
{%- if m.role == 'tool' %}={{ m.content }}{% else %}{{ m.content }}{% endif %}
{%- for c in m.tool_calls or [] %}<tool_call>{"name": "{{ c.function.name }}", "arguments": \
{{ c.function.arguments | tojson }}}</tool_call>{% endfor %}
{%- if m.role == 'assistant' %}<eos>{% endif %}
{%- endfor %}
{%- if add_generation_prompt %}>{% endif %}"""
RESPONSE = {
    "defaults": {"role": "assistant"},
    "start_anchor": ">",
    "fields": {
        "tool_calls": {
            "open": "<tool_call>",
            "close_pattern": r"</tool_call>\s*",
            "repeats": True,
            "content": "json",
            "transform": {"type": "function", "function": "{content}"},
        },
        "content": {"close_pattern": r"<eos>\s*", "content": "text"},
    },
}


def look() -> str:
    """Look into the box.

    Returns:
        the letter in it
    """
    raise AssertionError("the environment answers")


def shake(state: State, times: int) -> str:  # noqa: D417  # the state is hidden from the model
    """Shake the box.

    Args:
        times: how often
    """
    raise AssertionError("the environment answers")


class Box(TextEnv):
    """Look into the box, and say the letter that is in it."""

    tools = {"look": look, "shake": shake}  # noqa: RUF012  # it is never changed

    def __init__(self, split: str = "train", max_turns: int = 3) -> None:
        rubric = Rubric(
            {
                "looked": lambda found, _: found[:1] == "1",
                "right": lambda found, letter: found[1:] == letter,
            }
        )
        source = Generated(draw, name="Box", split=split)
        super().__init__(source, rubric, max_turns=max_turns)

    def begin(self, task: Task) -> State:
        return State(task, data=0)

    def respond(self, state: State, reply: str) -> Turn:
        call = re.fullmatch(r"<tool_call>\n(.*)\n</tool_call>", reply)
        if call is None:
            return Turn.end()
        named = json.loads(call[1])
        if named["name"] == "look":
            state.data += 1
            return Turn.say(state.task.reference, role="tool")
        if named["arguments"]["times"] > 9:
            raise OSError("the box broke")
        return Turn.say(f"shook {named['arguments']['times']}", role="tool")

    def answer(self, state: State) -> str:
        return f"{state.data}{state.reply}"


def draw(rng) -> Task:
    return Task("?" * int(rng.integers(1, 4)), reference="ab"[int(rng.integers(2))])


register("test-trl/Box-v0", Box)
SPEC = TRLSpec("test-trl/Box-v0", size=64)


@pytest.fixture
def beginner(pocket):
    """A model that has seen how it is done, and does it now and then."""
    model, tokenizer = pocket("ab?=>", added=(LOOK, SHAKE), template=TEMPLATE)
    tokenizer.response_template = RESPONSE
    shown = [f"{'?' * n}>{LOOK}<eos>={x}>{x}<eos>" for n in (1, 2, 3) for x in "ab"]
    batch = tokenizer(shown, return_tensors="pt", padding=True)
    labels = batch.input_ids.masked_fill(batch.attention_mask == 0, -100)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    for _ in range(40):
        loss = model(batch.input_ids, attention_mask=batch.attention_mask, labels=labels).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if loss < 0.9:
            break
    return model, tokenizer


def test_training_with_tools_raises_the_reward(beginner, train, rewards) -> None:
    trainer = train(SPEC, *beginner, steps=20, learning_rate=0.01)
    found = rewards(trainer)
    assert sum(found[-3:]) / 3 > sum(found[:3]) / 3 + 0.2
    for name in ("rewards/test_trl_Box_v0/mean", "parts/looked", "parts/right"):
        assert name in trainer.state.log_history[-2]


def test_the_class_shows_the_model_nothing_but_the_tools() -> None:
    factory = SPEC.environment_factory
    one, other = factory(), factory()
    assert type(one) is type(other)
    assert type(one).__name__ == "test_trl_Box_v0"  # TRL's name for a column of rewards
    functions = inspect.getmembers(type(one), predicate=inspect.isfunction)
    public = {name for name, _ in functions if not name.startswith("_")}
    assert public == {"reset", "look", "shake"}
    own = TRLSpec("test-trl/Box-v0", own_reward=True)
    assert hasattr(own.environment_factory(), "get_reward")
    assert "reward_funcs" not in own.kwargs()


def test_a_schema_has_the_tools_words_and_types_and_hides_the_state() -> None:
    from transformers.utils import get_json_schema

    schema = get_json_schema(SPEC.environment_factory().shake)["function"]
    assert schema["description"] == "Shake the box."
    assert schema["parameters"]["properties"] == {
        "times": {"type": "integer", "description": "how often"}
    }
    assert schema["parameters"]["required"] == ["times"]


def say(*turns: str):
    return [{"role": "assistant", "content": turn} for turn in turns]


def test_an_episode_is_what_the_tools_did_and_the_words_of_the_last_turn() -> None:
    (reward,) = SPEC.reward_funcs
    episodes = [SPEC.environment_factory() for _ in range(4)]
    metrics: dict[str, float] = {}
    for episode in episodes:
        episode.reset(prompt=[], assay_task=3)
    letter = make("test-trl/Box-v0").task(3).reference
    assert episodes[0].look() == episodes[1].look() == letter
    assert episodes[2].shake(times=2) == "shook 2"
    called = {**say("")[0], "tool_calls": [{"type": "function"}]}
    scores = reward(
        completions=[say(letter), [*say("", "?")], say(letter), [called]],
        assay_task=[3] * 4,
        environments=episodes,
        log_metric=metrics.__setitem__,
    )
    assert scores == [1.0, 0.5, 0.5, 0.0]
    assert metrics["parts/looked"] == metrics["parts/right"] == 0.5
    assert metrics["episode/turns"] == pytest.approx((2 + 2 + 2 + 1) / 4)
    assert metrics["episode/truncated"] == 0.25  # a call that TRL left off before it was made


def test_a_tool_that_breaks_leaves_no_score() -> None:
    (reward,) = SPEC.reward_funcs
    episode = SPEC.environment_factory()
    with pytest.raises(RuntimeError, match="the episode is over"):
        episode.look()
    episode.reset(assay_task=0)
    with pytest.raises(OSError, match="the box broke"):
        episode.shake(times=10)  # TRL tells the model so
    with pytest.raises(RuntimeError, match="the episode is over"):
        episode.look()
    extra: dict[str, list[str]] = {}
    given = {"completions": [say("a")], "assay_task": [0], "environments": [episode]}
    assert reward(**given, log_extra=extra.__setitem__) == [None]
    assert extra["reason"] == ["tool shake raised OSError: the box broke"]
    episode.reset(assay_task=0)
    assert episode.look() in "ab"


def test_an_environments_own_reward_judges_what_the_tools_did() -> None:
    factory = pickle.loads(pickle.dumps(TRLSpec("test-trl/Box-v0", own_reward=True)))
    episode = factory.environment_factory()
    with pytest.raises(RuntimeError, match="no episode to judge"):
        episode.get_reward()
    episode.reset(assay_task=0)
    assert episode.get_reward() == 0.0
    episode.reset(assay_task=0)
    episode.look()
    assert episode.get_reward() == 0.5


def test_what_trl_cannot_show_to_a_model_is_refused() -> None:
    with pytest.raises(TypeError, match="has no tools"):
        TRLSpec("assay/Arithmetic-v1", mode="tools").environment_factory()
    with pytest.raises(ValueError, match="column 'assay_task', which is missing"):
        SPEC.environment_factory().reset(prompt=[])

    def undocumented(times: int) -> str: ...

    def untyped(times) -> str:
        """Do it.

        Args:
            times: how often
        """

    def bare() -> str: ...

    for tool, fault in ((undocumented, "times"), (untyped, "times"), (bare, "docstring")):
        with pytest.raises(TypeError, match=fault):
            _method("tool", tool)
    with pytest.raises(TypeError, match="can have no tool called 'reset'"):
        _method("reset", look)


def test_an_environment_with_tools_needs_no_more() -> None:
    class Counter(Toolset):
        """Counts what was added."""

        def __init__(self) -> None:
            self.total = 0

        def add(self, number: int) -> int:
            """Add to the counter.

            Args:
                number: what to add
            """
            if number < 0:
                raise ToolError("only what is above zero")
            self.total += number
            return self.total

    def build(tell: str = "system", ways: tuple[str, ...] = ("tags",)) -> TextEnv:
        source = Rows([Task("Add 2 and 3", "5")])
        kit = [Counter(), fails]
        return ToolEnv(source, Exact(), tools=kit, tell=tell, ways=ways)

    def fails() -> str:
        """Fail."""
        raise OSError("out of order")

    register("test-trl/Counter-v0", build)
    spec = TRLSpec("test-trl/Counter-v0", size=1)
    assert spec.resolved() == "tools"
    # The chat template tells of the tools, so the prompt does not.
    assert spec.train_dataset[0]["prompt"] == [{"role": "user", "content": "Add 2 and 3"}]
    in_text = TRLSpec("test-trl/Counter-v0", size=1, mode="turns").train_dataset[0]["prompt"]
    assert [m["role"] for m in in_text] == ["system", "user"]
    (reward,) = spec.reward_funcs
    first, second = (spec.environment_factory() for _ in range(2))
    for episode in (first, second):
        episode.reset(assay_task=0)
    assert (first.add(number=2), second.add(number=7), first.add(number=3)) == ("2", "7", "5")
    assert "above zero" in first.add(number=-1)
    assert "number must be a whole number" in first.add(number="x")
    assert second.fails() == "The episode is over."
    given = {"assay_task": [0] * 2, "environments": [first, second]}
    assert reward(completions=[say("", "5"), say("", "5")], **given) == [1.0, None]
    other = TRLSpec("test-trl/Counter-v0", env_kwargs={"ways": ("json",)})
    with pytest.raises(TypeError, match=r"reads calls as json.*mode='turns'"):
        other.environment_factory()


def test_tags_within_an_argument_reach_the_tool() -> None:
    episode = TRLSpec("assay/CodeRepair-v1", size=1).environment_factory()
    for text in ("print('</tool_call>')", "<think>", "</think>", "<tool_call>"):
        episode.reset(assay_task=0)
        episode.write_file(path="note.txt", content=text)
        assert episode.read_file(path="note.txt") == text
