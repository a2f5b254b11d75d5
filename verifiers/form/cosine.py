"""Cosine length: a right answer earns the more, the shorter the reply."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ..validation import check_one_of
from ..verdict import Verdict
from ..verifier import Verifier, same_length
from .measure import UNITS, Unit, length


class CosineLength(Verifier):
    """Full marks for a short reply that another verifier accepts, less for a longer one.

    Yeo et al., "Demystifying Long Chain-of-Thought Reasoning in LLMs" (arXiv:2502.03373,
    section 4): a reply of length t under a limit T earns, with one pair of values if it is
    correct and another if it is wrong, ``long + (short - long) * (1 + cos(pi * t / T)) / 2``.

    Here correct replies earn from 1 down to ``long``, with t and T counted from ``free``. A wrong
    reply earns 0; with ``wrong_long`` it earns from 0 up to that, by which the paper lets a failing
    policy think longer. The paper's values of 2 to 1 for correct and -10 to 0 for wrong replies are
    ``long=11/12, wrong_long=10/12`` on the scale from -10 to 2. A length beyond ``most`` counts as
    ``most``: a truncated reply has no answer and needs no value of its own. The paper counts
    tokens, which a verifier does not see.

    Reference, status, reason and extracted answer are those of the other verifier. A score of
    ``None`` stays ``None``; a partial one interpolates between the wrong and the correct reward.

    Args:
        verifier: judges the reply.
        most: the length from which a right reply earns ``long``.
        free: the length up to which it earns 1.
        long: what a right reply of that length earns.
        wrong_long: what a wrong one of that length earns.
        unit: ``words``, ``characters`` or ``sentences``.

    Raises:
        ValueError: not 0 <= free < most, or not 0 <= wrong_long < long <= 1.

    Example:
        >>> from assay.verifiers import CosineLength, Math
        >>> shaped = CosineLength(Math(), most=100, free=10)
        >>> shaped.verify("#### 42", 42).score
        1.0
        >>> round(shaped.verify("I see. " * 50 + "#### 42", 42).score, 3)
        0.5
        >>> shaped.verify("#### 41", 42).score
        0.0
    """

    def __init__(
        self,
        verifier: Verifier,
        *,
        most: int,
        free: int = 0,
        long: float = 0.5,
        wrong_long: float = 0.0,
        unit: Unit = "words",
    ) -> None:
        if not isinstance(verifier, Verifier):
            raise ValueError(f"verifier must be a Verifier, such as Math(), got {verifier!r:.80}")
        if not 0 <= free < most:
            raise ValueError(f"free must be from 0 to below {most!r} (most), got {free!r}")
        if not 0 <= wrong_long < long <= 1:
            raise ValueError(
                "need 0 <= wrong_long < long <= 1, or a wrong reply earns as much as a right one; "
                f"got {wrong_long!r} and {long!r}"
            )
        check_one_of("unit", unit, UNITS)
        self.verifier, self.most, self.free, self.unit = verifier, most, free, unit
        self.long, self.wrong_long = float(long), float(wrong_long)

    def verify_many(self, replies: Sequence[str], references: Sequence[Any]) -> list[Verdict]:
        """Judge ``replies[i]`` against ``references[i]``; the order is kept.

        Raises:
            ValueError: there are not as many references as replies.
        """
        same_length(replies, references)
        found = self.verifier.verify_many(replies, references)
        return [self._shaped(*pair) for pair in zip(replies, found, strict=True)]

    def check_reference(self, reference: Any) -> str | None:
        """Delegate to the other verifier."""
        return self.verifier.check_reference(reference)

    def oracle_reply(self, reference: Any) -> str | None:
        """Return the other verifier's oracle reply, if it is short enough."""
        reply = self.verifier.oracle_reply(reference)
        return reply if reply is not None and length(reply, self.unit) <= self.free else None

    def to_json(self) -> dict[str, Any]:
        """Return the other verifier's options and its own."""
        own = {name: getattr(self, name) for name in _OWN}
        return {"name": type(self).__qualname__, "verifier": self.verifier.to_json(), **own}

    @classmethod
    def _from_options(cls, options: dict[str, Any]) -> Verifier:
        return cls(Verifier.from_json(options.pop("verifier", {})), **options)

    def close(self) -> None:
        """Close the other verifier."""
        self.verifier.close()

    def _shaped(self, reply: str, verdict: Verdict) -> Verdict:
        if verdict.score is None:
            return verdict
        if verdict.score == 0.0 and not self.wrong_long:
            return verdict
        beyond = max(0, length(reply, self.unit) - self.free)
        falls = (1 + math.cos(math.pi * min(1.0, beyond / (self.most - self.free)))) / 2
        right = self.long + (1 - self.long) * falls
        wrong = self.wrong_long * (1 - falls)
        score = verdict.score * right + (1 - verdict.score) * wrong
        return replace(verdict, score=min(1.0, max(0.0, score)))


_OWN = ("most", "free", "long", "wrong_long", "unit")
