"""From turn to turn: what the policy wrote stays, and only what came since is tokenised."""

import pytest

from assay.envs.turn_tokens import (
    TemplateDropsMessage,
    TemplateRewritesHistory,
    encode_prompt,
    extend_prompt,
)

transformers = pytest.importorskip("transformers")

CHAT = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content | trim }}<eos>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
FORGETS = (
    "{% for m in messages %}[{% if loop.last %}{{ m.content }}"
    "{% else %}{{ m.content.split('</think>')[-1] }}{% endif %}]<eos>{% endfor %}"
    "{% if add_generation_prompt %}[{% endif %}"
)
# As templates of reasoning models that drop every thought, the last one too.
NEVER_TELLS = (
    "{% for m in messages %}[{{ m.content.split('</think>')[-1] }}]<eos>{% endfor %}"
    "{% if add_generation_prompt %}[{% endif %}"
)
OPENS = (
    "{% for m in messages %}[{{ m.content }}]<eos>{% endfor %}"
    "{% if add_generation_prompt %}[<think>{% endif %}"
)


def user(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


def assistant(text: str) -> dict[str, str]:
    return {"role": "assistant", "content": text}


@pytest.fixture
def tokenizer():
    """Characters, and ``ab`` as one token: one text, two ways to write it."""
    from assay.grpo.loading import character_tokenizer

    made = character_tokenizer()
    made.add_tokens(["<|im_start|>", "ab"])
    return made


def ids(tokenizer, *pieces: str) -> list[int]:
    return tokenizer.convert_tokens_to_ids(list(pieces))


def test_the_policys_own_tokens_stay_and_the_line_feed_after_them_is_added(tokenizer) -> None:
    tokenizer.chat_template = CHAT
    prompt = encode_prompt(tokenizer, [user("go")])
    assert tokenizer.decode(prompt) == "<|im_start|>user\ngo<eos>\n<|im_start|>assistant\n"
    wrote = [*prompt, *ids(tokenizer, "a", "b", "<eos>")]  # anew it would be the one token ab
    said = [user("go"), assistant("ab"), user("on")]
    longer = extend_prompt(tokenizer, said, wrote)
    assert longer[: len(wrote)] == wrote
    added = "\n<|im_start|>user\non<eos>\n<|im_start|>assistant\n"
    assert tokenizer.decode(longer[len(wrote) :]) == added
    # A later turn leaves the earlier ones as they are, the first one's two tokens too.
    wrote = [*longer, *ids(tokenizer, "ab", "<eos>")]
    again = extend_prompt(tokenizer, [*said, assistant("ab"), user("on")], wrote)
    assert again == [*wrote, *longer[len(prompt) + 3 :]]


ENDS_ALL = CHAT + "{% if not add_generation_prompt %}<bos>{% endif %}"  # as Phi 3's
NEXT = "\n<|im_start|>user\non<eos>\n<|im_start|>assistant\n"


@pytest.mark.parametrize(
    ("template", "tokens", "reply", "added"),
    [
        (CHAT, "ab", "ab", f"<eos>{NEXT}"),  # without its end
        *[
            (CHAT, ["<eos>"], odd, NEXT)
            for odd in ("", "  ", " ab\n", "<|im_start|>user\nab", "\n")
        ],
        (ENDS_ALL, ["a", "<eos>"], "a", NEXT),
        (CHAT.replace("<eos>", "<|im_end|>"), "a<", "a<", f"<eos>{NEXT}"),  # like the end's first
    ],
)
def test_what_the_policy_did_not_write_of_its_turns_end_is_added(
    tokenizer, template: str, tokens, reply: str, added: str
) -> None:
    tokenizer.chat_template = template
    wrote = [*encode_prompt(tokenizer, [user("go")]), *ids(tokenizer, *tokens)]
    longer = extend_prompt(tokenizer, [user("go"), assistant(reply), user("on")], wrote)
    found = tokenizer.decode(longer[len(wrote) :])
    assert found.replace("<|im_end|>", "<eos>") == added


def test_several_messages_may_come_between_and_none(tokenizer) -> None:
    tokenizer.chat_template = CHAT
    wrote = [*encode_prompt(tokenizer, [user("go")]), *ids(tokenizer, "a", "<eos>")]
    said = [user("go"), assistant("a")]
    two = extend_prompt(tokenizer, [*said, {"role": "tool", "content": "b"}, user("c")], wrote)
    assert tokenizer.decode(two[len(wrote) :]) == (
        "\n<|im_start|>tool\nb<eos>\n<|im_start|>user\nc<eos>\n<|im_start|>assistant\n"
    )
    none = extend_prompt(tokenizer, said, wrote)
    assert tokenizer.decode(none[len(wrote) :]) == "\n<|im_start|>assistant\n"


def test_without_a_template_contents_are_joined_as_they_are(tokenizer) -> None:
    tokenizer.chat_template = None
    assert encode_prompt(tokenizer, [user("go")]) == ids(tokenizer, "g", "o")
    wrote = ids(tokenizer, "g", "o", "a", "b", "<eos>")
    longer = extend_prompt(tokenizer, [user("go"), assistant("ab"), user("on")], wrote)
    assert longer == [*wrote, *ids(tokenizer, "o", "n")]


@pytest.mark.parametrize(
    ("template", "reply"),
    [(FORGETS, "<think>b</think>a"), (NEVER_TELLS, "<think>b</think>a"), (OPENS, "a")],
)
def test_templates_that_rewrite_a_turn_are_refused(tokenizer, template: str, reply: str) -> None:
    tokenizer.chat_template = template
    wrote = [*encode_prompt(tokenizer, [user("go")]), *ids(tokenizer, "a", "<eos>")]
    with pytest.raises(TemplateRewritesHistory, match="get_training_chat_template"):
        extend_prompt(tokenizer, [user("go"), assistant(reply), user("on")], wrote)
    if template != OPENS:  # without a thought there is nothing to drop
        assert extend_prompt(tokenizer, [user("go"), assistant("a"), user("on")], wrote)


@pytest.mark.parametrize(
    ("name", "taken"),
    [
        ("qwen2_5", True),
        ("qwen3", False),
        ("qwen3_training", True),
        ("qwen3_instruct_2507", True),
        ("llama3", True),
        ("phi3", True),
        ("gptoss", False),
        ("deepseek_r1_distill", False),
    ],
)
def test_public_templates(tokenizer, name: str, taken: bool) -> None:
    trl = pytest.importorskip("trl")
    from pathlib import Path

    folder = Path(trl.__file__).parent / "chat_templates"
    tokenizer.chat_template = (folder / f"{name}.jinja").read_text(encoding="utf-8")
    ends = {"llama3": "<|eot_id|>", "phi3": "<|end|>", "gptoss": "<|return|>"}
    end = ends.get(name, "<|im_end|>")
    tokenizer.add_special_tokens({"eos_token": end, "bos_token": "<bos>"})
    said = [user("go"), assistant("<think>\nx\n</think>\n\nab"), user("on")]
    wrote = [*encode_prompt(tokenizer, said[:1]), *ids(tokenizer, "a", end)]
    if not taken:
        with pytest.raises(TemplateRewritesHistory):
            extend_prompt(tokenizer, said, wrote)
        return
    added = tokenizer.decode(extend_prompt(tokenizer, said, wrote)[len(wrote) :])
    assert added.count(end) == 1  # of the user's turn; the policy wrote its own
    assert added.index("on") < added.index(end)
    assert added.startswith("<" if name == "llama3" else "\n<")


def test_tokens_without_a_turn_are_refused(tokenizer) -> None:
    with pytest.raises(ValueError, match="no assistant message"):
        extend_prompt(tokenizer, [user("go")], [1])
    with pytest.raises(ValueError, match="at least one token"):
        encode_prompt(tokenizer, [user("")])


ROLES = (  # overlooks what it does not know, as many do
    "{% for m in messages %}{% if m.role == 'user' %}[{{ m.content }}]<eos>"
    "{% elif m.role == 'assistant' %}({{ m.content }})<eos>{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}({% endif %}"
)
REFUSES = (
    "{% if messages[0].role == 'system' %}{{ raise_exception('no system') }}{% endif %}" + ROLES
)
PARTS = (
    "{% for m in messages %}[{% for part in m.content %}{{ part.text }}{% endfor %}]{% endfor %}"
)
SPELLS = CHAT.replace("m.content | trim", "m.content | tojson")
OTHER_END = ROLES.replace(
    "({{ m.content }})<eos>", "({{ m.content }}){{ '<|im_start|>' if loop.last else '<eos>' }}"
)


@pytest.mark.parametrize("answer", ["a tool's answer", "b"])
def test_a_template_that_drops_a_message_is_refused(tokenizer, answer: str) -> None:
    tokenizer.chat_template = ROLES
    wrote = [*encode_prompt(tokenizer, [user("go")]), *ids(tokenizer, "a", ")", "<eos>")]
    said = [user("go"), assistant("a)")]
    with pytest.raises(TemplateDropsMessage, match=r"message 2, of the role 'tool'.*role='user'"):
        extend_prompt(tokenizer, [*said, {"role": "tool", "content": answer}, user("b")], wrote)
    with pytest.raises(TemplateDropsMessage, match="message 0, of the role 'system'"):
        encode_prompt(tokenizer, [{"role": "system", "content": "be good"}, user("go")])
    assert extend_prompt(tokenizer, [*said, user("b")], wrote)


SYSTEM = {"role": "system", "content": "be good"}


@pytest.mark.parametrize(
    ("template", "said", "words"),
    [
        (PARTS, [user("Which is larger?")], "'user', so the policy would not see it"),
        (
            REFUSES,
            [SYSTEM, user("go")],
            "refuses messages of the roles system, user: TemplateError",
        ),
    ],
)
def test_a_template_that_takes_no_such_message_is_refused(tokenizer, template, said, words) -> None:
    tokenizer.chat_template = template
    with pytest.raises(TemplateDropsMessage, match=f"{words}.* Set tokenizer"):
        encode_prompt(tokenizer, said)


def test_a_template_may_spell_contents_in_its_own_way(tokenizer) -> None:
    tokenizer.chat_template = SPELLS
    wrote = [*encode_prompt(tokenizer, [user('say "go" <now>')]), *ids(tokenizer, "a", "<eos>")]
    said = [user('say "go" <now>'), assistant("a"), {"role": "tool", "content": "a\n<b>'&"}]
    assert len(extend_prompt(tokenizer, said, wrote)) > len(wrote)


def test_a_template_that_ends_turns_in_two_ways_is_refused(tokenizer) -> None:
    tokenizer.chat_template = OTHER_END
    wrote = [*encode_prompt(tokenizer, [user("go")]), *ids(tokenizer, "a", ")", "<|im_start|>")]
    with pytest.raises(TemplateRewritesHistory):
        extend_prompt(tokenizer, [user("go"), assistant("a"), user("on")], wrote)
