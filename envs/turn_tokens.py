"""From messages to tokens, turn after turn: what was written stays as it is, the rest is added."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .task import Conversation, Message

_WORDS = "the assistant's words stand here"


_SURELY_SHOWN = 8  # characters that a template does not hold by chance


class TemplateRewritesHistory(ValueError):
    """A chat template puts a turn that is over differently from how it was written."""


class TemplateDropsMessage(ValueError):
    """A chat template refuses messages of a role, or shows nothing of them."""


def encode_prompt(
    tokenizer: Any, conversation: Conversation, options: Mapping[str, Any] | None = None
) -> list[int]:
    """Return token ids of a conversation up to the assistant's next turn.

    Args:
        tokenizer: where it has a chat template that is applied, with the prompt for the
            assistant's turn; if it has none, the messages' contents are joined as they are.
        conversation: what was said so far.
        options: given to the chat template.

    Raises:
        TemplateDropsMessage: the chat template refuses a message, or does not show it.
        ValueError: it comes to no tokens at all.
    """
    messages = [dict(m) for m in conversation]
    text = _render(tokenizer, messages, options)
    _refuse_dropped(tokenizer, messages, 0, text, text, options)
    ids = _ids(tokenizer, text)
    # A chat template writes the first token itself; a base model was never trained without it.
    begin = [] if tokenizer.chat_template else tokenizer(text)["input_ids"][:1]
    if begin == [getattr(tokenizer, "bos_token_id", None)] != ids[:1]:
        ids = [*begin, *ids]
    if not ids:
        raise ValueError(f"a prompt must come to at least one token, got none from {messages!r}")
    return ids


def extend_prompt(
    tokenizer: Any,
    conversation: Conversation,
    prefix: Sequence[int],
    options: Mapping[str, Any] | None = None,
    last: int | None = None,
) -> list[int]:
    """Extend the tokens so far by those of the new messages.

    Text does not determine its tokens, so the policy's turns are never tokenised
    again: only what the chat template adds after the last of them is. If the policy wrote
    the end-of-turn token itself, it is not added twice; the line feed that many templates
    put after it is the environment's.

    Args:
        tokenizer: as for :func:`encode_prompt`.
        conversation: all messages.
        prefix: all tokens up to the end of the policy's last turn; empty before the first.
        options: given to the chat template.
        last: index of that turn; by default the last assistant message.

    Returns:
        Token ids; they begin with ``prefix``.

    Raises:
        TemplateRewritesHistory: the chat template does not keep the turns that are over.
        TemplateDropsMessage: it refuses a message that came since, or does not show it.
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
    last = turns[-1] if last is None else last
    if tokenizer.chat_template:
        added = _added(tokenizer, messages, last, _text(tokenizer, prefix[-1]), options)
    else:
        added = "".join(m["content"] for m in messages[last + 1 :])
    return [*prefix, *_ids(tokenizer, added)]


def _added(
    tokenizer: Any,
    messages: Sequence[Message],
    last: int,
    end: str,
    options: Mapping[str, Any] | None,
) -> str:
    """Return what the template writes after message ``last``, whose last token is ``end``."""
    before, turn, after = messages[:last], messages[last], messages[last + 1 :]
    asked = _render(tokenizer, before, options)
    whole = _render(tokenizer, messages, options)
    other = _render(tokenizer, [*before, {**turn, "content": _WORDS}, *after], options)
    place = other.find(_WORDS, len(asked))
    added = other[place + len(_WORDS) :]
    words = whole[len(asked) : len(whole) - len(added)]
    same = whole.startswith(asked) and other.startswith(asked) and whole.endswith(added)
    kept = place >= 0 and same and _squeezed(turn["content"]) in _squeezed(words)
    # The policy has written the token that ended its turn, if one did. Where none did, the last of
    # its words may look like the beginning of the template's end.
    ending = not turn["content"].endswith(end)
    if ending and end not in added:
        ended = _render(tokenizer, messages[: last + 1], options, ask=False)
        kept = kept and not ended.rstrip().endswith(end)  # it ends turns that are over otherwise
    if not kept:
        raise TemplateRewritesHistory(
            f"the chat template puts turn {last} of the conversation differently once it is over "
            "(many drop thoughts), so the next turn cannot extend the tokens that the policy "
            "wrote. Set tokenizer.chat_template to one that keeps turns as they were: "
            "trl.chat_template_utils.get_training_chat_template(tokenizer) has them for common "
            "models"
        )
    _refuse_dropped(tokenizer, messages, last + 1, added, whole, options)
    return added.removeprefix(end) if ending else added


def _refuse_dropped(
    tokenizer: Any,
    messages: Sequence[Message],
    first: int,
    text: str,
    whole: str,
    options: Mapping[str, Any] | None,
) -> None:
    """Refuse a template that shows no message from ``first`` on in ``text``, part of the whole."""
    for place, message in enumerate(messages[first:], start=first):
        content = _squeezed(message["content"])
        if not content or (len(content) >= _SURELY_SHOWN and content in _squeezed(text)):
            continue
        # Templates may spell a content as JSON, say: shown is what makes a difference.
        others = [*messages[:place], {**message, "content": _WORDS}, *messages[place + 1 :]]
        if _render(tokenizer, others, options) == whole:
            raise TemplateDropsMessage(
                f"the chat template shows nothing of message {place}, of the role "
                f"{message['role']!r}, so the policy would not see it. {_REMEDY}"
            )


_REMEDY = (
    "Set tokenizer.chat_template to one that knows all roles and takes contents that are text. "
    "For answers of tools ToolEnv(role='user') will do; for the system message, to put its words "
    "into the user's"
)


def _render(
    tokenizer: Any,
    messages: Sequence[Message],
    options: Mapping[str, Any] | None,
    *,
    ask: bool = True,
) -> str:
    """Render messages and, with ``ask``, the prompt for the assistant's turn."""
    if not tokenizer.chat_template:
        return "".join(m["content"] for m in messages)
    try:
        text: str = tokenizer.apply_chat_template(
            list(messages), tokenize=False, add_generation_prompt=ask, **(options or {})
        )
    except Exception as error:  # jinja's own, and whatever a template's code may raise
        roles = ", ".join(m["role"] for m in messages)
        raise TemplateDropsMessage(
            f"the chat template refuses messages of the roles {roles}: "
            f"{type(error).__name__}: {error}. {_REMEDY}"
        ) from error
    return text


def _ids(tokenizer: Any, text: str) -> list[int]:
    ids: list[int] = tokenizer(text, add_special_tokens=False)["input_ids"]
    return ids


def _text(tokenizer: Any, token: int) -> str:
    text: str = tokenizer.decode([token], skip_special_tokens=False)
    return text


def _squeezed(text: str) -> str:
    """Remove white space, which templates trim and add."""
    return "".join(text.split())
