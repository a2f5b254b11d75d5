"""The decoder of shared prompts as a CUDA graph: one launch a token in place of hundreds.

Decoding is bound by the launches of its many small kernels. A graph is recorded once for a number
of rows and a room, with every tensor at a fixed place, and replayed for each token.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from .shared import SharedDecoder


class GraphDecoder(SharedDecoder):
    """As :class:`SharedDecoder`, in fixed shapes.

    Whatever changes shapes (rows that leave, buffers that grow) has the graph recorded anew, so
    rows leave only when half of them are done.

    Without CUDA nothing is recorded, and the same fixed shapes are computed one by one: tests
    compare them so. **The recording itself has never been run by this project, which has no
    GPU**; it is chosen only where it agrees with the copied cache on the probe.
    """

    patience = 0.5
    tight = 0  # tokens: each wider buffer is another recording

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._graph: Any = None
        self._tokens = self._places = self._hidden = self._next = self.logits.new_empty(0)

    def keep(self, rows: Tensor) -> None:
        """Go on with these rows, in this order; none is named twice."""
        super().keep(rows)
        self._graph = None

    def feed(self, tokens: Tensor) -> None:
        """Append one token [B] to each row."""
        if self._make_room():
            self._graph = None
        if self._graph is None:
            self._record(tokens)
        else:
            self._tokens.copy_(tokens)
            self._places.copy_(self._positions)
            self._at.fill_(self._length)
            self._hidden.copy_(self._later())
            self._graph()
        self.logits = self._next
        self._positions = self._positions + 1
        self._length += 1

    def _later(self) -> Tensor:
        """[room], -inf on the columns of replies that are not written yet."""
        room = torch.arange(self._replies[0].shape[3], device=self._tokens.device)
        dtype = self._prompts[0][0].dtype
        return torch.zeros_like(room, dtype=dtype).masked_fill(room > self._length, -torch.inf)

    def _record(self, tokens: Tensor) -> None:
        """Take one step by itself, and have what it did recorded."""
        self._tokens, self._places = tokens.clone(), self._positions.clone()
        self._at = torch.tensor([self._length], device=tokens.device)
        self._hidden = self._later()
        for layer in self._replies:  # 0 * anything finite is 0: what is hidden must be finite
            layer[:, :, :, self._length :] = 0
        self._next = self._step(self._tokens, self._places).clone()  # also warms up
        if not tokens.is_cuda:
            self._graph = self._replay_without_graph
            return
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self._next = self._step(self._tokens, self._places)
        graph.replay()
        self._graph = graph.replay

    def _replay_without_graph(self) -> None:
        self._next = self._step(self._tokens, self._places)

    def _write(self, layer: int, new: Tensor) -> tuple[Tensor, Tensor | None]:
        """Put the newest token in its column, and give all columns, with those to hide."""
        replies = self._replies[layer][:, : new.shape[1]]
        replies.index_copy_(3, self._at, new[:, :, :, None])
        return replies.flatten(1, 2), self._hidden
