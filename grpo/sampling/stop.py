"""Stop strings: does a reply's newest token complete one?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class StopStrings:
    """Texts that end a reply, wherever they lie in its tokens.

    They are looked for in the reply's text as it is given back, so without special tokens; a
    special token that is to end replies belongs to ``eos_ids``.

    Args:
        tokenizer: the model's.
        strings: the texts.

    Attributes:
        strings: the texts.
        window: how many of a reply's last tokens are read at most.

    Raises:
        ValueError: one is empty.
    """

    def __init__(self, tokenizer: Any, strings: Sequence[str]) -> None:
        if isinstance(strings, str) or not all(strings):
            raise ValueError(f"stop must be a list of texts, none empty, got {strings!r}")
        self.strings = tuple(strings)
        self._tokenizer = tokenizer
        self._last = {s[-1] for s in self.strings}
        self._may_complete: dict[int, bool] = {}
        # A token is at least a byte of text. A few more, as the first may lose its leading space.
        self.window = max((len(s.encode()) for s in self.strings), default=0) + 4

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self.strings)

    def complete(self, ids: Sequence[int]) -> bool:
        """Whether the last of these tokens completes one of the strings.

        Args:
            ids: a reply's tokens so far, whose last alone has not been asked about before.
        """
        if not self.strings or not self._may(ids[-1]):
            return False
        text = self._decode(ids[-self.window :])
        return any(s in text for s in self.strings)

    def _may(self, token: int) -> bool:
        """Whether the token's text has a last character of a string, or is part of a character."""
        found = self._may_complete.get(token)
        if found is None:
            text = self._decode([token, token])  # alone, some tokenizers drop its leading space
            found = "\ufffd" in text or not self._last.isdisjoint(text)
            self._may_complete[token] = found
        return found

    def _decode(self, ids: Sequence[int]) -> str:
        text: str = self._tokenizer.decode(list(ids), skip_special_tokens=True)
        return text
