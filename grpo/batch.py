"""Turn episodes into rows of tokens, and rows into padded tensors within a budget.

Shapes: P prompts, G replies to each (the most that any of them has), S prompt tokens, T reply
tokens. "Reply" is all that follows the prompt: the policy's tokens and, in episodes of several
turns, the environment's between them, which are masked.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ..envs import Episode


@dataclass(frozen=True, slots=True)
class Row:
    """The tokens of one episode.

    Attributes:
        prompt: token ids before the policy's first.
        reply: token ids from there on; what follows has a value for each of them.
        written: whether the policy wrote it.
        logprobs: its log-probability when it was sampled; 0.0 where the environment wrote it.
        advantages: one value all along if only the outcome is judged.
        reference: its log-probability under the reference model; empty if there is none.
        ends: the last token of each turn that the policy took.
    """

    prompt: tuple[int, ...]
    reply: tuple[int, ...]
    written: tuple[bool, ...]
    logprobs: tuple[float, ...]
    advantages: tuple[float, ...]
    reference: tuple[float, ...] = ()
    ends: tuple[int, ...] = ()

    @property
    def length(self) -> int:
        """Tokens that the policy wrote."""
        return sum(self.written)

    @property
    def mean_advantage(self) -> float:
        """Mean over the tokens that the policy wrote; 0.0 if it wrote none."""
        found = [a for a, mine in zip(self.advantages, self.written, strict=True) if mine]
        return sum(found) / max(1, len(found))

    @property
    def teaches(self) -> bool:
        """Whether any of its tokens has an advantage."""
        return any(self.advantages)


def row_of(episode: Episode, advantage: float = 0.0) -> Row:
    """Lay an episode's spans end to end, with one advantage for all its tokens.

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
    reply: list[int] = []
    written: list[bool] = []
    logprobs: list[float] = []
    ends: list[int] = []
    for span in spans[first:]:
        mine = span.author == "model"
        reply.extend(span.ids)
        written.extend([mine] * len(span.ids))
        logprobs.extend(span.logprobs if mine else [0.0] * len(span.ids))
        if mine:
            ends.append(len(reply) - 1)
    advantages = (advantage,) * len(reply)
    return Row(prompt, tuple(reply), tuple(written), tuple(logprobs), advantages, ends=tuple(ends))


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
        advantages: [P, G, T].
        reference: [P, G, T], log-probabilities under the reference model, if there is one.
    """

    prompts: Tensor
    prompt_lengths: Tensor
    replies: Tensor
    reply_lengths: Tensor
    mask: Tensor
    old_logprobs: Tensor
    advantages: Tensor
    reference: Tensor | None = None

    @classmethod
    def of(cls, groups: Sequence[Sequence[Row]], *, device: torch.device | str = "cpu") -> Batch:
        """Pad groups of rows; the rows of one group share their prompt."""
        g = max(len(rows) for rows in groups)
        t = max(len(row.reply) for rows in groups for row in rows)
        missing = Row((), (), (), (), ())
        full = [[*rows, *[missing] * (g - len(rows))] for rows in groups]
        prompts = [rows[0].prompt for rows in groups]
        s = max(map(len, prompts))

        def table(name: str, fill: Any) -> Tensor:
            values = [[getattr(row, name) for row in rows] for rows in full]
            padded = [[[*v, *[fill] * (t - len(v))] for v in rows] for rows in values]
            return torch.tensor(padded, device=device)

        return cls(
            prompts=torch.tensor([[*p, *[0] * (s - len(p))] for p in prompts], device=device),
            prompt_lengths=torch.tensor([len(p) for p in prompts], device=device),
            replies=table("reply", 0),
            reply_lengths=torch.tensor([[len(r.reply) for r in rows] for rows in full]).to(device),
            mask=table("written", False),
            old_logprobs=table("logprobs", 0.0),
            advantages=table("advantages", 0.0),
            reference=table("reference", 0.0) if groups[0][0].reference else None,
        )


def longest_row(model: Any) -> int | None:
    """Return the most tokens of a prompt and its reply that the positions allow; None: any number.

    From the original length on, a "dynamic" or "longrope" rotary embedding turns all positions of
    a batch otherwise: log-probabilities then depend on the batch's longest row, and a reply's
    first tokens were drawn from another distribution than the one that is trained.
    """
    config = model.config.get_text_config()
    rope = getattr(config, "rope_parameters", None) or {}
    most: int | None = getattr(config, "max_position_embeddings", None)
    for part in (rope, *(x for x in rope.values() if isinstance(x, dict))):  # one a layer type
        if part.get("rope_type") == "longrope":
            most = part.get("original_max_position_embeddings") or most
    return most


def require_positions(model: Any, prompt: int, reply: int) -> None:
    """Refuse a longest prompt and reply that do not fit the model."""
    most = longest_row(model)
    if most is not None and prompt + reply > most:
        raise ValueError(
            f"a prompt of {prompt} tokens and a reply of up to {reply} are more than the {most} "
            "positions of the model: lower max_new_tokens, or leave such prompts out, as "
            "max_prompt_tokens does in training"
        )


def group_by_prompt(rows: Iterable[Row]) -> list[list[Row]]:
    """Gather rows with the same prompt, in order of first appearance."""
    groups: dict[tuple[int, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(row.prompt, []).append(row)
    return list(groups.values())


def micro_batches(groups: Sequence[Sequence[Row]], *, budget: int) -> list[list[list[Row]]]:
    """Cut an optimizer step into batches of at most ``budget`` padded tokens, P x (S + G x T).

    Groups of like length go together, so little of the budget is padding. A group that alone
    is over the budget is cut into several with the same prompt; a single row over it stands alone.
    """
    pieces = [piece for rows in groups for piece in _pieces(rows, budget)]
    # The longest first: a batch's first piece then sets its T.
    pieces.sort(key=lambda rows: (len(rows[0].reply), len(rows[0].prompt), len(rows)), reverse=True)
    batches: list[list[list[Row]]] = []
    p, s, g, t = 0, 0, 0, 0
    for piece in pieces:
        s_with, g_with = max(s, len(piece[0].prompt)), max(g, len(piece))
        if batches and (p + 1) * (s_with + g_with * t) <= budget:
            batches[-1].append(piece)
            p, s, g = p + 1, s_with, g_with
        else:
            batches.append([piece])
            p, s, g, t = 1, len(piece[0].prompt), len(piece), len(piece[0].reply)
    return batches


def _pieces(rows: Sequence[Row], budget: int) -> list[list[Row]]:
    """Cut a group so that S + G x T is within the budget; each piece has its longest first."""
    ordered = sorted(rows, key=lambda row: len(row.reply), reverse=True)
    pieces: list[list[Row]] = []
    while ordered:
        most = (budget - len(ordered[0].prompt)) // max(1, len(ordered[0].reply))
        pieces.append(ordered[: max(1, most)])
        ordered = ordered[max(1, most) :]
    return pieces


def balance_rows(rows: Sequence[Row], size: int) -> list[list[Row]]:
    """Deal rows to ``size`` processes, about equally many tokens to each.

    The longest group is dealt first, each to the process that has least; rows of one group stay
    together unless there are fewer groups than processes.
    """
    groups = group_by_prompt(rows)
    if len(groups) < size:
        groups = [[row] for row in rows]
    shares: list[list[Row]] = [[] for _ in range(size)]
    loads = [0] * size
    for group in sorted(groups, key=_tokens, reverse=True):  # stable: the same on every run
        least = loads.index(min(loads))
        shares[least].extend(group)
        loads[least] += _tokens(group)
    return shares


def _tokens(group: Sequence[Row]) -> int:
    return len(group[0].prompt) + sum(len(row.reply) for row in group)
