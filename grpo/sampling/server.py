"""A server of OpenAI's completions as a policy: tokens in, tokens and log-probabilities out."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch

from ...envs import Completion, Conversation
from ...envs.openai_client import connect
from ...sandbox.redaction import redact
from .draw import Distribution
from .prompts import encode_all
from .random_numbers import derive_seed
from .stop import StopStrings

_FIRST_CONTACT = "start it with `vllm serve`, and give base_url with its /v1"


class ServerError(RuntimeError):
    """A server failed, or answered what no reply can be made of; nothing was judged."""


class ServerPolicy:
    """Samples replies from a server that speaks OpenAI's ``/v1/completions``, such as vLLM's.

    Each reply is one request with a seed of its own, some at a time; servers that keep the
    prompts they have computed compute each once for its group. Prompts go out as token ids, and
    token ids come back: text is made of them here, and nothing is ever tokenised again.

    Log-probabilities must be those of the distribution the tokens are drawn from. vLLM's are
    those of the raw logits unless it was started with ``--logprobs-mode processed_logprobs``;
    at temperature 1 without cuts the two are the same.

    Whatever is off in an answer raises: ids that are none, a prompt that was another, counts
    that differ, an end without the token that ended it, a log-probability that is none.

    Args:
        tokenizer: the model's.
        base_url: such as ``http://127.0.0.1:8000/v1``.
        model: the name the server has for it.
        max_new_tokens: tokens after which a reply is cut off.
        eos_ids: tokens that end a reply; the tokenizer's by default.
        temperature: divides the logits; 0 takes the most likely token.
        top_k: for evaluation only, as the next two; see
            :class:`~assay.grpo.sampling.draw.Distribution`.
        min_p: likewise.
        top_p: likewise.
        stop: as for :class:`~assay.grpo.ModelPolicy`.
        seed: of the first calls.
        sync: called with model and step to give the server its weights, such as a
            :class:`~assay.grpo.WeightFiles`. Without one the server's own weights are sampled
            from, and :meth:`sync` raises.
        concurrency: requests under way at a time.
        retries: of a request that fails to connect, times out, or is answered 408, 409, 429 or
            5xx; the same seed asks for the same reply.
        timeout_s: seconds to wait for an answer.
        api_key_env: environment variable with the key.

    Raises:
        ImportError: the package openai is missing.
        ValueError: a setting is out of its range, or the key is not there.
    """

    def __init__(
        self,
        tokenizer: Any,
        base_url: str,
        model: str,
        *,
        max_new_tokens: int,
        eos_ids: Sequence[int] | None = None,
        temperature: float = 1.0,
        top_k: int = 0,
        min_p: float = 0.0,
        top_p: float = 1.0,
        stop: Sequence[str] = (),
        seed: int = 0,
        sync: Callable[[Any, int], None] | None = None,
        concurrency: int = 64,
        retries: int = 3,
        timeout_s: float = 600.0,
        api_key_env: str | None = None,
    ) -> None:
        if max_new_tokens < 1 or concurrency < 1 or retries < 0:
            raise ValueError(
                "max_new_tokens and concurrency must be at least 1, and retries at least 0, got "
                f"{max_new_tokens}, {concurrency} and {retries}"
            )
        self.tokenizer, self.base_url, self.model = tokenizer, base_url, model
        self.max_new_tokens, self.concurrency = max_new_tokens, concurrency
        self.distribution = Distribution(
            temperature=temperature, top_k=top_k, min_p=min_p, top_p=top_p
        )
        self.stop = StopStrings(tokenizer, stop)
        self.eos_ids = tuple([tokenizer.eos_token_id] if eos_ids is None else eos_ids)
        self._shown = redact(base_url)
        self._client = connect(base_url, api_key_env, retries=retries, timeout_s=timeout_s)
        self._sync = sync
        self._synced: tuple[int, list[float]] | None = None
        self.reseed(seed)

    def reseed(self, seed: int) -> None:
        """Start a new stream of random numbers, at row 0."""
        self._seed, self._row = seed, 0

    def sync(self, model: Any, step: int) -> None:
        """Give the server the model's weights, unless it has had just these.

        Raises:
            ValueError: there is no ``sync`` to do it.
            Exception: whatever that raises; it is tried again at the next call.
        """
        if self._sync is None:
            raise ValueError(
                "the server cannot be given new weights: pass sync to ServerPolicy, such as "
                "WeightFiles(directory, server)"
            )
        now = (step, _fingerprint(model))  # of a second run, the steps may be the same
        if self._synced != now:
            self._synced = None
            self._sync(model, step)
            self._synced = now

    def __call__(self, conversations: Sequence[Conversation], /) -> list[Completion]:
        """Answer each conversation."""
        return self.extend(conversations, [()] * len(conversations))

    def extend(
        self, conversations: Sequence[Conversation], prefixes: Sequence[Sequence[int]], /
    ) -> list[Completion]:
        """Answer each conversation, going on from the tokens of its earlier turns.

        Args:
            conversations: what was said so far.
            prefixes: for each, all tokens up to the end of the policy's last turn; empty before
                its first.

        Raises:
            ServerError: a request failed for good, or an answer is off. No reply is lost
                silently: the whole call fails.
            TemplateRewritesHistory: the tokenizer's chat template does not keep the turns that
                are over, so that there is no such thing as going on from them.
        """
        prompts = encode_all(self.tokenizer, conversations, prefixes)
        rows = range(self._row, self._row + len(prompts))
        self._row += len(prompts)
        pool = ThreadPoolExecutor(min(self.concurrency, max(1, len(prompts))))
        try:
            return list(pool.map(self._answer, prompts, rows))
        finally:
            pool.shutdown(cancel_futures=True)  # where one failed, the others are not asked

    def _answer(self, prompt: list[int], row: int) -> Completion:
        d = self.distribution
        extra: dict[str, Any] = {
            **({"top_k": d.top_k} if d.top_k else {}),
            **({"min_p": d.min_p} if d.min_p else {}),
            "stop_token_ids": list(self.eos_ids),
            "include_stop_str_in_output": True,
            "return_token_ids": True,
        }
        body: dict[str, Any] = {
            "model": self.model,
            "prompt": prompt,
            "max_tokens": self.max_new_tokens,
            "temperature": d.temperature,
            "top_p": d.top_p,
            "seed": derive_seed(self._seed, row),
            "logprobs": 1,
            "extra_body": extra,
        }
        if self.stop:
            body["stop"] = list(self.stop.strings)
        choice = _only_choice(self._sent(body))
        self._require_prompt(choice, prompt)
        ids = self._ids(choice)
        logprobs = _logprobs(choice, len(ids))
        finish = self._finish(choice, ids)
        text = self.tokenizer.decode(ids, skip_special_tokens=True)
        if d.temperature == 0:
            logprobs = [0.0] * len(ids)  # as the policy that takes the most likely token has them
        return Completion(text, finish, tuple(prompt), tuple(ids), tuple(logprobs))

    def _sent(self, body: dict[str, Any]) -> bytes:
        import openai

        try:
            response = self._client.completions.with_raw_response.create(**body)
            return bytes(response.content)
        except openai.APIStatusError as error:
            raise ServerError(
                f"{self._shown} answered {error.status_code}: {error.response.text[:300]!r}"
            ) from error
        except openai.OpenAIError as error:
            raise ServerError(
                f"no answer from {self._shown}: {error.__cause__ or error!r}; {_FIRST_CONTACT}"
            ) from error

    def _require_prompt(self, choice: dict[str, Any], prompt: list[int]) -> None:
        given = choice.get("prompt_token_ids")
        if given is not None and given != prompt:
            raise ServerError(
                f"the server says that it was given other tokens ({str(given)[:80]}...) than it "
                f"was ({str(prompt)[:80]}...): it must not change or cut prompts"
            )

    def _ids(self, choice: dict[str, Any]) -> list[int]:
        ids = choice.get("token_ids")
        if not isinstance(ids, list) or not all(type(i) is int for i in ids):
            raise ServerError(
                "the server gave no token ids: it must know return_token_ids (vLLM does since "
                "0.10.2). To tokenise its text would train on other tokens than were sampled"
            )
        most = len(self.tokenizer)
        if not 1 <= len(ids) <= self.max_new_tokens or not all(0 <= i < most for i in ids):
            raise ServerError(
                f"a reply must have 1 to {self.max_new_tokens} tokens, all below the tokenizer's "
                f"{most}, got {len(ids)}: {str(ids)[:80]}. Does the server have this tokenizer?"
            )
        return ids

    def _finish(self, choice: dict[str, Any], ids: list[int]) -> Any:
        finish = choice.get("finish_reason")
        if finish == "length":
            return finish
        if finish != "stop":
            raise ServerError(f"a reply must finish by 'stop' or 'length', got {finish!r}")
        if ids[-1] not in self.eos_ids and not self.stop.complete(ids):
            raise ServerError(
                f"the server ended a reply at token {ids[-1]}, which is not in eos_ids "
                f"{self.eos_ids} and completes no stop string: pass eos_ids with every token that "
                "the server ends at (those of its generation_config.json too)"
            )
        return finish


def _fingerprint(model: Any) -> list[float]:
    """Sums that a change of weights changes; fused optimizers leave tensors' versions alone."""
    sums = [p.detach().sum(dtype=torch.float64) for p in model.parameters()]
    found: list[float] = torch.stack(sums).tolist()
    return found


def _only_choice(raw: bytes) -> dict[str, Any]:
    try:
        answer = json.loads(raw)
        (choice,) = answer["choices"]
        if not isinstance(choice, dict):
            raise TypeError
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ServerError(f"the server's answer holds no one choice: {raw[:200]!r}") from error
    return choice


def _logprobs(choice: dict[str, Any], tokens: int) -> list[float]:
    found = choice.get("logprobs")
    values = found.get("token_logprobs") if isinstance(found, dict) else None
    if not isinstance(values, list) or len(values) != tokens:
        raise ServerError(
            f"the server gave no log-probability for each of {tokens} tokens: {str(values)[:80]}"
        )
    # A little above 0 is rounding; vLLM writes -9999 where there is none.
    if not all(isinstance(v, float | int) and -9000 < v < 1e-3 for v in values):
        raise ServerError(f"these are no log-probabilities: {str(values)[:120]}")
    return [float(v) for v in values if math.isfinite(v)]
