"""An episode as a tree of turns: what the model sampled stays as ids and is never retokenized.

A request whose messages begin with those of an earlier turn and the very reply it got continues
that turn, the newest if there are several: its ids are kept, and only what the chat template
writes after them is tokenized. Any other request begins a new sequence, and its turn says why.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..envs.episode import Span
from ..envs.turn_tokens import (
    TemplateDropsMessage,
    TemplateRewritesHistory,
    encode_prompt,
    extend_prompt,
)

Message = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Prompt:
    """Tokens to sample from, and their place in the tree.

    Attributes:
        ids: the whole prompt; it begins with all tokens of ``parent``.
        parent: the turn that it continues, if any.
        begins: why it does not continue the turn whose reply it should: "first", "edited" or
            "rewritten"; else "".
        why: the chat template's reason, if it rewrites history.
        rendered: the messages as the chat template got them, sampled turns as their raw text.
        key: identifies the request's messages and tools.
        text: of a prompt that is text alone.
    """

    ids: tuple[int, ...]
    parent: Turn | None = None
    begins: str = ""
    why: str = ""
    rendered: tuple[Message, ...] = ()
    key: bytes = b""
    text: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Turn:
    """One reply of the model.

    Attributes:
        prompt: what it answers.
        ids: tokens it sampled, its end-of-sequence token included.
        logprobs: of each under the distribution it was drawn from.
        message: the reply as the program got it.
        rendered: the conversation up to here as the chat template gets it.
        children: turns that continue it.
    """

    prompt: Prompt
    ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    message: Message
    rendered: tuple[Message, ...]
    children: list[Turn] = field(default_factory=list)

    @property
    def tokens(self) -> tuple[int, ...]:
        """All tokens up to its end."""
        return (*self.prompt.ids, *self.ids)

    @property
    def path(self) -> list[Turn]:
        """The turns from the beginning of its sequence up to this one."""
        found, turn = [self], self.prompt.parent
        while turn is not None:  # an episode may have more turns than Python has frames
            found.append(turn)
            turn = turn.prompt.parent
        return found[::-1]


@dataclass(frozen=True, slots=True)
class Branch:
    """One sequence of an episode, from its first prompt to a turn that nothing continues.

    Attributes:
        turns: its turns; a turn may be in several branches.
        spans: its tokens. Each sampled token is the model's in one branch alone, so it is trained
            once; in further branches it is the environment's.
    """

    turns: tuple[Turn, ...]
    spans: tuple[Span, ...]

    @property
    def ids(self) -> tuple[int, ...]:
        """All tokens."""
        return tuple(i for span in self.spans for i in span.ids)

    @property
    def mask(self) -> tuple[int, ...]:
        """1 for tokens that are trained: sampled ones, in this branch first."""
        return tuple(int(span.author == "model") for span in self.spans for _ in span.ids)

    @property
    def logprobs(self) -> tuple[float, ...]:
        """The log-probability of each masked token, 0.0 for all others."""
        return tuple(p for span in self.spans for p in (span.logprobs or (0.0,) * len(span.ids)))

    def to_json(self) -> dict[str, Any]:
        """Return a dict of plain JSON values."""
        begun = next(t.prompt for t in reversed(self.turns) if t.prompt.begins)
        return {
            "begins": begun.begins,
            "why": begun.why,
            "turns": len(self.turns),
            "ids": list(self.ids),
            "mask": list(self.mask),
            "logprobs": list(self.logprobs),
        }


class TurnTree:
    """The turns of one episode.

    Args:
        tokenizer: the model's; without a chat template contents are joined as they are.
        options: given to the chat template.

    Attributes:
        turns: in the order in which they were added.
    """

    def __init__(self, tokenizer: Any, options: Mapping[str, Any] | None = None) -> None:
        self.tokenizer, self.options = tokenizer, dict(options or {})
        self.turns: list[Turn] = []
        self._roots: list[Turn] = []
        self._known: dict[bytes, list[Turn]] = {}

    def prompt(
        self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]] = ()
    ) -> Prompt:
        """Return the tokens of a conversation up to the assistant's next turn.

        Args:
            messages: with text as ``content``; calls of tools have parsed ``arguments``.
            tools: JSON schemas, for the chat template.

        Raises:
            TemplateDropsMessage: the chat template refuses a message, or does not show it.
            ValueError: the prompt has no tokens.
        """
        options = {**self.options, "tools": list(tools)} if tools else self.options
        keys = _keys(messages, tools)
        known = (self._known.get(keys[end]) for end in range(len(messages), 0, -1))
        found = next((turns for turns in known if turns), None)
        begins, why = "first", ""
        if any(m["role"] == "assistant" for m in messages):
            begins = "edited"
        if found:
            # Equal replies of one prompt are told apart only by what continues them already.
            turn = next((t for t in reversed(found) if not t.children), found[-1])
            rendered = (*turn.rendered, *messages[len(turn.rendered) :])
            last, tokens = len(turn.rendered) - 1, turn.tokens
            edited = any(m["role"] == "assistant" for m in rendered[last + 1 :])
            try:
                ids = extend_prompt(self.tokenizer, _texts(rendered), tokens, options, last)
                begins = "edited" if edited else ""
                return Prompt(tuple(ids), turn, begins, "", rendered, keys[-1])
            except (TemplateRewritesHistory, TemplateDropsMessage) as error:
                begins, why = "rewritten", str(error)
        rendered = tuple(messages)
        ids = encode_prompt(self.tokenizer, _texts(rendered), options)
        return Prompt(tuple(ids), None, begins, why, rendered, keys[-1])

    def prompt_text(self, text: str) -> Prompt:
        """Return the tokens of a text without chat template.

        Raises:
            ValueError: the text has no tokens.
        """
        for turn in reversed(self.turns):
            before = turn.prompt.text
            if before is None:
                continue
            before += self.tokenizer.decode(list(turn.ids), skip_special_tokens=False)
            if text.startswith(before) and text != before:
                new = self.tokenizer(text[len(before) :], add_special_tokens=False)["input_ids"]
                return Prompt((*turn.tokens, *new), turn, key=_digest(b"", text), text=text)
        ids = tuple(self.tokenizer(text)["input_ids"])
        if not ids:
            raise ValueError("a prompt must have at least one token")
        begins = "edited" if self.turns else "first"
        return Prompt(ids, None, begins, key=_digest(b"", text), text=text)

    def place(self, ids: Sequence[int], messages: Sequence[Message] = ()) -> Prompt:
        """Return the place of a prompt that was tokenized elsewhere.

        Args:
            ids: the prompt.
            messages: its text, for the record.
        """
        turn, among = None, self._roots
        while found := next((t for t in among if tuple(ids[: len(t.tokens)]) == t.tokens), None):
            turn, among = found, found.children
        begins = "" if turn else "first" if not self.turns else "rewritten"
        return Prompt(tuple(ids), turn, begins, "", tuple(messages), _digest(b"", list(ids)))

    def add(
        self,
        prompt: Prompt,
        ids: Sequence[int],
        logprobs: Sequence[float],
        message: Message,
        raw: str,
    ) -> Turn:
        """Add the model's reply to a prompt.

        Args:
            prompt: of :meth:`prompt` or :meth:`place`.
            ids: sampled tokens.
            logprobs: of each.
            message: the reply as the program gets it.
            raw: the text of the ids, without special tokens.
        """
        rendered = (*prompt.rendered, {"role": "assistant", "content": raw})
        turn = Turn(prompt, tuple(ids), tuple(logprobs), message, rendered)
        self.turns.append(turn)
        (prompt.parent.children if prompt.parent else self._roots).append(turn)
        self._known.setdefault(_digest(prompt.key, _canonical(message)), []).append(turn)
        return turn

    def branches(self) -> list[Branch]:
        """Return a branch for each turn that nothing continues, the newest first."""
        owned: set[Turn] = set()
        found = []
        for leaf in (turn for turn in reversed(self.turns) if not turn.children):
            path, spans, end = leaf.path, [], 0
            for turn in path:
                spans.append(Span("environment", turn.prompt.ids[end:]))
                mine = turn not in owned
                spans.append(
                    Span("model", turn.ids, turn.logprobs)
                    if mine
                    else Span("environment", turn.ids)
                )
                end = len(turn.tokens)
            owned.update(path)
            found.append(Branch(tuple(path), tuple(spans)))
        return found


def _texts(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Give each message a text, as chat templates and their checks expect."""
    return [{**m, "content": m.get("content") or ""} for m in messages]


def _keys(messages: Sequence[Message], tools: Sequence[Mapping[str, Any]]) -> list[bytes]:
    """Return an identity of the tools, then of each beginning of the messages."""
    keys = [_digest(b"", list(tools))]
    for message in messages:
        keys.append(_digest(keys[-1], _canonical(message)))
    return keys


def _canonical(message: Message) -> dict[str, Any]:
    """Return what must be equal for a message to be the same: all but the names of calls."""
    calls = [call["function"] for call in message.get("tool_calls") or ()]
    rest = {k: v for k, v in message.items() if k not in ("content", "tool_calls")}
    if calls:
        rest["calls"] = calls
    return {**rest, "content": message.get("content") or ""}


def _digest(before: bytes, value: Any) -> bytes:
    text = json.dumps(value, sort_keys=True, default=repr)
    return hashlib.sha256(before + text.encode()).digest()
