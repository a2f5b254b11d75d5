"""From messages to tokens, turn after turn: what was written stays as it is, the rest is added."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .task import Conversation, Message

_WORDS = "the assistant's words stand here"


class TemplateRewritesHistory(ValueError):
    """A chat template puts a turn that is over differently from how it was written."""


def encode_prompt(
    tokenizer: Any, conversation: Conversation, options: Mapping[str, Any] | None = None
) -> list[int]:
    """Token ids of a conversation up to where the assistant is to answer.

    Args:
        tokenizer: where it has a chat template that is applied, with the prompt for the
            assistant's turn; where it has none, the messages' contents are joined as they are.
        conversation: what was said so far.
        options: given to the chat template.

    Raises:
        ValueError: it comes to no tokens at all.
    """
    messages = [dict(m) for m in conversation]
    ids = _ids(tokenizer, _render(tokenizer, messages, options, ask=True))
    if not ids:
        raise ValueError(f"a prompt must come to at least one token, got none from {messages!r}")
    return ids


def extend_prompt(
    tokenizer: Any,
    conversation: Conversation,
    prefix: Sequence[int],
    options: Mapping[str, Any] | None = None,
) -> list[int]:
    """The tokens so far, and those of what was said since.

    Text does not tell which tokens it was made of, so the policy's turns are never tokenised
    again: only what the chat template adds after the last of them is. Where the policy wrote
    the end-of-turn token itself, that is not added twice; the line feed that many templates
    put after it is the environment's.

    Args:
        tokenizer: as for :func:`encode_prompt`.
        conversation: the policy's last turn is its last assistant message.
        prefix: all tokens up to the end of that turn; empty before the first.
        options: given to the chat template.

    Returns:
        Token ids; they begin with ``prefix``.

    Raises:
        TemplateRewritesHistory: the chat template does not keep the turns that are over.
        ValueError: there are tokens, but no turn of the policy.
    """
    if not prefix:
        return encode_prompt(tokenizer, conversation, options)
    messages = [dict(m) for m in conversation]
    turns = [i for i, m in enumerate(messages) if m["role"] == "assistant"]
    if not turns:
        raise ValueError(
            "there are tokens of earlier turns, but no assistant message that they are"
        )
    last = turns[-1]
    if tokenizer.chat_template:
        added = _added(tokenizer, messages, last, options)
        # Of the turn's end the policy has written the token that ended it, if one did.
        added = added.removeprefix(_text(tokenizer, prefix[-1]))
    else:
        added = "".join(m["content"] for m in messages[last + 1 :])
    return [*prefix, *_ids(tokenizer, added)]


def _added(
    tokenizer: Any, messages: Sequence[Message], last: int, options: Mapping[str, Any] | None
) -> str:
    """What the template writes after the words of message ``last``."""
    before, turn = messages[:last], messages[last]
    asked = _render(tokenizer, before, options, ask=True)
    ended = _render(tokenizer, [*before, turn], options, ask=False)
    whole = _render(tokenizer, messages, options, ask=True)
    kept = _squeezed(turn["content"]) in _squeezed(ended[len(asked) :])
    if not (ended.startswith(asked) and whole.startswith(ended) and kept):
        raise TemplateRewritesHistory(
            f"the chat template puts turn {last} of the conversation differently once it is over "
            "(many drop thoughts), so the next turn cannot extend the tokens that the policy "
            "wrote. Set tokenizer.chat_template to one that keeps turns as they were: "
            "trl.chat_template_utils.get_training_chat_template(tokenizer) has them for common "
            "models"
        )
    stand_in = {**turn, "content": _WORDS}
    _, _, end = _render(tokenizer, [*before, stand_in], options, ask=False).rpartition(_WORDS)
    return whole[len(ended.removesuffix(end)) :]


def _render(
    tokenizer: Any, messages: Sequence[Message], options: Mapping[str, Any] | None, *, ask: bool
) -> str:
    if not tokenizer.chat_template:
        return "".join(m["content"] for m in messages)
    text: str = tokenizer.apply_chat_template(
        list(messages), tokenize=False, add_generation_prompt=ask, **(options or {})
    )
    return text


def _ids(tokenizer: Any, text: str) -> list[int]:
    ids: list[int] = tokenizer(text, add_special_tokens=False)["input_ids"]
    return ids


def _text(tokenizer: Any, token: int) -> str:
    text: str = tokenizer.decode([token], skip_special_tokens=False)
    return text


def _squeezed(text: str) -> str:
    """Without white space, which templates trim and add."""
    return "".join(text.split())
