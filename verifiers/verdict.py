"""The finding of a verifier: a status, a score, and the reason for both."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Self

_log = logging.getLogger(__name__)


class Status(StrEnum):
    """The reason for a reply's score.

    The policy causes the first nine, which have a score. The last three are failures of the data,
    the verifier or the sandbox: their score is ``None``, because an infrastructure failure paid as
    0.0 teaches the model that a correct answer was wrong.
    """

    CORRECT = "correct"
    INCORRECT = "incorrect"
    UNPARSEABLE = "unparseable"
    TIMEOUT = "timeout"
    MEMORY = "memory"
    OUTPUT_LIMIT = "output_limit"
    RUNTIME_ERROR = "runtime_error"
    COMPILE_ERROR = "compile_error"
    BROKE_SANDBOX = "broke_sandbox"
    BAD_GOLD = "bad_gold"
    VERIFIER_ERROR = "verifier_error"
    SANDBOX_ERROR = "sandbox_error"

    @property
    def ours(self) -> bool:
        """True if the failure is not the policy's, so that there is no score."""
        return self in _OURS


_OURS = frozenset({Status.BAD_GOLD, Status.VERIFIER_ERROR, Status.SANDBOX_ERROR})
_set = object.__setattr__


@dataclass(frozen=True, slots=True)
class Verdict:
    """One verifier's finding about one reply.

    Attributes:
        status: why the score is what it is.
        score: a finite number, or ``None`` exactly if ``status.ours``. The verifier declares its
            range, ``score_range``, which is [0, 1] unless it says otherwise.
        reason: a short sentence for people.
        extracted: the part of the reply that was judged, if there is one.
        parts: named sub-scores, such as the parts of a rubric.
        seconds: wall-clock cost. Left out of equality: it differs from run to run.

    Raises:
        ValueError: the status is unknown, or the score is not a finite number or does not fit it.
    """

    status: Status
    score: float | None
    reason: str = ""
    extracted: str | None = None
    parts: Mapping[str, float | None] = field(default_factory=dict)
    seconds: float = field(default=0.0, compare=False)

    def __post_init__(self) -> None:
        status = self.status if type(self.status) is Status else Status(self.status)
        score = _finite("score", self.score)
        if (status in _OURS) is not (score is None):
            raise ValueError(
                f"status {status.value!r} does not go with score {score!r}: bad_gold, "
                "verifier_error and sandbox_error have score None, every other status a number"
            )
        parts = {n: _finite(n, s) for n, s in self.parts.items()} if self.parts else {}
        _set(self, "status", status)
        _set(self, "score", score)
        _set(self, "parts", parts)

    @classmethod
    def correct(cls, reason: str = "", *, extracted: str | None = None) -> Self:
        """Return full marks."""
        return cls(Status.CORRECT, 1.0, reason, extracted)

    @classmethod
    def wrong(
        cls,
        reason: str,
        *,
        status: Status = Status.INCORRECT,
        score: float = 0.0,
        extracted: str | None = None,
    ) -> Self:
        """Return a failure of the policy: no marks, or ``score`` for partial credit."""
        return cls(status, score, reason, extracted)

    @classmethod
    def unparseable(cls, reason: str, *, extracted: str | None = None) -> Self:
        """Return a failure to answer in a form that can be read: no marks."""
        return cls(Status.UNPARSEABLE, 0.0, reason, extracted)

    @classmethod
    def fault(cls, status: Status, reason: str) -> Self:
        """Return an infrastructure failure, such as ``bad_gold`` or ``sandbox_error``."""
        return cls(status, None, reason)

    @classmethod
    def from_error(cls, error: BaseException) -> Self:
        """Return ``verifier_error`` for an exception, whose traceback is logged at level DEBUG."""
        _log.debug("verifier_error", exc_info=error)
        return cls(Status.VERIFIER_ERROR, None, f"{type(error).__name__}: {error}")

    def timed(self, seconds: float) -> Self:
        """Return the same finding with what it cost; a verifier may keep the one it made."""
        return type(self)(self.status, self.score, self.reason, self.extracted, self.parts, seconds)

    def to_json(self) -> dict[str, Any]:
        """Return a dict of plain JSON values."""
        return {
            "status": self.status.value,
            "score": self.score,
            "reason": self.reason,
            "extracted": self.extracted,
            "parts": dict(self.parts),
            "seconds": self.seconds,
        }

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> Self:
        """Invert :meth:`to_json`.

        Raises:
            KeyError: a field is missing.
            ValueError: the status is unknown, or does not go with the score.
        """
        return cls(
            status=Status(row["status"]),
            score=row["score"],
            reason=row["reason"],
            extracted=row["extracted"],
            parts=dict(row["parts"]),
            seconds=row["seconds"],
        )


def _finite(name: str, score: Any) -> float | None:
    """Return a score as a plain float, whatever its numeric type."""
    if score is None:
        return None
    if isinstance(score, str) or not math.isfinite(score):
        raise ValueError(f"{name} must be a finite number or None, got {score!r}")
    return float(score)
