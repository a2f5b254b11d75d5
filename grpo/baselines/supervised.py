"""SFT: supervised training on replies that are given."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ...envs import Conversation, Task
from ...envs.turn_tokens import encode_prompt
from ..model.batch import Row
from .fit import FitConfig, Metrics, fit, forward_for, likelihood_gradient

Example = Task | tuple[str, str] | Row
"""A task with its solution, a prompt and a reply, or tokens."""


def sft(
    model: Any,
    tokenizer: Any,
    examples: Sequence[Example],
    config: FitConfig | None = None,
    *,
    out_dir: str | Path | None = None,
    resume: bool = False,
    on_step: Callable[[Metrics], bool | None] | None = None,
) -> list[Metrics]:
    """Train on replies: ``-mean log p`` over the tokens of a step's replies.

    The end-of-sequence token after a reply is learnt too; prompts, and in episodes of several
    turns what the environment wrote, are not. Each token of a step weighs the same, however
    the step is cut into batches.

    Args:
        model: trained in place.
        tokenizer: the model's.
        examples: what is learnt.
        config: the settings; the defaults without it.
        out_dir: see :func:`fit`.
        resume: see :func:`fit`.
        on_step: see :func:`fit`.

    Returns:
        Metrics of the steps: ``loss``, in nats a token, ``tokens``, ``grad_norm`` and ``lr``.

    Raises:
        ValueError: there is no example, or a task has no solution.
    """
    config = FitConfig() if config is None else config
    rows = [example_row(tokenizer, example) for example in examples]
    if not rows:
        raise ValueError("supervised training needs at least one example, got none")
    forward = forward_for(model, rows)

    def gradient(chosen: Sequence[int]) -> Metrics:
        batch = [rows[i] for i in chosen]
        tokens = sum(row.length for row in batch)
        loss = likelihood_gradient(
            model, forward, batch, denominator=max(1, tokens), budget=config.tokens_per_batch
        )
        return {"loss": loss, "tokens": tokens}

    return fit(
        model,
        tokenizer,
        len(rows),
        gradient,
        config,
        out_dir=out_dir,
        resume=resume,
        on_step=on_step,
    )


def example_row(tokenizer: Any, example: Example) -> Row:
    """The tokens of an example, each to be learnt with weight 1.

    Raises:
        ValueError: a task has no solution.
    """
    if isinstance(example, Row):
        return replace(example, advantages=(1.0,) * len(example.reply))
    if isinstance(example, Task):
        if example.solution is None:
            raise ValueError(
                f"supervised training needs solutions, but task {example.id!r} has none"
            )
        return reply_row(tokenizer, example.messages, example.solution)
    prompt, reply = example
    return reply_row(tokenizer, [{"role": "user", "content": prompt}], reply)


def reply_row(tokenizer: Any, conversation: Conversation, reply: str) -> Row:
    """A reply as tokens, with the end-of-sequence token after it."""
    prompt = tuple(encode_prompt(tokenizer, conversation))
    ids = (*tokenizer(reply, add_special_tokens=False)["input_ids"], tokenizer.eos_token_id)
    n = len(ids)
    return Row(prompt, ids, (True,) * n, (0.0,) * n, (1.0,) * n, ends=(n - 1,))
