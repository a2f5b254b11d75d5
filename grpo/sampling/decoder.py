"""The state of a batch that is being decoded, and the fastest way of keeping it that is right."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any, Protocol
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from ..model.precision import computed_dtype
from .llama import LlamaDecoder, changes
from .prefill import Prefill
from .shared import SharedDecoder

_log = logging.getLogger(__name__)


class Decoder(Protocol):
    """The model's state after what each row has so far.

    Attributes:
        logits: [B, V] of each row's next token.
        patience: share of the rows that may be done before it pays to drop them.
    """

    logits: Tensor
    patience: float

    def keep(self, rows: Tensor) -> None:
        """Go on with these rows, in this order; none is named twice."""
        ...

    def feed(self, tokens: Tensor) -> None:
        """Append one token [B] to each row."""
        ...


MakeDecoder = Callable[[Any, Sequence[Sequence[int]], Sequence[int], int], Decoder]
"""``(model, prompts, copies, room)``: distinct prompts, rows of each, most tokens to be fed."""


class CopyDecoder:
    """By transformers' cache, copied to each row: right for every model with keys and values.

    Args:
        model: a causal LM.
        prompts: each distinct prompt's tokens.
        copies: how many rows each has.
        room: unused; the cache grows.
    """

    patience = 0.0

    def __init__(
        self, model: Any, prompts: Sequence[Sequence[int]], copies: Sequence[int], room: int
    ) -> None:
        self._model = model
        start = Prefill(model, prompts)
        self._cache, self._mask = start.cache, start.mask
        self._takes_positions = start.takes_positions
        self.logits = start.logits
        self._positions = start.mask.sum(1)  # where the next token goes
        rows = torch.arange(len(prompts)).repeat_interleave(torch.tensor(list(copies)))
        self.keep(rows.to(model.device))

    def keep(self, rows: Tensor) -> None:
        """Go on with these rows, in this order; a row may be named more than once."""
        self._cache.reorder_cache(rows)
        self._mask, self._positions = self._mask[rows], self._positions[rows]
        self.logits = self.logits[rows]

    def feed(self, tokens: Tensor) -> None:
        """Append one token [B] to each row."""
        self._mask = torch.cat([self._mask, self._mask.new_ones(len(tokens), 1)], dim=1)
        options = {"position_ids": self._positions[:, None]} if self._takes_positions else {}
        output = self._model(
            input_ids=tokens[:, None],
            attention_mask=self._mask,
            past_key_values=self._cache,
            use_cache=True,
            **options,
        )
        self._positions = self._positions + 1
        self.logits = output.logits[:, -1]


DECODERS: dict[str, MakeDecoder] = {
    "llama": LlamaDecoder,
    "shared": SharedDecoder,
    "copy": CopyDecoder,
}
_chosen: WeakKeyDictionary[Any, tuple[tuple[Any, ...], str]] = WeakKeyDictionary()


def choose_decoder(model: Any) -> tuple[str, MakeDecoder]:
    """The fastest decoder that agrees with the copied cache on a small made-up batch.

    The batch is tried once for a model, and again when its dtype, device, mode or attention
    changes, hooks come or go, or a module is replaced by one of another class.

    Args:
        model: a causal LM, as it is going to be used.

    Returns:
        Its name, a key of ``DECODERS``, and what makes one.
    """
    parameter = next(model.parameters())
    attention = model.config.get_text_config()._attn_implementation
    modules = list(model.modules())
    made_of = (sum(map(changes, modules)), *map(type, modules))
    dtypes = parameter.dtype, computed_dtype(model)
    state = (*dtypes, parameter.device, model.training, attention, made_of)
    known = _chosen.get(model)
    if known is None or known[0] != state:
        known = _chosen[model] = state, _choose(model, parameter)
        _log.info("replies are decoded by the %r decoder", known[1])
    return known[1], DECODERS[known[1]]


@torch.no_grad()
def _choose(model: Any, parameter: Tensor) -> str:
    among = ["shared"] if parameter.is_cuda else ["llama", "shared"]
    tolerance = 1e-3 if computed_dtype(model) in (torch.float32, torch.float64) else 0.1
    wanted = _probe(model, CopyDecoder)
    for name in among:
        try:
            found = _probe(model, DECODERS[name])
        except Exception as error:  # whatever a model's modules raise, the copied cache still works
            _log.info("decoder %r does not fit %s: %s", name, type(model).__name__, error)
            continue
        off = max(_difference(a, b) for a, b in zip(found, wanted, strict=True))
        if off <= tolerance:
            return name
        _log.info("decoder %r is off by %.2g on %s", name, off, type(model).__name__)
    return "copy"


def _difference(found: Tensor, wanted: Tensor) -> float:
    """The largest; tokens that are impossible on both sides have none."""
    return float((found - wanted).masked_fill(found == wanted, 0.0).abs().max())


def _probe(model: Any, make: MakeDecoder) -> list[Tensor]:
    """Log-probabilities along two prompts of different lengths, rows being dropped on the way."""
    generator = torch.Generator().manual_seed(0)
    vocabulary = int(model.config.get_text_config().vocab_size)

    def ids(n: int) -> Tensor:
        return torch.randint(vocabulary, (n,), generator=generator)

    decoder = make(model, [ids(7).tolist(), ids(4).tolist()], [2, 3], 6)
    found = [decoder.logits.float().log_softmax(-1)]
    for rows in ([0, 1, 2, 3, 4], [0, 1, 2, 3, 4], [0, 4, 2, 3], [0, 1, 2, 3], [2, 1], [0, 1]):
        if len(rows) < len(decoder.logits):
            decoder.keep(torch.tensor(rows, device=model.device))
        decoder.feed(ids(len(rows)).to(model.device))
        found.append(decoder.logits.float().log_softmax(-1))
    return found
