"""A reward model: a sequence classifier of transformers as a verifier."""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ...sandbox.extras import missing_package
from ..memo import Memo
from ..validation import check_whole
from ..verdict import Status, Verdict
from ..verifier import Verifier, same_length
from .judge_reference import JudgeReference, read_judge_reference, shown_part
from .prompt import CONTROL, neutralize

_SANE = 10_000_000
"""Tokenizers without a limit of their own say 10^30."""


class RewardModel(Verifier):
    """Score a reply by a reward model: a sequence classifier that transformers loads.

    With one output the score is the sigmoid of its logit (in Bradley-Terry's model, the probability
    to beat a reply of logit 0), or the logit's place in ``between``; with several, the softmax
    probability of ``label``. A score is 0.0 to 1.0, and ``correct`` only at 1.0.

    The model reads the conversation and the reply through its chat template if its tokenizer
    has one, else as a pair of texts. The reply's thought is removed, and control tokens in a
    reply are broken up. A reply without content scores 0.0 and is not read. A model that cannot
    be loaded, that fails, or whose logits are not finite gives ``None``, unless it can read the
    same question with another reply: then the score is 0.0 (``unparseable``).

    Replies are judged one at a time (``batch=1``), so that a score depends only on the pair.
    Larger batches contain texts of equal length in tokens, always as many rows, and are faster; the
    last bits of a score may then depend on its neighbours.

    Reference: ``{"question": ...}`` or ``{"messages": [...]}``; ignored with ``question=False``.

    Args:
        model: a folder, or a name on the hub.
        label: the output that counts, by its name in the model's config, if there are several.
        between: the logits that score 0.0 and 1.0, with a line between them; by default a sigmoid.
        threshold: the score from which a reply is paid 1.0, all others 0.0; ``None`` pays scores.
        question: show the conversation; else the reply alone.
        thoughts: show the thought too.
        longest: tokens of conversation and reply, by default what the model takes; a longer reply
            is ``unparseable`` and scores 0.0, and a question that leaves no room is ``bad_gold``.
            Nothing is ever cut.
        batch: replies at a time.
        device: where the model runs.
        dtype: of its weights.

    Raises:
        ValueError: an option is out of its range.

    Example:
        >>> model = RewardModel("Skywork/Skywork-Reward-V2-Qwen3-0.6B", between=(-20, 20))
        >>> model.verify("Paris.", {"question": "Capital of France?"})  # doctest: +SKIP
        Verdict(status=<Status.INCORRECT: 'incorrect'>, score=...)
    """

    def __init__(
        self,
        model: str,
        *,
        label: str | None = None,
        between: tuple[float, float] | None = None,
        threshold: float | None = None,
        question: bool = True,
        thoughts: bool = False,
        longest: int | None = None,
        batch: int = 1,
        device: str = "cpu",
        dtype: str = "float32",
    ) -> None:
        self.model, self.label, self.question, self.thoughts = str(model), label, question, thoughts
        self.between = None if between is None else _span(between)
        self.threshold, self.longest, self.batch = threshold, longest, batch
        self.device, self.dtype = device, dtype
        if threshold is not None and not 0 < threshold <= 1:
            raise ValueError(f"threshold must be a score in (0, 1], got {threshold!r}")
        if between is not None and label is not None:
            raise ValueError("between is for a model of one output, label for one of several")
        for name, value in (("batch", batch), ("longest", longest)):
            if value is not None:
                check_whole(name, value)
        self._start()

    _held: _Held | None

    def check_reference(self, reference: Any) -> str | None:
        """Require the question in the reference, unless the reply is scored alone."""
        if not self.question:
            return None
        try:
            known = (
                read_judge_reference(reference) if isinstance(reference, dict) else JudgeReference()
            )
        except ValueError as error:
            return str(error)
        if known.messages:
            return None
        return (
            'there is no question: give {"question": ...} or {"messages": [...]}, or '
            "question=False to show the reply alone"
        )

    def verify_many(self, replies: Sequence[str], references: Sequence[Any]) -> list[Verdict]:
        """Judge ``replies[i]`` against ``references[i]``; equal texts are judged once.

        Raises:
            ValueError: there are not as many references as replies.
        """
        same_length(replies, references)
        if not replies:
            return []
        with self._lock:
            try:
                held = self._loaded()
            except Exception as error:  # whatever transformers raises: the fault is ours
                fault = Verdict.fault(Status.VERIFIER_ERROR, _cannot_load(self.model, error))
                return [fault] * len(replies)
            plans = [self._plan(r, g, held) for r, g in zip(replies, references, strict=True)]
            texts = {p.key: p for p in plans if not isinstance(p, Verdict)}
            found = self._scored(texts, held)
        return [
            p if isinstance(p, Verdict) else replace(found[p.key], extracted=p.shown) for p in plans
        ]

    def close(self) -> None:
        """Let the model go; the next batch loads it again."""
        with self._lock:
            loaded = self._held is not None
            self._held = None
            if loaded and self.device.startswith("cuda"):
                import torch

                torch.cuda.empty_cache()

    @classmethod
    def _from_options(cls, options: dict[str, Any]) -> Verifier:
        if "model" not in options:
            example = """'RewardModel:{"model": "path/to/model"}'"""
            raise ValueError(f"RewardModel needs model, a folder or a name on the hub: {example}")
        return cls(**options)

    def __getstate__(self) -> dict[str, Any]:
        """Pickle the name and the options: a copy loads the model again."""
        return {n: v for n, v in self.__dict__.items() if n not in ("_lock", "_held", "_memo")}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self.__dict__.update(state)
        self._start()

    def _start(self) -> None:
        self._lock = threading.Lock()
        self._held = None
        self._memo: Memo[tuple[int, ...], float] = Memo(100_000)

    def _loaded(self) -> _Held:
        if self._held is None:
            self._held = _load(self.model, self.device, self.dtype, self.label)
        return self._held

    def _plan(self, reply: str, reference: Any, held: _Held) -> Verdict | _Tokens:
        """Return the verdict if it is known, else what the model reads."""
        try:
            fault = self.check_reference(reference)
            if fault is not None:
                return Verdict.fault(Status.BAD_GOLD, fault)
            known = read_judge_reference(reference) if self.question else JudgeReference()
            limit = min(self.longest or held.most, held.most)
            try:
                # a token of more than 64 characters is rare, and tokenizing a megabyte is slow
                shown = shown_part(reply, thoughts=self.thoughts, longest=64 * limit)
            except ValueError as error:
                return Verdict.unparseable(str(error))
            tokens = held.tokens(known.messages, neutralize(shown, held.control))
            if len(tokens.ids) > limit:
                least = len(held.tokens(known.messages, "x").ids)
                if least > limit:  # then no reply is short enough
                    long = f"the question alone is {least - 1} tokens; {limit} are read"
                    return Verdict.fault(Status.BAD_GOLD, long)
                many = f"question and reply are {len(tokens.ids)} tokens; {limit} are read"
                return Verdict.unparseable(many)
            return replace(tokens, shown=shown)
        except Exception as error:  # a bug here is ours, and spoils no neighbour
            return Verdict.from_error(error)

    def _scored(
        self, texts: Mapping[tuple[int, ...], _Tokens], held: _Held
    ) -> dict[tuple[int, ...], Verdict]:
        found = {}
        missing = []
        for key, tokens in texts.items():
            known = self._memo.get(key)
            if known is None:
                missing.append(tokens)
            else:
                found[key] = self._verdict(known, 0.0)
        for rows in of_equal_length(missing, self.batch):
            started = time.perf_counter()
            values = self._values(rows, held)
            if len(rows) > 1 and any(isinstance(value, str) for value in values):
                values = [self._values([row], held)[0] for row in rows]  # one spoils no other
            settled = [
                self._at_fault(row, held, v) if isinstance(v, str) else v
                for row, v in zip(rows, values, strict=True)
            ]
            seconds = (time.perf_counter() - started) / len(rows)
            for row, value in zip(rows, settled, strict=True):
                if isinstance(value, Verdict):
                    found[row.key] = replace(value, seconds=seconds)
                    continue
                self._memo.put(row.key, value)
                found[row.key] = self._verdict(value, seconds)
        return found

    def _values(self, rows: Sequence[_Tokens], held: _Held) -> list[float | str]:
        """Return the score of each text, or the error."""
        try:
            logits = held.logits(rows, self.batch)
        except Exception as error:  # out of memory, a device that is gone
            fault = f"the model failed: {type(error).__name__}: {str(error)[:200]}"
            return [fault] * len(rows)
        scores = [_score(numbers, held.index, self.between) for numbers in logits]
        return ["the model's logits are not finite" if s is None else s for s in scores]

    def _at_fault(self, row: _Tokens, held: _Held, fault: str) -> Verdict | float:
        """Attribute an error: to the reply if the model reads the same question with another."""
        control = held.tokens(row.messages, CONTROL)
        for tokens in (control, row, control):
            value = self._values([tokens], held)[0]
            if tokens is control and isinstance(value, str):
                return Verdict.fault(Status.VERIFIER_ERROR, fault)
            if tokens is row and not isinstance(value, str):
                return value
        reason = f"{fault}, and it reads the same question with another reply"
        return Verdict.unparseable(reason)

    def _verdict(self, value: float, seconds: float) -> Verdict:
        paid = value if self.threshold is None else float(value >= self.threshold)
        status = Status.CORRECT if paid == 1.0 else Status.INCORRECT
        reason = f"{self.model} gives {value:.4f}"
        if self.threshold is not None:
            reason += f"; {self.threshold:g} is paid"
        return Verdict(status, paid, reason, seconds=seconds)


@dataclass(frozen=True, slots=True)
class _Tokens:
    """The tokens that the model reads.

    Attributes:
        ids: of the tokens.
        types: 0 for the first text of a pair and 1 for the second; empty if a model has none.
        shown: the part of the reply that is judged.
        messages: that it answers.
    """

    ids: tuple[int, ...]
    types: tuple[int, ...] = ()
    shown: str = ""
    messages: tuple[tuple[str, str], ...] = ()

    @property
    def key(self) -> tuple[int, ...]:
        return (*self.ids, -1, *self.types)


@dataclass
class _Held:
    """A model in memory.

    Attributes:
        model: in eval mode.
        tokenizer: its own.
        index: of the output that counts; ``None`` for a model of one.
        most: tokens that it takes.
        control: texts that its tokenizer takes for control tokens.
    """

    model: Any
    tokenizer: Any
    index: int | None
    most: int
    control: tuple[str, ...]

    def tokens(self, messages: Sequence[tuple[str, str]], reply: str) -> _Tokens:
        """Tokenize a conversation with its reply in the model's training format."""
        if self.tokenizer.chat_template:
            said = [*messages, ("assistant", reply)]
            chat = [{"role": role, "content": content} for role, content in said]
            text = self.tokenizer.apply_chat_template(chat, tokenize=False)
            row = self.tokenizer(text, add_special_tokens=False, verbose=False)
        else:
            question = JudgeReference(tuple(messages)).question
            row = self.tokenizer(*([question, reply] if messages else [reply]), verbose=False)
        types = row.get("token_type_ids", ()) if self._takes_types else ()
        return _Tokens(tuple(row["input_ids"]), tuple(types), messages=tuple(messages))

    @property
    def _takes_types(self) -> bool:
        return bool(getattr(self.model.config, "type_vocab_size", 0))

    def logits(self, rows: Sequence[_Tokens], batch: int) -> list[list[float]]:
        """Return the model's outputs for texts of equal length, padding the batch with the last."""
        import torch

        with torch.inference_mode():
            logits = self.outputs([*rows, *[rows[-1]] * (batch - len(rows))]).double()
        found: list[list[float]] = logits[: len(rows)].tolist()
        return found

    def outputs(self, rows: Sequence[_Tokens]) -> Any:
        """Return differentiable logits [B, labels] of texts of equal length."""
        import torch

        device = self.model.device
        ids = torch.tensor([row.ids for row in rows], device=device)  # [B, T]
        given = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
        if rows[0].types:
            given["token_type_ids"] = torch.tensor([row.types for row in rows], device=device)
        return self.model(**given).logits


def of_equal_length(rows: Sequence[_Tokens], batch: int) -> Iterator[list[_Tokens]]:
    """Yield batches of equal length in tokens, which need no padding."""
    by_length: dict[int, list[_Tokens]] = {}
    for row in rows:
        by_length.setdefault(len(row.ids), []).append(row)
    for length in sorted(by_length):
        alike = by_length[length]
        for start in range(0, len(alike), batch):
            yield alike[start : start + batch]


def _load(name: str, device: str, dtype: str, label: str | None) -> _Held:
    """Load the model and its tokenizer without remote code."""
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    with _without_bars():
        tokenizer: Any = AutoTokenizer.from_pretrained(name)
        model: Any = AutoModelForSequenceClassification.from_pretrained(
            name, dtype=getattr(torch, dtype)
        )
    model.to(device).eval()
    config = model.config
    limits = [getattr(config, "max_position_embeddings", None), tokenizer.model_max_length]
    most = min((n for n in limits if isinstance(n, int) and 0 < n < _SANE), default=_SANE)
    added = tokenizer.added_tokens_decoder.values()
    control = {str(token) for token in added if token.special} | set(tokenizer.all_special_tokens)
    return _Held(model, tokenizer, _index(config, label), most, tuple(sorted(control)))


@contextlib.contextmanager
def _without_bars() -> Iterator[None]:
    """Hold back the progress bars with which transformers reads files."""
    from transformers.utils import logging

    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]  # transformers
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()  # type: ignore[no-untyped-call]  # transformers


def _index(config: Any, label: str | None) -> int | None:
    labels = {str(name): int(k) for k, name in config.id2label.items()}
    if config.num_labels == 1:
        if label is not None:
            raise ValueError(f"it has one output, so label={label!r} names none: leave it out")
        return None
    if label not in labels:
        raise ValueError(f"label must be one of its outputs {', '.join(labels)}, got {label!r}")
    return labels[label]


def _score(
    logits: Sequence[float], index: int | None, between: tuple[float, float] | None
) -> float | None:
    """Return logits as a score in [0, 1], ``None`` if one is not finite."""
    if not all(map(math.isfinite, logits)):
        return None
    if index is not None:
        highest = max(logits)
        shares = [math.exp(logit - highest) for logit in logits]
        return shares[index] / sum(shares)
    if between is not None:
        low, high = between
        return min(1.0, max(0.0, (logits[0] - low) / (high - low)))
    logit = logits[0]
    # each form if its exponential cannot overflow
    return 1 / (1 + math.exp(-logit)) if logit >= 0 else math.exp(logit) / (1 + math.exp(logit))


def _span(between: Sequence[float]) -> tuple[float, float]:
    pair = between if isinstance(between, list | tuple) and len(between) == 2 else (0.0, 0.0)
    low, high = pair
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise ValueError(f"between must be two logits, the lower one first, got {between!r}")
    return (float(low), float(high))


def _cannot_load(name: str, error: Exception) -> str:
    if isinstance(error, ImportError):
        return str(missing_package("a reward model", "train", error))
    return f"the reward model {name!r} cannot be loaded: {' '.join(str(error).split())[:300]}"
