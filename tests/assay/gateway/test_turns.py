"""The tree of turns: what was sampled stays, whatever a program sends back."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("transformers")

from assay.gateway.turns import Prompt, TurnTree
from assay.grpo.loading import character_tokenizer

PLAIN = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<eos>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
FORGETS = PLAIN.replace(
    "{{ m.content }}", "{{ m.content if loop.last else m.content.split('</think>')[-1] }}"
)
TOOLS = (
    "{% if tools %}<|im_start|>tools\n{{ tools | tojson }}<eos>\n{% endif %}"
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}"
    "{% for c in m.tool_calls or [] %}CALL {{ c.function | tojson }}{% endfor %}<eos>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
SCHEMA = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}


def made(template: str):
    tokenizer = character_tokenizer()
    tokenizer.add_tokens(["<|im_start|>", "ab", "<think>", "</think>"])
    tokenizer.chat_template = template
    return tokenizer


TOKENIZERS = {name: made(t) for name, t in (("plain", PLAIN), ("think", FORGETS), ("tools", TOOLS))}


def user(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


def answer(tree: TurnTree, messages: list, pieces: list[str], tools=()):
    """Have the model reply with these tokens, and give the conversation that follows."""
    tokenizer = tree.tokenizer
    prompt = tree.prompt(messages, tools)
    ids = tokenizer.convert_tokens_to_ids(pieces)
    text = tokenizer.decode(ids, skip_special_tokens=True)
    message = {"role": "assistant", "content": text}
    turn = tree.add(prompt, ids, [-float(i + 1) for i in range(len(ids))], message, text)
    return turn, [*messages, message]


@settings(max_examples=150, deadline=None)
@given(st.data(), st.sampled_from(sorted(TOKENIZERS)))
def test_any_tree_keeps_what_was_sampled(data, name: str) -> None:
    """Whatever is continued, forked or edited: each sampled token is masked once, as it was."""
    tree = TurnTree(TOKENIZERS[name])
    tools = [SCHEMA] if name == "tools" else []
    words = st.lists(st.sampled_from(["a", "b", "ab", " ", "</think>", "1"]), max_size=5)
    conversations = [[user("go")]]
    for _ in range(data.draw(st.integers(1, 6))):
        messages = data.draw(st.sampled_from(conversations))
        if data.draw(st.booleans()):
            messages = [*messages, user("".join(data.draw(words)) + "on")]
        if data.draw(st.integers(0, 9)) == 0 and messages[-1]["role"] == "user":
            messages = [*messages[:-1], {"role": "assistant", "content": "edited"}, messages[-1]]
        pieces = data.draw(words) + data.draw(st.sampled_from([["<eos>"], ["a"]]))
        turn, after = answer(tree, messages, pieces, tools)
        conversations.append(after)
        parent = turn.prompt.parent
        if parent:
            assert turn.prompt.ids[: len(parent.tokens)] == parent.tokens
            added = turn.prompt.rendered[len(parent.rendered) :]
            edited = any(m["role"] == "assistant" for m in added)
            assert turn.prompt.begins == ("edited" if edited else "")
        else:
            assert turn.prompt.begins in ("first", "edited", "rewritten")
            fresh = tree.tokenizer.apply_chat_template(
                messages, tools=tools or None, tokenize=False, add_generation_prompt=True
            )
            assert tree.tokenizer.decode(turn.prompt.ids) == fresh
    branches = tree.branches()
    trained = [
        (span.ids, span.logprobs) for b in branches for span in b.spans if span.author == "model"
    ]
    assert sorted(trained) == sorted((t.ids, t.logprobs) for t in tree.turns)
    for branch in branches:
        assert branch.ids == branch.turns[-1].tokens
        assert len(branch.mask) == len(branch.logprobs) == len(branch.ids)
        assert all(mine or not p for mine, p in zip(branch.mask, branch.logprobs, strict=True))
    assert branches[0].turns[-1] is tree.turns[-1] or tree.turns[-1].children


def test_a_reply_is_continued_by_its_own_ids_and_not_by_its_text() -> None:
    tree = TurnTree(TOKENIZERS["plain"])
    first, messages = answer(tree, [user("go")], ["a", "b", "<eos>"])  # anew it were the token ab
    second, _ = answer(tree, [*messages, user("on")], ["1", "<eos>"])
    assert second.prompt.parent is first
    (branch,) = tree.branches()
    assert branch.ids[len(first.prompt.ids) :][:3] == first.ids
    assert sum(branch.mask) == 5
    assert [p for p in branch.logprobs if p] == [-1, -2, -3, -1, -2]


def test_a_template_that_drops_thoughts_begins_a_branch_that_says_so() -> None:
    tree = TurnTree(TOKENIZERS["think"])
    _, messages = answer(tree, [user("go")], ["<think>", "a", "</think>", "b", "<eos>"])
    second, _ = answer(tree, [*messages, user("on")], ["1", "<eos>"])
    assert second.prompt.begins == "rewritten"
    assert "drop thoughts" in second.prompt.why
    new, old = tree.branches()
    assert (sum(new.mask), sum(old.mask)) == (2, 5)
    assert new.to_json()["begins"] == "rewritten"
    assert "a</think>" not in tree.tokenizer.decode(new.ids)


def test_an_edited_reply_begins_a_branch() -> None:
    tree = TurnTree(TOKENIZERS["plain"])
    _, messages = answer(tree, [user("go")], [" ", "a", "<eos>"])
    stripped = [messages[0], {"role": "assistant", "content": "a"}, user("on")]
    second, _ = answer(tree, stripped, ["1"])
    assert (second.prompt.parent, second.prompt.begins) == (None, "edited")


def test_turns_before_an_edited_one_keep_their_ids() -> None:
    tree = TurnTree(TOKENIZERS["plain"])
    first, messages = answer(tree, [user("go")], ["a", "b", "<eos>"])
    _, messages = answer(tree, [*messages, user("on")], ["1", "<eos>"])
    edited = [*messages[:3], {"role": "assistant", "content": "2"}, user("on")]
    third, _ = answer(tree, edited, ["1", "<eos>"])
    assert (third.prompt.parent, third.prompt.begins) == (first, "edited")
    assert third.prompt.ids[: len(first.tokens)] == first.tokens
    assert tree.tokenizer.decode(third.prompt.ids) == tree.tokenizer.apply_chat_template(
        edited, tokenize=False, add_generation_prompt=True
    )
    newest, other = tree.branches()
    assert (newest.to_json()["begins"], other.to_json()["begins"]) == ("edited", "first")
    assert (sum(newest.mask), sum(other.mask)) == (5, 2)


def test_other_tools_are_another_prompt() -> None:
    tree = TurnTree(TOKENIZERS["tools"])
    _, messages = answer(tree, [user("go")], ["a", "<eos>"], [SCHEMA])
    assert tree.prompt([*messages, user("on")], [SCHEMA]).parent
    assert tree.prompt([*messages, user("on")], []).begins == "edited"


def test_a_call_comes_back_parsed_and_its_ids_stay() -> None:
    """The program sends calls as objects; what the model wrote is not rendered from them."""
    tree = TurnTree(TOKENIZERS["tools"])
    prompt = tree.prompt([user("go")], [SCHEMA])
    ids = tree.tokenizer.convert_tokens_to_ids(["a", "b", "<eos>"])
    call = {"id": "1", "type": "function", "function": {"name": "look", "arguments": {}}}
    message = {"role": "assistant", "content": "", "tool_calls": [call]}
    turn = tree.add(prompt, ids, [-1.0] * 3, message, "ab")
    again = {"role": "assistant", "content": None, "tool_calls": [{**call, "id": "2"}]}
    seen = {"role": "tool", "content": "seen", "tool_call_id": "2"}
    longer = tree.prompt([user("go"), again, seen], [SCHEMA])
    assert longer.parent is turn
    added = tree.tokenizer.decode(longer.ids[len(turn.tokens) :])
    assert added == "\n<|im_start|>tool\nseen<eos>\n<|im_start|>assistant\n"


def test_an_episode_may_have_more_turns_than_python_has_frames() -> None:
    tree, prompt = TurnTree(TOKENIZERS["plain"]), Prompt((1,))
    for _ in range(1200):
        turn = tree.add(prompt, [3], [-1.0], {"role": "assistant", "content": "x"}, "x")
        prompt = Prompt((*turn.tokens, 2), turn)
    (branch,) = tree.branches()
    assert (len(branch.turns), sum(branch.mask)) == (1200, 1200)


def test_equal_replies_of_one_prompt_are_each_continued() -> None:
    tree = TurnTree(TOKENIZERS["plain"])
    one, messages = answer(tree, [user("go")], ["a", "b", "<eos>"])
    two, _ = answer(tree, [user("go")], ["ab", "<eos>"])
    first, _ = answer(tree, [*messages, user("on")], ["1"])
    second, _ = answer(tree, [*messages, user("on")], ["1"])
    assert {first.prompt.parent, second.prompt.parent} == {one, two}
    assert len(tree.branches()) == 2


def test_prompts_of_another_server_are_placed_by_their_ids() -> None:
    tree = TurnTree(TOKENIZERS["plain"])
    one = tree.add(tree.place([1, 2]), [3], [-1.0], {"role": "assistant", "content": "x"}, "x")
    two = tree.add(
        tree.place([1, 2, 3, 4]), [5], [-1.0], {"role": "assistant", "content": "y"}, "y"
    )
    other = tree.place([1, 2, 9])
    assert two.prompt.parent is one
    assert (other.parent, other.begins) == (None, "rewritten")
