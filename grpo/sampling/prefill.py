"""Compute prompts, each once, by the model's own forward.

Shapes: Q prompts, S tokens of the longest, K key-value heads, E head size, V vocabulary.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor
from transformers import DynamicCache


class Prefill:
    """A batch of prompts after the model's forward.

    Args:
        model: a causal LM.
        prompts: token ids of each, none empty.

    Attributes:
        cache: transformers' cache of keys and values.
        mask: [Q, S], 0 on padding, which is on the left: the next token of every row then lies
            in the same column.
        logits: [Q, V] of the next token.
        takes_positions: whether the model can be told tokens' positions.
    """

    def __init__(self, model: Any, prompts: Sequence[Sequence[int]]) -> None:
        width = max(len(prompt) for prompt in prompts)
        ids = torch.tensor([[0] * (width - len(p)) + list(p) for p in prompts])  # [Q, S]
        there = torch.tensor([[0] * (width - len(p)) + [1] * len(p) for p in prompts])
        self.mask = there.to(model.device)
        self.cache: Any = DynamicCache(config=model.config)
        accepted = inspect.signature(model.forward).parameters
        self.takes_positions = "position_ids" in accepted
        options: dict[str, Any] = {"logits_to_keep": 1} if "logits_to_keep" in accepted else {}
        if self.takes_positions:
            options["position_ids"] = (self.mask.cumsum(1) - 1).clamp(min=0)
        output = model(
            input_ids=ids.to(model.device),
            attention_mask=self.mask,
            past_key_values=self.cache,
            use_cache=True,
            **options,
        )
        self.logits: Tensor = output.logits[:, -1]

    def keys_values(self) -> Iterator[tuple[Tensor, Tensor]]:
        """Keys and values of each layer, [Q, K, S, E], which the cache forgets.

        Raises:
            ValueError: a layer keeps something else, such as a window or a state.
        """
        s = self.mask.shape[1]
        for layer in self.cache.layers:
            keys: Any = getattr(layer, "keys", None)
            values: Any = getattr(layer, "values", None)
            whole = keys is not None and values is not None and keys.shape == values.shape
            if getattr(layer, "is_sliding", False) or not whole or keys.shape[2] != s:
                raise ValueError(f"the cache is not one of plain keys and values: {layer!r}")
            layer.keys = layer.values = None  # held once
            yield keys, values
