"""Generation by vLLM: sample from a server that has each step's weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from ..envs import Completion, Conversation, ExtendingPolicy
from ..sandbox.pool.threads import Threads
from .draw import Distribution, RowNumbers, StopStrings, derive_seed
from .sampler import encode_all
from .vllm_server import ServerError, ServerLost, VLLMServer
from .vllm_weights import Route, ServedModel


@dataclass(frozen=True, slots=True)
class ServedCompletion(Completion):
    """A completion with the step of the weights that its first token was sampled with."""

    step: int = 0


class VLLMPolicy(ServedModel):
    """Samples replies from a vLLM server, with the weights of a model in training.

    Prompts go out as token ids, and ids come back with the log-probabilities of the distribution
    they were drawn from; nothing is tokenized again. A server that is lost in mid-run is started
    again (a :class:`VLLMServer`) or waited for (an address), given the last weights, and asked
    again with the same seeds. One thread may sample while another calls :meth:`sync`.

    Other arguments are those of :class:`~assay.grpo.ModelPolicy`.

    Args:
        server: a running server, or its address such as ``http://127.0.0.1:8000``.
        directory: for checkpoints, of this run alone; the server reads it under the same path.
            In memory (``/dev/shm/my-run``) a sync is fastest.
        eos_ids: tokens that end a reply; by default the tokenizer's, and from the first
            :meth:`sync` on those of the model's generation config too.
        route: of weights, see :mod:`assay.grpo.vllm_weights`; by default ``adapter`` with LoRA,
            else ``folder``.
        check: before the first step, change every trained tensor, and require that the server's
            log-probabilities follow. In bfloat16 that shows only effects above its rounding.
        concurrency: requests under way at a time.
        timeout_s: of a request, and of waiting for a lost server.
        api_key_env: environment variable with the server's key.

    Attributes:
        step: of the weights that the server has.
    """

    def __init__(
        self,
        tokenizer: Any,
        server: VLLMServer | str,
        directory: str | Path,
        *,
        max_new_tokens: int,
        eos_ids: Sequence[int] | None = None,
        temperature: float = 1.0,
        top_k: int = 0,
        min_p: float = 0.0,
        top_p: float = 1.0,
        stop: Sequence[str] = (),
        seed: int = 0,
        chat_template_kwargs: Mapping[str, Any] | None = None,
        route: Route | None = None,
        check: bool = True,
        concurrency: int = 256,
        timeout_s: float = 600.0,
        api_key_env: str | None = None,
    ) -> None:
        if max_new_tokens < 1 or concurrency < 1:
            raise ValueError("max_new_tokens and concurrency must be at least 1")
        super().__init__(
            tokenizer,
            server,
            directory,
            Distribution(temperature=temperature, top_k=top_k, min_p=min_p, top_p=top_p),
            eos=tuple(eos_ids) if eos_ids else None,
            route=route,
            check=check,
            concurrency=concurrency,
            timeout_s=timeout_s,
            api_key_env=api_key_env,
        )
        self.max_new_tokens, self.chat_template_kwargs = max_new_tokens, chat_template_kwargs
        self.stop, self._concurrency = StopStrings(tokenizer, stop), concurrency
        self.reseed(seed)

    def reseed(self, seed: int) -> None:
        """Start a new stream of random numbers, at row 0."""
        self.seed, self._stream = seed, _Stream(self, seed)

    def stream(self, seed: int) -> ExtendingPolicy:
        """Return a policy with its own random numbers, which may be used beside others."""
        return _Stream(self, seed)

    def __call__(self, conversations: Sequence[Conversation], /) -> list[Completion]:
        """Answer each conversation."""
        return self.extend(conversations, [()] * len(conversations))

    def extend(
        self, conversations: Sequence[Conversation], prefixes: Sequence[Sequence[int]], /
    ) -> list[Completion]:
        """Answer each conversation, going on from the tokens of its earlier turns.

        Ctrl-C ends the call at once, and the requests under way.

        Raises:
            ServerError: the server refuses, stays away, or an answer is off. The whole call
                fails then: no reply is lost silently.
        """
        return self._stream.extend(conversations, prefixes)

    def sample(self, prompts: Sequence[list[int]], seeds: Sequence[int]) -> list[Completion]:
        """Sample a reply to each prompt of token ids.

        Raises:
            ServerError: as for :meth:`extend`.
        """
        if not self._name:
            self._meet()
        needed = max(map(len, prompts), default=0) + self.max_new_tokens
        if self._longest and needed > self._longest:
            raise ServerError(
                f"the longest prompt and a reply of {self.max_new_tokens} are {needed} tokens, "
                f"and the server takes {self._longest}: start it with --max-model-len {needed}, "
                "or leave long prompts out"
            )

        def ask() -> list[Completion]:
            threads = Threads(min(self._concurrency, max(1, len(prompts))), "assay-vllm")
            try:
                asked = zip(prompts, seeds, strict=True)
                calls = [threads.submit(partial(self._answer, *each)) for each in asked]
                found = [call.result() for call in calls]
            except Exception:  # if one failed, the others are not asked
                threads.close(cancel=True, wait=True)
                raise
            except BaseException:  # Ctrl-C waits for no reply
                threads.close(cancel=True)
                self._abort()
                raise
            threads.close()
            self._require_weights()  # a server that was restarted has those it began with
            return list(found)

        return self._through(ask, self._recover)

    def _answer(self, prompt: list[int], seed: int) -> ServedCompletion:
        d, step = self.distribution, self.step
        body = {
            "model": self._served,
            "prompt": prompt,
            "max_tokens": self.max_new_tokens,
            "seed": seed,
            "temperature": d.temperature,
            # Each is named: a server may take other defaults from the model's generation config.
            "top_p": d.top_p,
            "top_k": d.top_k,
            "min_p": d.min_p,
            "repetition_penalty": 1.0,
            "presence_penalty": 0.0,
            "frequency_penalty": 0.0,
            "ignore_eos": True,  # the server's own; ours follow
            "stop_token_ids": list(self.eos_ids),
            "stop": list(self.stop.strings),
            "include_stop_str_in_output": True,
            "return_token_ids": True,
            "logprobs": 0,
        }
        choice = self._complete(body)
        ids: Any = choice.get("token_ids")
        finish: Any = choice.get("finish_reason")
        logprobs: Any = (choice.get("logprobs") or {}).get("token_logprobs")
        if finish == "abort":
            raise ServerLost(f"{self._shown} aborted a request")

        def require(good: bool, rule: str) -> None:
            if not good:
                raise ServerError(f"an answer of {self._shown} is off: {rule}")

        same = choice.get("prompt_token_ids") in (None, prompt)
        require(same, "it was given other tokens: the server must not cut prompts")
        # Ids of a vocabulary padded beyond the tokenizer have no text, but the loss knows them.
        require(
            isinstance(ids, list)
            and 1 <= len(ids) <= self.max_new_tokens
            and all(type(i) is int and 0 <= i < self._vocabulary for i in ids),
            f"a reply must have 1 to {self.max_new_tokens} token ids below {self._vocabulary}, "
            f"got {ids!r:.80}: the server must serve this model and know return_token_ids",
        )
        # A little above 0 is rounding; vLLM writes -9999 if there is none.
        require(
            isinstance(logprobs, list)
            and len(logprobs) == len(ids)
            and all(isinstance(x, float | int) and -9000 < x < 1e-3 for x in logprobs),
            f"there must be {len(ids)} log-probabilities, got {logprobs!r:.120}",
        )
        known_end = finish == "length" or ids[-1] in self.eos_ids or self.stop.complete(ids)
        ended = finish in ("stop", "length")
        require(ended, f"a reply must finish by 'stop' or 'length', got {finish!r}")
        require(
            known_end,
            f"the server ended a reply at token {ids[-1]}, which is not in eos_ids "
            f"{self.eos_ids} and completes no stop string: pass eos_ids with every token that "
            "the server ends at, or start it with --generation-config vllm",
        )
        if d.temperature == 0:
            logprobs = [0.0] * len(ids)  # as the policy that takes the most likely token has them
        known = [i for i in ids if i < len(self.tokenizer)]
        text = self.tokenizer.decode(known, skip_special_tokens=True)
        return ServedCompletion(text, finish, tuple(prompt), tuple(ids), tuple(logprobs), step)


class _Stream:
    """Samples from a :class:`VLLMPolicy` with random numbers of its own."""

    def __init__(self, policy: VLLMPolicy, seed: int) -> None:
        self._policy, self._seed, self._rows = policy, seed, RowNumbers()

    def __call__(self, conversations: Sequence[Conversation], /) -> list[Completion]:
        return self.extend(conversations, [()] * len(conversations))

    def extend(
        self, conversations: Sequence[Conversation], prefixes: Sequence[Sequence[int]], /
    ) -> list[Completion]:
        policy = self._policy
        options = policy.chat_template_kwargs
        prompts = encode_all(policy.tokenizer, conversations, prefixes, options)
        rows = self._rows.of(prefixes)
        found = policy.sample(prompts, [derive_seed(self._seed, row) for row in rows])
        for row, c in zip(rows, found, strict=True):
            self._rows.keep(row, [*c.prompt_ids, *c.ids])
        return found
