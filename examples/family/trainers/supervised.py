"""Supervised training: on given replies, on the policy's own right ones, and as a warm start."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from assay.envs import Conversation, Episode, EpisodeGroup, Task
from assay.envs.turn_tokens import encode_prompt
from assay.grpo import ModelPolicy, Row, evaluate
from assay.grpo.batch import row_of
from assay.grpo.tasks import Rollout
from assay.verifiers import Status

from .fit import FitConfig, Metrics, fit
from .rows import forward_for, likelihood_gradient

Example = Task | tuple[str, str] | Row
"""A task with its solution, a prompt and a reply, or tokens."""


def sft(
    model: Any,
    tokenizer: Any,
    examples: Sequence[Example],
    config: FitConfig | None = None,
    **options: Any,
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
        options: ``out_dir``, ``resume`` and ``on_step`` of :func:`~.fit.fit`.

    Returns:
        Metrics of the steps: ``loss``, in nats a token, ``tokens``, ``grad_norm`` and ``lr``.

    Raises:
        ValueError: there is no example, or a task has no solution.
    """
    config = config or FitConfig()
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

    return fit(model, tokenizer, len(rows), gradient, config, **options)


def example_row(tokenizer: Any, example: Example) -> Row:
    """Return the tokens of an example, each to be learnt with weight 1.

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
    """Return a reply as tokens, with the end-of-sequence token after it."""
    prompt = tuple(encode_prompt(tokenizer, conversation))
    ids = (*tokenizer(reply, add_special_tokens=False)["input_ids"], tokenizer.eos_token_id)
    n = len(ids)
    return Row(prompt, ids, (True,) * n, (0.0,) * n, (1.0,) * n, ends=(n - 1,))


def episode_row(group: EpisodeGroup, episode: Episode, tokenizer: Any) -> Row:
    """Return an episode's tokens, or those of its text if it has none and one turn.

    Raises:
        ValueError: it has neither.
    """
    if tokenizer is not None and not episode.spans and len(episode.turns) == 1:
        return reply_row(tokenizer, group.task.messages, episode.completion)
    return row_of(episode)


def accepted_replies(
    groups: Sequence[EpisodeGroup], tokenizer: Any = None, *, limit: int = 4
) -> list[Row]:
    """Return the right and different replies to each task.

    Replies that were cut off are left out, and so is one that repeats another to its task token
    by token. Groups may be those of a rollout or come from storage
    (``EpisodeGroup.from_json``); groups of one task count as one.

    Args:
        groups: judged episodes.
        tokenizer: of the model that is to learn; needed for episodes without tokens.
        limit: most that are kept of a task, the first ones. Easy tasks would drown the others.

    Raises:
        ValueError: ``limit`` is below 1, or an episode has no tokens and cannot be given any.
    """
    if limit < 1:
        raise ValueError(f"limit must be at least 1, got {limit!r}")
    found: dict[tuple[int, ...], dict[tuple[int, ...], Row]] = {}
    for group in groups:
        for episode in group.episodes:
            if episode.status is not Status.CORRECT or episode.truncated:
                continue
            row = episode_row(group, episode, tokenizer)
            mine = found.setdefault(row.prompt, {})
            if len(mine) < limit:
                mine.setdefault(row.reply, row)
    return [row for rows in found.values() for row in rows.values()]


def rft(
    model: Any,
    tokenizer: Any,
    groups: Sequence[EpisodeGroup],
    config: FitConfig | None = None,
    *,
    limit: int = 4,
    **options: Any,
) -> list[Metrics]:
    """Rejection sampling fine-tuning (arXiv 2308.01825): :func:`sft` on :func:`accepted_replies`.

    The groups are sampled once, from the model that training starts with. Online RFT samples
    anew at each step: the :class:`~assay.grpo.Learner` with ``advantage="reward"``. Arguments and
    result are those of these two functions.

    Raises:
        ValueError: no reply is right.
    """
    rows = accepted_replies(groups, tokenizer, limit=limit)
    if not rows:
        total = sum(len(group.episodes) for group in groups)
        raise ValueError(
            f"none of {total} replies is right and complete, so there is nothing to learn from: "
            "sample more of each task, or take easier ones"
        )
    return sft(model, tokenizer, rows, config, **options)


@dataclass(frozen=True, slots=True)
class WarmStart:
    """How a warm start ended.

    Attributes:
        steps: optimizer steps done.
        loss: mean negative log-likelihood of a token in the last step, in nats.
        pass_at_1: of the last evaluation; NaN if there was none.
    """

    steps: int
    loss: float
    pass_at_1: float


def warm_start(
    model: Any,
    tokenizer: Any,
    tasks: Sequence[Task],
    held_out: Rollout | None = None,
    *,
    target: float = 0.3,
    max_steps: int = 1000,
    check_every: int = 25,
    batch_size: int = 128,
    learning_rate: float = 1e-3,
    weight_decay: float = 0.01,
    max_new_tokens: int = 64,
    seed: int = 0,
    progress: Callable[[WarmStart], None] | None = None,
) -> WarmStart:
    """Train on tasks' solutions by :func:`sft` until sampled replies are right often enough.

    Args:
        model: trained in place.
        tokenizer: the model's.
        tasks: each with a ``solution``.
        held_out: gives episodes of tasks to evaluate on; without it ``max_steps`` are done.
        target: stop when sampled pass@1 on them, at temperature 1, is at least this.
        max_steps: stop after so many optimizer steps.
        check_every: optimizer steps between evaluations.
        batch_size: see :class:`~.fit.FitConfig`, as for the two below.
        learning_rate: without a warm-up.
        weight_decay: of AdamW.
        max_new_tokens: of the replies that are sampled.
        seed: of the order and of the sampling.
        progress: called after each evaluation.

    Raises:
        ValueError: there is no task, or one has no solution.
        RuntimeError: ``max_steps`` did not reach the target.
    """
    if not tasks:
        raise ValueError("a warm start needs at least one task with a solution, got none")
    done = WarmStart(0, float("nan"), float("nan"))

    def check(row: Metrics) -> bool:
        nonlocal done
        if row["step"] % check_every and row["step"] < max_steps:
            return False
        passed = float("nan")
        if held_out is not None:
            policy = ModelPolicy(model, tokenizer, max_new_tokens=max_new_tokens, seed=seed)
            passed = evaluate(policy, held_out).pass_at_1
        done = WarmStart(row["step"], row["loss"], passed)
        if progress is not None:
            progress(done)
        return passed >= target

    config = FitConfig(
        steps=max_steps,
        batch_size=batch_size,
        learning_rate=learning_rate,
        warmup_steps=0,
        weight_decay=weight_decay,
        seed=seed,
    )
    sft(model, tokenizer, tasks, config, on_step=check)
    if held_out is not None and not done.pass_at_1 >= target:
        raise RuntimeError(
            f"a warm start of {done.steps} steps reached a pass@1 of {done.pass_at_1:.3f}, below "
            f"its target of {target}: give more tasks or steps, or a lower target"
        )
    return done
