"""The learner's own sampler as an engine: requests that wait together are sampled together."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections import deque
from collections.abc import Sequence
from typing import Any

from ..grpo.batch import longest_row
from ..grpo.draw import StopStrings
from ..grpo.sampler import eos_ids, sample
from .engine import EngineError, Sampled, SampleRequest

_Waiting = tuple[SampleRequest, "asyncio.Future[Sampled]", asyncio.AbstractEventLoop]


class TransformersEngine:
    """Sample from a model in this process.

    One thread samples. Requests that arrive meanwhile make the next batch, as far as their
    settings are those of the oldest.

    Args:
        model: a causal LM.
        tokenizer: its tokenizer.
        name: of the model.
        max_batch: most replies that are decoded side by side.
    """

    def __init__(
        self, model: Any, tokenizer: Any, *, name: str = "model", max_batch: int = 64
    ) -> None:
        self.model, self.tokenizer, self.name, self.max_batch = model, tokenizer, name, max_batch
        self.longest = longest_row(model)
        self._eos = eos_ids(model, tokenizer)
        self._arrived: queue.SimpleQueue[_Waiting | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="assay-engine", daemon=True)
        self._thread.start()

    async def sample(self, request: SampleRequest) -> Sampled:
        """Sample one reply."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Sampled] = loop.create_future()
        self._arrived.put((request, future, loop))
        return await future

    async def close(self) -> None:
        """Finish the batch in progress, and end the thread."""
        self._arrived.put(None)
        await asyncio.to_thread(self._thread.join)

    def _work(self) -> None:
        waiting: deque[_Waiting] = deque()
        while True:
            if not waiting:
                if (first := self._arrived.get()) is None:
                    return
                waiting.append(first)
            while not self._arrived.empty():
                if (more := self._arrived.get()) is None:
                    return
                waiting.append(more)
            settings = _settings(waiting[0][0])
            batch = [w for w in waiting if _settings(w[0]) == settings][: self.max_batch]
            for each in batch:
                waiting.remove(each)
            # Those whose program has gone are left out.
            if batch := [w for w in batch if not w[1].cancelled()]:
                self._answer(batch)

    def _answer(self, batch: list[_Waiting]) -> None:
        batch.sort(key=lambda w: w[0].prompt)  # equal neighbours are computed once
        found: Sequence[Sampled | EngineError]
        try:
            found = self.draw([w[0] for w in batch])
        except Exception as error:  # every request must get an answer, whatever a model raises
            if half := len(batch) // 2:  # one request's fault, or too much memory for all at once
                self._answer(batch[:half])
                self._answer(batch[half:])
                return
            found = [EngineError(f"{type(error).__name__}: {error}")] * len(batch)
        for (_, future, loop), result in zip(batch, found, strict=True):
            loop.call_soon_threadsafe(_resolve, future, result)

    def draw(self, requests: Sequence[SampleRequest]) -> list[Sampled]:
        """Sample replies side by side; the requests have equal settings."""
        first = requests[0]
        found = sample(
            self.model,
            [request.prompt for request in requests],
            max_new_tokens=first.max_tokens,
            eos_ids=self._eos,
            stop=StopStrings(self.tokenizer, first.stop),
            temperature=first.temperature,
            top_p=first.top_p,
            rows=[request.seed for request in requests],
        )
        return [Sampled(s.ids, s.logprobs, s.finish) for s in found]


def _settings(request: SampleRequest) -> tuple[Any, ...]:
    return request.max_tokens, request.temperature, request.top_p, request.stop


def _resolve(future: asyncio.Future[Sampled], result: Sampled | EngineError) -> None:
    if future.done():
        return
    if isinstance(result, EngineError):
        future.set_exception(result)
    else:
        future.set_result(result)
