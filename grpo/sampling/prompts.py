"""The tokens of conversations, each encoded once for all its copies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from ...envs import Conversation
from ...envs.turn_tokens import extend_prompt


def encode_all(
    tokenizer: Any,
    conversations: Sequence[Conversation],
    prefixes: Sequence[Sequence[int]],
    options: Mapping[str, Any] | None = None,
) -> list[list[int]]:
    """Token ids of each conversation, beginning with its prefix.

    Args:
        tokenizer: see :func:`~assay.envs.turn_tokens.extend_prompt`.
        conversations: what was said so far.
        prefixes: for each, all tokens up to the end of the policy's last turn.
        options: given to the chat template.

    Raises:
        ValueError: there are options, and the tokenizer has no chat template.
        TemplateRewritesHistory: the chat template does not keep the turns that are over.
    """
    if options and not tokenizer.chat_template:
        raise ValueError(
            f"chat_template_kwargs={dict(options)} has no effect, as the tokenizer has no chat "
            "template: leave it at None, or set tokenizer.chat_template"
        )
    prompts: list[list[int]] = []
    asked = zip(conversations, prefixes, strict=True)
    for (conversation, prefix), copies in groupby(asked):
        ids = extend_prompt(tokenizer, conversation, prefix, options)
        prompts += [ids for _ in copies]
    return prompts
