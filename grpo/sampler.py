"""Sampling: conversations in, replies out with their tokens and log-probabilities.

Each distinct prompt is computed once, and if the model allows it, its keys and values are held once
for all replies to it. Rows that are done leave the batch.

Shapes: B rows, V vocabulary.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import compress, groupby
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor

from ..envs import Completion, Conversation, ExtendingPolicy
from ..envs.turn_tokens import extend_prompt
from .batch import longest_row, require_positions
from .decoder import choose_decoder
from .distributed import World
from .draw import Distribution, RowNumbers, StopStrings, uniforms
from .model import autocast_context, causal_lm, eval_mode


def encode_all(
    tokenizer: Any,
    conversations: Sequence[Conversation],
    prefixes: Sequence[Sequence[int]],
    options: Mapping[str, Any] | None = None,
) -> list[list[int]]:
    """Encode each conversation, beginning with its prefix; equal neighbours are encoded once.

    As :func:`~assay.envs.turn_tokens.extend_prompt` does; ``options`` need a chat template.
    """
    if options and not tokenizer.chat_template:
        raise ValueError(
            f"chat_template_kwargs={dict(options)} has no effect, as the tokenizer has no chat "
            "template: leave it at None, or set tokenizer.chat_template"
        )
    prompts: list[list[int]] = []
    for asked, copies in groupby(zip(conversations, prefixes, strict=True)):
        ids = extend_prompt(tokenizer, *asked, options)
        prompts += [ids for _ in copies]
    return prompts


# Tokens drawn before the host looks which rows are done. An accelerator would wait for it.
_STEPS_A_LOOK = {"cpu": 1, "cuda": 8}


@dataclass(slots=True)
class Sample:
    """One sampled reply: its tokens, those that ended it included.

    ``logprobs`` are of each token under the distribution it was drawn from, in float32; ``finish``
    is ``stop`` if an end-of-sequence token or a stop string came, ``length`` if there was no room.
    """

    ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    finish: Literal["stop", "length"] = "length"

    def add(self, token: int, logprob: float, ends: set[int], stop: StopStrings | None) -> None:
        """Add a token, unless the reply has ended."""
        if self.finish == "stop":
            return
        if token < 0:
            raise ValueError(
                "the model's logits are not finite, so there is nothing to draw from: its "
                "weights are broken. Go back to an earlier checkpoint, and lower learning_rate"
            )
        self.ids.append(token)
        self.logprobs.append(logprob)
        if token in ends or (stop is not None and stop.complete(self.ids)):
            self.finish = "stop"


@torch.no_grad()
def sample(
    model: Any,
    prompts: Sequence[Sequence[int]],
    *,
    max_new_tokens: int,
    eos_ids: Sequence[int] = (),
    stop: StopStrings | None = None,
    temperature: float = 1.0,
    top_k: int = 0,
    min_p: float = 0.0,
    top_p: float = 1.0,
    seed: int = 0,
    rows: Sequence[int] | None = None,
) -> list[Sample]:
    """Sample one reply to each prompt of token ids; equal neighbours are computed once.

    Token t of row i is chosen by a random number that depends on ``(seed, rows[i], t)`` alone
    (``rows`` are 0, 1, ... by default). A batch that is split into several calls therefore draws
    the same replies, up to the rounding of matrix products of another shape: that moves a
    log-probability by some 1e-6, and once in a long while a token that lies on the edge.

    ``temperature`` and the cuts are those of :class:`~assay.grpo.draw.Distribution`.

    Raises:
        ValueError: a prompt has no tokens or one that the model does not know, a setting is out
            of its range, or the model's logits are not finite.
    """
    distribution = Distribution(temperature=temperature, top_k=top_k, min_p=min_p, top_p=top_p)
    if not all(prompts):
        raise ValueError("a prompt needs at least one token, got an empty one")
    if not prompts:
        return []
    model = causal_lm(model)
    require_positions(model, max(map(len, prompts)), max_new_tokens)
    vocabulary = model.config.get_text_config().vocab_size
    if (highest := max(map(max, prompts))) >= vocabulary:
        raise ValueError(
            f"a prompt has the token {highest}, and the model knows {vocabulary}: take the "
            "tokenizer it was trained with, or call model.resize_token_embeddings(len(tokenizer))"
        )
    device = model.device
    steps_a_look, ends = _STEPS_A_LOOK.get(device.type, 8), set(eos_ids)
    replies = [Sample() for _ in prompts]
    numbers = np.arange(len(prompts)) if rows is None else np.array(rows)
    chances = torch.from_numpy(uniforms(seed, numbers, max_new_tokens)).to(device)  # [B, T]
    runs = [(prompt, len(list(copies))) for prompt, copies in groupby(prompts)]
    # In training mode dropout makes it another policy, and a checkpointed model drops its cache.
    with eval_mode(model), autocast_context(model):
        _, make = choose_decoder(model)
        decoder = make(model, [p for p, _ in runs], [n for _, n in runs], max_new_tokens - 1)
        live = list(replies)
        drawn: list[tuple[Tensor, Tensor]] = []
        for t in range(max_new_tokens):
            tokens, logprobs = distribution.draw(decoder.logits, chances[:, t])
            drawn.append((tokens, logprobs))
            if len(drawn) == steps_a_look or t + 1 == max_new_tokens:
                found = (torch.stack(values).tolist() for values in zip(*drawn, strict=True))
                for of_step in zip(*found, strict=True):
                    for reply, token, logprob in zip(live, *of_step, strict=True):
                        reply.add(token, logprob, ends, stop)
                drawn = []
                going = [i for i, reply in enumerate(live) if reply.finish == "length"]
                if t + 1 == max_new_tokens or not going:
                    break
                if len(going) < len(live):
                    order = _closed_up(len(live), going)
                    kept = torch.tensor(order, device=device)
                    live, chances, tokens = [live[i] for i in order], chances[kept], tokens[kept]
                    decoder.keep(kept)
            decoder.feed(tokens.clamp(min=0))
    return replies


def _closed_up(rows: int, going: Sequence[int]) -> list[int]:
    """Order the rows that go on, as many as possible at their old places: the last fill holes."""
    n = len(going)
    here = set(going)
    movers = iter(i for i in reversed(going) if i >= n)
    return [i if i in here else next(movers) for i in range(n)]


@runtime_checkable
class Engine(ExtendingPolicy, Protocol):
    """A policy that follows a model in training: in this process, or on a server.

    Its completions carry the tokens it was given, those it sampled, and their log-probabilities
    under the distribution they were drawn from: the loss takes them for the old policy's.
    """

    def reseed(self, seed: int) -> None:
        """Start a new stream of random numbers, at row 0."""
        ...

    def sync(self, model: Any, step: int) -> None:
        """Sample with this model's weights, of this step, from now on; raise if that fails."""
        ...


class TokenPolicy(ABC):
    """A policy on token ids: it encodes conversations, and numbers the rows of episodes."""

    tokenizer: Any
    chat_template_kwargs: Mapping[str, Any] | None
    max_new_tokens: int
    longest: int | None
    """Most tokens of a prompt and its reply; None for any number."""
    seed: int
    rows: RowNumbers

    @abstractmethod
    def answer(self, prompts: list[list[int]], rows: list[int]) -> list[Completion]:
        """Answer each prompt of token ids, by the random numbers of its row."""

    def reseed(self, seed: int) -> None:
        """Start a new stream of random numbers, at row 0."""
        self.seed, self.rows = seed, RowNumbers()

    def __call__(self, conversations: Sequence[Conversation], /) -> list[Completion]:
        """Answer each conversation."""
        return self.extend(conversations, [()] * len(conversations))

    def extend(
        self, conversations: Sequence[Conversation], prefixes: Sequence[Sequence[int]], /
    ) -> list[Completion]:
        """Answer each conversation, going on from the tokens of its earlier turns.

        A later turn for which the model has no room is cut off before its first token, which ends
        the episode.

        Raises:
            TemplateRewritesHistory: the tokenizer's chat template does not keep the turns that
                are over, so that no prompt can go on from them.
        """
        prompts = encode_all(self.tokenizer, conversations, prefixes, self.chat_template_kwargs)
        rows = self.rows.of(prefixes)
        room = [
            not before or not self.longest or len(prompt) + self.max_new_tokens <= self.longest
            for before, prompt in zip(prefixes, prompts, strict=True)
        ]
        asked = list(compress(prompts, room)), list(compress(rows, room))
        answers = iter(self.answer(*asked) if any(room) else ())
        found = []
        for row, prompt, fits in zip(rows, prompts, room, strict=True):
            found.append(next(answers) if fits else Completion("", "length", tuple(prompt)))
            self.rows.keep(row, [*prompt, *found[-1].ids])
        return found


class ModelPolicy(TokenPolicy):
    """Samples replies from a causal LM.

    Episodes are numbered from the last :meth:`reseed` on, over all calls. The same seed and the
    same conversations give the same replies, however they are split into calls and batches
    (to rounding, see :func:`assay.grpo.sample`).

    If the tokenizer has a chat template that is applied, with the prompt for the assistant's turn
    and ``chat_template_kwargs``; else the messages' contents are joined as they are.
    ``temperature`` and the cuts are those of :class:`~assay.grpo.draw.Distribution`.

    Args:
        stop: texts that end a reply, found also across tokens. The reply keeps the token that
            completes such a text, so its text ends with it, and with what else that token says.
        rows_per_batch: replies decoded side by side; this and the length of the prompts decide how
            much memory the cache takes.
        world: processes that each play a share of the tasks; see :mod:`~assay.grpo.tasks`.
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        *,
        max_new_tokens: int,
        temperature: float = 1.0,
        top_k: int = 0,
        min_p: float = 0.0,
        top_p: float = 1.0,
        stop: Sequence[str] = (),
        seed: int = 0,
        rows_per_batch: int = 512,
        chat_template_kwargs: Mapping[str, Any] | None = None,
        world: World | None = None,
    ) -> None:
        if max_new_tokens < 1 or rows_per_batch < 1:
            raise ValueError(
                "max_new_tokens and rows_per_batch must be at least 1, "
                f"got {max_new_tokens} and {rows_per_batch}"
            )
        self.model, self.tokenizer, self.world = model, tokenizer, world
        self.max_new_tokens, self.longest = max_new_tokens, longest_row(causal_lm(model))
        self.distribution = Distribution(
            temperature=temperature, top_k=top_k, min_p=min_p, top_p=top_p
        )
        self.stop = StopStrings(tokenizer, stop)
        self.rows_per_batch = rows_per_batch
        self.chat_template_kwargs = chat_template_kwargs
        self.eos_ids = eos_ids(model, tokenizer)
        self.reseed(seed)

    def sync(self, model: Any, step: int) -> None:
        """Sample from this model from now on; it is the model itself, and no copy."""
        self.model = model

    def answer(self, prompts: list[list[int]], rows: list[int]) -> list[Completion]:
        """Sample a reply to each prompt."""
        samples: list[Sample] = []
        for start in range(0, len(prompts), self.rows_per_batch):
            part = slice(start, start + self.rows_per_batch)
            samples += sample(
                self.model,
                prompts[part],
                max_new_tokens=self.max_new_tokens,
                eos_ids=self.eos_ids,
                stop=self.stop,
                **asdict(self.distribution),
                seed=self.seed,
                rows=rows[part],
            )
        texts = self.tokenizer.batch_decode([s.ids for s in samples], skip_special_tokens=True)
        return [
            Completion(text, s.finish, tuple(prompt), tuple(s.ids), tuple(s.logprobs))
            for prompt, s, text in zip(prompts, samples, texts, strict=True)
        ]


def eos_ids(model: Any, tokenizer: Any) -> tuple[int, ...]:
    """Return the tokens that end a reply: the tokenizer's and the generation config's."""
    found = getattr(model.generation_config, "eos_token_id", None)
    listed = found if isinstance(found, list) else [found]
    return tuple(sorted({int(i) for i in (*listed, tokenizer.eos_token_id) if i is not None}))
