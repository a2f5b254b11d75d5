"""maj@k: the probability that the most frequent answer among k replies is correct."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from itertools import combinations
from math import comb

from ..envs import Episode
from ..envs.audit.subject import parts
from ..envs.seeding import rng_at
from ..verifiers import SQL, Code, Countdown, RegexSynthesis, Status, Verifier

_RIGHT = ("right",)
_MOST = 256
"""Subsets of k replies that are looked at; if there are more, so many are drawn."""


_OWN_WAYS = (Code, Countdown, RegexSynthesis, SQL)
"""Verifiers of answers that each reply makes in its own way, though they fit one task alone."""


def many_answers(rubric: Verifier) -> bool:
    """Return whether several answers may be correct, so that each is a separate vote."""
    return any(part.many_answers or isinstance(part, _OWN_WAYS) for part in parts(rubric))


def ballots(episodes: Sequence[Episode], *, many_answers: bool) -> list[tuple[Hashable, bool]]:
    """Return the votes of replies with a score: the answer, and whether it is correct.

    A reply without an answer votes ``None``. Right
    answers are one, however they are written, for there is one known answer; wrong ones are one
    if their text is equal, ignoring case and spaces.

    Args:
        episodes: of one task.
        many_answers: different answers may be right, so these too are compared by text.
    """
    found: list[tuple[Hashable, bool]] = []
    for episode in episodes:
        if episode.reward is None:
            continue
        right = episode.status is Status.CORRECT
        said = episode.verdict.extracted
        text = None if said is None else " ".join(said.split()).casefold()
        if right and not many_answers:
            found.append((_RIGHT, True))
        else:
            found.append((text, right and text is not None))
    return found


def majority(votes: Sequence[tuple[Hashable, bool]]) -> float:
    """Return 1.0 if the most frequent answer is correct, and for ties the share that is.

    No votes: 0.0.

    Example:
        >>> majority([("4", True), ("4", True), ("5", False)])
        1.0
        >>> majority([("4", True), ("5", False)])
        0.5
    """
    counts = Counter(answer for answer, _ in votes if answer is not None)
    if not counts:
        return 0.0
    most = max(counts.values())
    winners = {answer for answer, count in counts.items() if count == most}
    right = {answer for answer, is_right in votes if is_right and answer in winners}
    return len(right) / len(winners)


def majority_at_k(votes: Sequence[tuple[Hashable, bool]], k: int, task: str) -> float:
    """Return maj@k of one task: the mean of :func:`majority` over all choices of k of n replies.

    Of more than 256 choices so many are drawn; which ones depends on the task's id alone.

    Raises:
        ValueError: k is not in 1..n.
    """
    if not 1 <= k <= len(votes):
        raise ValueError(f"k must be in 1..n, got n={len(votes)}, k={k}")
    found = [majority([votes[i] for i in places]) for places in _choices(len(votes), k, task)]
    return sum(found) / len(found)


def _choices(n: int, k: int, task: str) -> Iterator[Sequence[int]]:
    if comb(n, k) <= _MOST:
        yield from combinations(range(n), k)
        return
    rng = rng_at("assay-eval-majority", task, k)
    for _ in range(_MOST):
        yield [int(i) for i in rng.permutation(n)[:k]]
