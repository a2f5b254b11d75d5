"""What the R1 studies share: sums with their working, in tags that are one token each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from assay.envs import EpisodeGroup, Generated, Split, Task, TextEnv
from assay.verifiers import Verifier

THINK = ("<think>", "</think>", "<answer>", "</answer>")

Spoken = Callable[[np.random.Generator, int, int], str]
"""A reply to a sum, as those whom the base model has read give it."""


def working(a: int, b: int) -> str:
    """Work out the sum of two two-digit numbers, digit by digit: ``7+5=12 1+2+1=4``."""
    ones = a % 10 + b % 10
    tens = a // 10 + b // 10 + ones // 10
    carried = "+1" if ones > 9 else ""
    return f"{a % 10}+{b % 10}={ones} {a // 10}+{b // 10}{carried}={tens}"


def tagged(thought: str, answer: str) -> str:
    """Write a thought and an answer, each in its tags."""
    return f"<think>{thought}</think><answer>{answer}</answer>"


def sums(name: str, rubric: Verifier, split: Split, spoken: Spoken) -> TextEnv:
    """Make tasks: sums of two-digit numbers; ``solution`` is the base's data, right or not."""

    def make(rng: np.random.Generator) -> Task:
        a, b = (int(n) for n in rng.integers(10, 100, size=2))
        return Task(f"{a}+{b}=", reference=str(a + b), solution=spoken(rng, a, b))

    return TextEnv(Generated(make, name=name, split=split), rubric)


def mean_rewards(groups: Sequence[EpisodeGroup]) -> dict[str, float]:
    """Return the mean of each named reward, and of the reply's length in tokens."""
    episodes = [episode for group in groups for episode in group.episodes]
    found: dict[str, list[float]] = {"tokens": []}
    for episode in episodes:
        rewards: Mapping[str, Any] = episode.rewards
        for name, reward in rewards.items():
            found.setdefault(name, []).append(float(reward))
        written = [len(span.ids) for span in episode.spans if span.author == "model"]
        found["tokens"].append(float(sum(written)))
    return {name: sum(values) / len(values) for name, values in found.items()}
