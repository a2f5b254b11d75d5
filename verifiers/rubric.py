"""Rubric: several verifiers, one total, and every part by name."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any

from .verdict import Verdict
from .verifier import (
    FunctionVerifier,
    Verifier,
    VerifierLike,
    as_verifier,
    checked_range,
    isolated_verdicts,
    same_length,
)


class Rubric(Verifier):
    """The weighted mean of several verifiers.

    The total is in [0, 1], as every part is, unless a part declares another range; ``score_range``
    is the total's. With a gate, the other parts are paid only if the gate's score is its highest,
    so that good form does not compensate a wrong answer; otherwise each counts as its lowest score,
    which is 0.0 in [0, 1]. ``parts`` has the unchanged scores either way. Status, reason and
    extracted answer are those of the gate, or of the first part with a weight if there is no gate.

    A part whose score is ``None`` makes the total ``None`` with that part's status, since a
    total without it would be a guess; except behind a closed gate, where it is not paid. A
    part of weight 0 that is not the gate is only logged.

    Args:
        parts: verifiers, their classes or names (``"Exact"``), by name; a plain function
            ``(reply, reference)`` to a score or a Verdict will do. All get the same reference.
        weights: by name; 1.0 if a name is not given.
        gate: the name of the part that the others hang on.
        ranges: the lowest and the highest score of functions, by name; [0, 1] without it. A
            Verifier declares its own, as ``score_range``. Scores outside, NaN and infinities are
            ``verifier_error``.

    Raises:
        ValueError: there are no parts, a name is unknown, a weight is negative or not finite,
            all weights are zero, or a range is not one or is given for a Verifier.

    Example:
        >>> from assay.verifiers import Exact, Format, Rubric
        >>> form = Format()
        >>> answer = Exact(extract=("answer",))
        >>> rubric = Rubric({"answer": answer, "form": form}, weights={"form": 0.25}, gate="answer")
        >>> rubric.verify("<think>6 by 7</think><answer>41</answer>", "42").score
        0.0
        >>> rubric.verify("It is <answer>42</answer>", "42").score
        0.8
        >>> brief = Rubric({"brief": lambda reply, _: -len(reply)}, ranges={"brief": (-100, 0)})
        >>> brief.verify("abc", None).score
        -3.0
    """

    def __init__(
        self,
        parts: Mapping[str, VerifierLike],
        *,
        weights: Mapping[str, float] | None = None,
        gate: str | None = None,
        ranges: Mapping[str, tuple[float, float]] | None = None,
    ) -> None:
        if not isinstance(parts, Mapping):
            raise ValueError(f"parts must be a dict of verifiers by name, got {parts!r:.80}")
        if not parts:
            raise ValueError("a rubric needs at least one part, got none")
        if not isinstance(weights, Mapping | None):
            raise ValueError(f"weights must be a dict of numbers by name, got {weights!r:.80}")
        known = ", ".join(parts)
        for name in [*(weights or {}), *(ranges or {}), *([] if gate is None else [gate])]:
            if name not in parts:
                raise ValueError(f"there is no part {name!r}; the parts are {known}")
        for name, weight in (weights or {}).items():
            if not (isinstance(weight, Real) and math.isfinite(weight) and weight >= 0):
                raise ValueError(f"the weight of {name!r} must be 0 or more, got {weight!r}")
        self.weights = {name: float((weights or {}).get(name, 1.0)) for name in parts}
        if not any(self.weights.values()):
            raise ValueError("all weights are 0, so no reply could earn anything; raise one")
        self.parts = {name: _part(name, part, ranges or {}) for name, part in parts.items()}
        self.gate = gate
        self._weighing = [name for name in parts if self._counts(name)]
        self._total_weight = math.fsum(self.weights.values())
        self.score_range = (self._mean(0), self._mean(1))

    def verify_many(self, replies: Sequence[str], references: Sequence[Any]) -> list[Verdict]:
        """Judge the batch with each part in turn, then weigh."""
        same_length(replies, references)
        columns = {
            n: isolated_verdicts(part, replies, references) for n, part in self.parts.items()
        }
        names = tuple(columns)
        return [
            self._weighed(dict(zip(names, row, strict=True)))
            for row in zip(*columns.values(), strict=True)
        ]

    def check_reference(self, reference: Any) -> str | None:
        """Return the first complaint of a part that is not only logged."""
        for name, part in self.parts.items():
            fault = part.check_reference(reference) if self._counts(name) else None
            if fault is not None:
                return f"{name}: {fault}"
        return None

    def oracle_reply(self, reference: Any) -> str | None:
        """Return a part's oracle reply that earns full marks, bare or as a thought and an answer.

        With a gate, the gate's.
        """
        heads = [self.gate] if self.gate is not None else list(self.parts)
        known = [self.parts[name].oracle_reply(reference) for name in heads]
        bare = [reply for reply in known if reply is not None]
        answers = [r if r.startswith("<answer>") else f"<answer>{r}</answer>" for r in bare]
        tagged = [f"<think>I work it out.</think>{answer}" for answer in answers]
        full = self.score_range[1]
        paid = (r for r in [*bare, *tagged] if self.verify(r, reference).score == full)
        return next(paid, bare[0] if bare and len(heads) == 1 else None)

    def close(self) -> None:
        """Close every part."""
        for part in self.parts.values():
            part.close()

    def to_json(self) -> dict[str, Any]:
        """Return everything that the total depends on, as far as the parts can describe it."""
        return {
            "name": "Rubric",
            "parts": {name: part.to_json() for name, part in self.parts.items()},
            "weights": dict(self.weights),
            "gate": self.gate,
        }

    @classmethod
    def _from_options(cls, options: dict[str, Any]) -> Verifier:
        parts = options.pop("parts", {})
        return cls({name: Verifier.from_json(row) for name, row in parts.items()}, **options)

    def __eq__(self, other: object) -> bool:
        """Return whether both weigh equal parts alike."""
        return (
            isinstance(other, Rubric)
            and (self.weights, self.gate) == (other.weights, other.gate)
            and self.parts == other.parts
        )

    def __hash__(self) -> int:
        return hash(self.digest)

    @property
    def digest(self) -> str:
        """A short hash of :meth:`to_json`: two rubrics that differ in it may score differently."""
        text = json.dumps(self.to_json(), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def _counts(self, name: str) -> bool:
        return self.weights[name] > 0 or name == self.gate

    def _mean(self, end: int) -> float:
        """Return the total of the parts' lowest (0) or highest (1) scores."""
        ends = [w * self.parts[name].score_range[end] for name, w in self.weights.items()]
        return math.fsum(ends) / self._total_weight

    def _weighed(self, found: dict[str, Verdict]) -> Verdict:
        parts = {name: verdict.score for name, verdict in found.items()}
        seconds = sum([verdict.seconds for verdict in found.values()])
        head = found[self._weighing[0] if self.gate is None else self.gate]
        opens = -math.inf if self.gate is None else self.parts[self.gate].score_range[1]
        shut = head.score is not None and head.score < opens
        paid: list[float] = []
        for name in self._weighing:
            share = parts[name]
            if shut and name != self.gate:
                share = self.parts[name].score_range[0]
            if share is None:
                reason = f"{name}: {found[name].reason}"
                status = found[name].status
                return Verdict(status, None, reason, head.extracted, parts, seconds)
            paid.append(self.weights[name] * share)
        low, high = self.score_range  # rounding can leave it
        score = max(low, min(high, math.fsum(paid) / self._total_weight))
        return Verdict(head.status, score, head.reason, head.extracted, parts, seconds)


def _part(name: str, given: Any, ranges: Mapping[str, tuple[float, float]]) -> Verifier:
    low_high = checked_range(f"the range of {name!r}", ranges.get(name, Verifier.score_range))
    part = as_verifier(given, low_high)
    if name in ranges and (part is given or not isinstance(part, FunctionVerifier)):
        kind = type(part).__name__
        raise ValueError(
            f"ranges are for functions, and {name!r} is a verifier: let {kind} declare its own "
            f"(score_range = {tuple(ranges[name])}), got {tuple(ranges[name])}"
        )
    return part
