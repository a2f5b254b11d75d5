"""The space of all text: what policies read and write."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np

# Samples are noise for checkers; they hold what breaks careless code: quotes, braces,
# backslashes, accents, another script, and a character outside the basic plane.
_SAMPLED = "abcXYZ0123456789 \n\t+-*/=.,;:!?\"'\\{}[]()<>$%#@&|~^_éß∫中🙂"


class Unicode(gym.Space[str]):
    """Strings of any characters, at most ``max_length`` of them; the empty one too.

    It is not a ``gymnasium.spaces.Text``: that has a fixed character set, and in shared memory
    its observations turn into zeros. Gymnasium refuses this space there, and says so.

    Raises:
        ValueError: ``max_length`` is below 1.
    """

    def __init__(self, max_length: int = 1 << 20, *, seed: int | None = None) -> None:
        if max_length < 1:
            raise ValueError(f"max_length must be at least 1, got {max_length}")
        self.max_length = max_length
        super().__init__(shape=(), dtype=None, seed=seed)

    @property
    def is_np_flattenable(self) -> bool:
        """False: text does not become an array."""
        return False

    def sample(self, mask: Any = None, probability: Any = None) -> str:
        """Draw a short random string."""
        if mask is not None or probability is not None:
            raise ValueError("Unicode samples freely: mask and probability must be None")
        length = int(self.np_random.integers(min(self.max_length, 32) + 1))
        picks = self.np_random.integers(len(_SAMPLED), size=length)
        return "".join(_SAMPLED[int(i)] for i in np.atleast_1d(picks))

    def contains(self, x: Any) -> bool:
        """Return whether ``x`` is a string within the length limit."""
        return isinstance(x, str) and len(x) <= self.max_length

    def __repr__(self) -> str:
        return f"Unicode({self.max_length})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Unicode) and self.max_length == other.max_length

    def __hash__(self) -> int:
        return hash((Unicode, self.max_length))
