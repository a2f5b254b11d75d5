"""From episodes to padded tensors, within a budget of tokens.

Shapes: P prompts, G replies to each (the most that any of them has), S prompt tokens, T reply
tokens. "Reply" is all that follows the prompt: the policy's tokens and, in episodes of several
turns, the environment's between them, which are masked.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ..envs import Episode


@dataclass(frozen=True, slots=True)
class Row:
    """The tokens of one episode.

    Attributes:
        prompt: token ids before the policy's first.
        reply: token ids from there on.
        written: for each reply token, whether the policy wrote it.
        logprobs: for each reply token, its log-probability when it was sampled; 0.0 where the
            environment wrote it.
        advantage: how much better the episode was than its group.
    """

    prompt: tuple[int, ...]
    reply: tuple[int, ...]
    written: tuple[bool, ...]
    logprobs: tuple[float, ...]
    advantage: float

    @property
    def length(self) -> int:
        """Tokens that the policy wrote."""
        return sum(self.written)


def row_of(episode: Episode, advantage: float) -> Row:
    """Lay an episode's spans end to end.

    Raises:
        ValueError: the episode has no tokens, or does not begin with its prompt's.
    """
    spans = episode.spans
    if not any(s.author == "model" and s.ids for s in spans):
        raise ValueError(
            f"the learner trains on tokens, but the episode of {episode.task_id!r} has none that "
            "the model wrote: roll out with a policy that fills prompt_ids, ids and logprobs, "
            "such as ModelPolicy"
        )
    first = next(i for i, s in enumerate(spans) if s.author == "model")
    prompt = tuple(i for s in spans[:first] for i in s.ids)
    if not prompt:
        raise ValueError(
            f"the episode of {episode.task_id!r} begins with the model's tokens: the first span "
            "must hold the prompt's, since its last one predicts the first reply token"
        )
    reply, written, logprobs = [], [], []
    for span in spans[first:]:
        mine = span.author == "model"
        reply.extend(span.ids)
        written.extend([mine] * len(span.ids))
        logprobs.extend(span.logprobs if mine else [0.0] * len(span.ids))
    return Row(prompt, tuple(reply), tuple(written), tuple(logprobs), advantage)


@dataclass(frozen=True, slots=True)
class Batch:
    """Padded tensors of some groups, all padding on the right.

    Attributes:
        prompts: [P, S] token ids.
        prompt_lengths: [P].
        replies: [P, G, T] token ids.
        reply_lengths: [P, G]; 0 where a prompt has fewer than G replies.
        mask: [P, G, T] of bool, True on tokens that the policy wrote.
        old_logprobs: [P, G, T], 0 off the mask.
        advantages: [P, G].
    """

    prompts: Tensor
    prompt_lengths: Tensor
    replies: Tensor
    reply_lengths: Tensor
    mask: Tensor
    old_logprobs: Tensor
    advantages: Tensor

    @classmethod
    def of(
        cls,
        groups: Sequence[Sequence[Row]],
        *,
        device: torch.device | str = "cpu",
        pad_id: int = 0,
        extra_padding: int = 0,
    ) -> Batch:
        """Pad groups of rows; the rows of one group share their prompt."""
        p, g = len(groups), max(len(rows) for rows in groups)
        s = max(len(rows[0].prompt) for rows in groups) + extra_padding
        t = max(len(row.reply) for rows in groups for row in rows) + extra_padding
        prompts = torch.full((p, s), pad_id)
        replies = torch.full((p, g, t), pad_id)
        reply_lengths = torch.zeros(p, g, dtype=torch.long)
        mask = torch.zeros(p, g, t, dtype=torch.bool)
        old_logprobs = torch.zeros(p, g, t)
        advantages = torch.zeros(p, g)
        for i, rows in enumerate(groups):
            prompts[i, : len(rows[0].prompt)] = torch.tensor(rows[0].prompt)
            for j, row in enumerate(rows):
                n = len(row.reply)
                replies[i, j, :n] = torch.tensor(row.reply)
                mask[i, j, :n] = torch.tensor(row.written)
                old_logprobs[i, j, :n] = torch.tensor(row.logprobs)
                reply_lengths[i, j], advantages[i, j] = n, row.advantage
        lengths = torch.tensor([len(rows[0].prompt) for rows in groups])
        tensors = (prompts, lengths, replies, reply_lengths, mask, old_logprobs, advantages)
        return cls(*(x.to(device) for x in tensors))


def by_prompt(rows: Iterable[Row]) -> list[list[Row]]:
    """Gather rows with the same prompt, in order of first appearance."""
    groups: dict[tuple[int, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(row.prompt, []).append(row)
    return list(groups.values())


def micro_batches(groups: Sequence[Sequence[Row]], *, budget: int) -> list[list[list[Row]]]:
    """Cut an optimizer step into batches of at most ``budget`` padded tokens.

    Groups of like length go together, so little of the budget is padding. A group that alone
    is over the budget is cut into several with the same prompt; a single row over it stands
    alone.

    Args:
        groups: rows that share a prompt.
        budget: padded tokens, P x (S + G x T).
    """
    pieces = [piece for rows in groups for piece in _pieces(rows, budget)]
    # A piece that is first in its batch is the longest: only shorter ones follow it.
    pieces.sort(key=lambda rows: (_longest(rows), len(rows[0].prompt), len(rows)), reverse=True)
    batches: list[list[list[Row]]] = []
    for piece in pieces:
        if batches and _padded([*batches[-1], piece]) <= budget:
            batches[-1].append(piece)
        else:
            batches.append([piece])
    return batches


def _pieces(rows: Sequence[Row], budget: int) -> list[list[Row]]:
    ordered = sorted(rows, key=lambda row: len(row.reply), reverse=True)
    pieces: list[list[Row]] = []
    for row in ordered:
        if pieces and _padded([[*pieces[-1], row]]) <= budget:
            pieces[-1].append(row)
        else:
            pieces.append([row])
    return pieces


def _padded(groups: Sequence[Sequence[Row]]) -> int:
    """Tokens of these groups as a batch: P x (S + G x T)."""
    prompt = max(len(rows[0].prompt) for rows in groups)
    most = max(len(rows) for rows in groups)
    return len(groups) * (prompt + most * max(_longest(rows) for rows in groups))


def _longest(rows: Sequence[Row]) -> int:
    return max(len(row.reply) for row in rows)
