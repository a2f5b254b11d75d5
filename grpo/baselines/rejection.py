"""RFT: supervised training on the policy's own replies that were right."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ...envs import Episode, EpisodeGroup
from ...verifiers import Status
from ..model.batch import Row, row_of
from .fit import FitConfig, Metrics
from .supervised import reply_row, sft


def accepted_replies(
    groups: Sequence[EpisodeGroup], tokenizer: Any = None, *, limit: int = 4
) -> list[Row]:
    """The right and different replies to each task.

    Replies that were cut off are left out, and so is one that repeats another to its task token
    by token. Groups may be those of a rollout or come from storage
    (``EpisodeGroup.from_json``); groups of one task count as one.

    Args:
        groups: judged episodes.
        tokenizer: of the model that is to learn; needed for episodes without tokens.
        limit: most that are kept of a task, the first ones. Easy tasks would drown the others.

    Raises:
        ValueError: an episode has no tokens, and cannot be given any.
    """
    if limit < 1:
        raise ValueError(f"limit must be at least 1, got {limit!r}")
    found: dict[tuple[int, ...], dict[tuple[int, ...], Row]] = {}
    for group in groups:
        for episode in group.episodes:
            if episode.status is not Status.CORRECT or episode.truncated:
                continue
            row = written_row(group, episode, tokenizer)
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
    out_dir: str | Path | None = None,
    resume: bool = False,
    on_step: Callable[[Metrics], bool | None] | None = None,
) -> list[Metrics]:
    """Rejection sampling fine-tuning (arXiv 2308.01825): :func:`sft` on :func:`accepted_replies`.

    The groups are sampled once, from the model that training starts with. Online RFT samples
    anew at each step: the :class:`~assay.grpo.Learner` with ``advantage="reward"``.

    Args:
        model: trained in place.
        tokenizer: the model's.
        groups: judged episodes.
        config: see :func:`sft`.
        limit: see :func:`accepted_replies`.
        out_dir: see :func:`fit`.
        resume: see :func:`fit`.
        on_step: see :func:`fit`.

    Returns:
        As :func:`sft`.

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
    return sft(model, tokenizer, rows, config, out_dir=out_dir, resume=resume, on_step=on_step)


def written_row(group: EpisodeGroup, episode: Episode, tokenizer: Any) -> Row:
    """Tokens of an episode: its own, or those of its text where it has none and one turn.

    Raises:
        ValueError: it has neither.
    """
    if tokenizer is not None and not episode.spans and len(episode.turns) == 1:
        return reply_row(tokenizer, group.task.messages, episode.completion)
    return row_of(episode)
