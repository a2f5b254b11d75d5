"""Tools in TRL's GRPOTrainer: what the model may call, what it earns, trained for real."""

import inspect
import json
import pickle
import re

import pytest

from assay.envs import Generated, State, Task, TextEnv, TRLSpec, Turn, make, register
from assay.verifiers import Rubric, Verdict

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


def shake(state: State, times: int) -> str:
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
