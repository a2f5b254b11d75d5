"""Import this to register ``reasoning_gym/NAME-v0`` for every data set that can be judged.

``make("assay.adapters.reasoning_gym_ids:reasoning_gym/countdown-v0")`` does it by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ..envs import TextEnv
from .reasoning_gym import from_id, register_reasoning_gym


def __getattr__(name: str) -> Callable[..., TextEnv]:
    """Return the function that makes the environment of a data set, by the data set's name."""
    if name.startswith("__"):
        raise AttributeError(name)
    return partial(from_id, name)


register_reasoning_gym()
