"""A transformers model as a policy: conversations in, completions with their tokens out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from ...envs import Completion, Conversation
from .draw import Distribution
from .prompts import encode_all
from .sample import sample
from .stop import StopStrings


class ModelPolicy:
    """Samples replies from a causal LM.

    Rows are numbered from the last :meth:`reseed` on, over all calls. The same seed and the
    same conversations give the same replies, however they are split into calls and batches
    (to rounding, see :func:`assay.grpo.sample`).

    Args:
        model: a causal LM.
        tokenizer: its tokenizer. Where it has a chat template that is applied, with the prompt
            for the assistant's turn; where it has none, the messages' contents are joined as
            they are.
        max_new_tokens: tokens after which a reply is cut off.
        temperature: divides the logits; 0 takes the most likely token.
        top_k: for evaluation only, as the next two; see
            :class:`~assay.grpo.sampling.draw.Distribution`.
        min_p: likewise.
        top_p: likewise.
        stop: texts that end a reply, found also where they lie across tokens. The reply keeps
            the tokens up to the one that completes such a text, so its text ends with it, and
            with what else that token says.
        seed: of the first calls.
        rows_per_batch: how many replies are decoded side by side; this and the length of the
            prompts decide how much memory the cache takes.
        chat_template_kwargs: given to the chat template, such as ``{"enable_thinking": False}``.

    Raises:
        ValueError: a setting is out of its range.
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
    ) -> None:
        if max_new_tokens < 1 or rows_per_batch < 1:
            raise ValueError(
                "max_new_tokens and rows_per_batch must be at least 1, "
                f"got {max_new_tokens} and {rows_per_batch}"
            )
        self.model = model
        self.tokenizer = tokenizer
        self.max_new_tokens = max_new_tokens
        self.distribution = Distribution(
            temperature=temperature, top_k=top_k, min_p=min_p, top_p=top_p
        )
        self.stop = StopStrings(tokenizer, stop)
        self.rows_per_batch = rows_per_batch
        self.chat_template_kwargs = chat_template_kwargs
        self.eos_ids = eos_ids(model, tokenizer)
        self.reseed(seed)

    def reseed(self, seed: int, first_row: int = 0) -> None:
        """Start a new stream of random numbers, at row ``first_row``."""
        self._seed, self._row = seed, first_row

    def sync(self, model: Any, step: int) -> None:
        """Sample from this model from now on; it is the model itself, and no copy."""
        self.model = model

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
            TemplateRewritesHistory: the tokenizer's chat template does not keep the turns that
                are over, so that there is no such thing as going on from them.
        """
        prompts = encode_all(self.tokenizer, conversations, prefixes, self.chat_template_kwargs)
        training = self.model.training
        self.model.eval()  # dropout would make the log-probabilities another policy's
        try:
            return [
                completion
                for start in range(0, len(prompts), self.rows_per_batch)
                for completion in self._answer(prompts[start : start + self.rows_per_batch])
            ]
        finally:
            self.model.train(training)

    def _answer(self, prompts: Sequence[list[int]]) -> list[Completion]:
        samples = sample(
            self.model,
            prompts,
            max_new_tokens=self.max_new_tokens,
            eos_ids=self.eos_ids,
            stop=self.stop,
            **asdict(self.distribution),
            seed=self._seed,
            first_row=self._row,
        )
        self._row += len(prompts)
        texts = self.tokenizer.batch_decode([s.ids for s in samples], skip_special_tokens=True)
        return [
            Completion(text, s.finish, tuple(prompt), tuple(s.ids), tuple(s.logprobs))
            for prompt, s, text in zip(prompts, samples, texts, strict=True)
        ]


def eos_ids(model: Any, tokenizer: Any) -> tuple[int, ...]:
    """Tokens that end a reply: the tokenizer's, and those of the model's generation config."""
    found = getattr(model.generation_config, "eos_token_id", None)
    listed = found if isinstance(found, list) else [found]
    return tuple(sorted({int(i) for i in (*listed, tokenizer.eos_token_id) if i is not None}))
