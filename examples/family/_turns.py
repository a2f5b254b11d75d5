"""Worked episodes of several turns as tokens, for a tiny model's supervised start."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from assay.grpo import Row


def worked_row(tokenizer: Any, prompt: str, turns: Sequence[tuple[str, str]]) -> Row:
    """Tokenize an episode as a rollout does.

    Args:
        tokenizer: a character tokenizer, whose chat template joins messages as they are.
        prompt: the first message.
        turns: what the policy says, and what the environment answers; nothing at the end.
    """
    ids: list[int] = []
    written: list[bool] = []
    ends = []
    for reply, said in turns:
        own = [*_ids(tokenizer, reply), tokenizer.eos_token_id]
        answer = _ids(tokenizer, said) if said else []
        ids += own + answer
        written += [True] * len(own) + [False] * len(answer)
        ends.append(len(ids) - len(answer) - 1)
    n = len(ids)
    first = tuple(_ids(tokenizer, prompt))
    return Row(first, tuple(ids), tuple(written), (0.0,) * n, (1.0,) * n, ends=tuple(ends))


def _ids(tokenizer: Any, text: str) -> list[int]:
    ids: list[int] = tokenizer(text, add_special_tokens=False)["input_ids"]
    return ids
