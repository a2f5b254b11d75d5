"""Judges for reasoning-gym's data sets: equal text, equal JSON, or the package's own scorer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ..extras import needing
from ..verifiers import Status, Verdict, Verifier
from ..verifiers.text.extract import final_answer

RULES = ("answer", "boxed", "whole")
"""Where an answer stands: in the tags that the prompt asks for, in a box, or it is all there is."""

LONGEST = 8000


class _Same(Verifier):
    """Equal to the known answer in a canonical form, which subclasses define."""

    def judge(self, reply: str, reference: Any) -> Verdict:
        """Judge one reply."""
        found = final_answer(reply, RULES, longest=LONGEST)
        if found.text is None:
            return Verdict.wrong(found.reason, status=Status.UNPARSEABLE)
        given = self._canonical(found.text)
        if given is None:
            return Verdict.wrong("no JSON", status=Status.UNPARSEABLE, extracted=found.text)
        if given == self._canonical(reference):
            return Verdict.correct("equal", extracted=found.text)
        return Verdict.wrong("not the known answer", extracted=found.text)

    def oracle_reply(self, reference: Any) -> str | None:
        """Return the known answer in its tags."""
        return tagged(str(reference))

    def _canonical(self, text: str) -> Any:
        """Return what must be equal, ``None`` if the text cannot be read."""
        raise NotImplementedError  # each subclass has its own form


class SameLines(_Same):
    """Equal line by line; blank lines, and how wide the gaps between words are, do not count.

    Args:
        case: whether capitals count.
        gaps: whether there must be a gap if the known answer has one.
    """

    def __init__(self, *, case: bool = True, gaps: bool = True) -> None:
        self.case, self.gaps = case, gaps

    def check_reference(self, reference: Any) -> str | None:
        """Require a text that is not blank."""
        if isinstance(reference, str) and reference.strip():
            return None
        return f"the known answer must be a text that is not blank, got {reference!r:.80}"

    def _canonical(self, text: str) -> list[str]:
        gap = " " if self.gaps else ""
        lines = [gap.join(line.split()) for line in text.splitlines()]
        return [line if self.case else line.casefold() for line in lines if line]


class SameJson(_Same):
    """Equal as JSON values: layout, the order of keys, and 2.0 for 2 do not count."""

    def check_reference(self, reference: Any) -> str | None:
        """Require a JSON text."""
        value = _value(reference)
        return f"the known answer must be JSON, got {reference!r:.80}" if value is None else None

    def _canonical(self, text: str) -> str | None:
        return _value(text)


def _value(text: str) -> str | None:
    """Return a JSON text in canonical form, or ``None`` if it is not JSON."""
    try:
        return json.dumps(_counted(json.loads(text)), sort_keys=True)
    except (TypeError, ValueError, RecursionError, OverflowError):
        return None


def _counted(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _counted(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_counted(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


class PackageScorer(Verifier):
    """The package's own ``score_answer``, for data sets whose scorer was read and found harmless.

    Only what it pays in full is right: many scorers pay a little for any text. An exception that
    a reply causes is the reply's fault, so no reply buys itself a ``None``; if the known answer
    is refused as well it is the data's.

    Reference: ``{"index": 7, "answer": "known answer"}``; the entry is made again from its index.

    Args:
        name: of the data set.
        seed: the data set's.
        size: the data set's.
        config: the data set's other arguments.
        partial: whether a share of the credit is handed on.
    """

    def __init__(
        self,
        name: str,
        *,
        seed: int = 0,
        size: int = 500,
        config: Mapping[str, Any] | None = None,
        partial: bool = False,
    ) -> None:
        self.name, self.seed, self.size = name, seed, size
        self.config, self.partial = dict(config or {}), partial
        self._dataset: Any = None
        self._entries: dict[int, Any] = {}
        self._faults: dict[int, str | None] = {}

    @property
    def dataset(self) -> Any:
        """The package's data set, made on first use in each process."""
        if self._dataset is None:
            self._dataset = made_dataset(self.name, self.seed, self.size, self.config)
        return self._dataset

    def share(self, dataset: Any) -> None:
        """Take a data set that was made with these arguments already."""
        self._dataset = dataset

    def to_json(self) -> dict[str, Any]:
        """Return the data set and its arguments."""
        return {
            "name": "PackageScorer",
            "dataset": self.name,
            "seed": self.seed,
            "size": self.size,
            "config": self.config,
            "partial": self.partial,
        }

    @classmethod
    def _from_options(cls, options: dict[str, Any]) -> Verifier:
        return cls(options.pop("dataset"), **options)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_dataset": None, "_entries": {}, "_faults": {}}

    def entry(self, index: int) -> Any:
        """Return the package's own entry."""
        if index not in self._entries:
            self._entries[index] = self.dataset[index]
        return self._entries[index]

    def check_reference(self, reference: Any) -> str | None:
        """Require an index of the data set whose known answer its own scorer pays in full."""
        if not isinstance(reference, dict) or {"index", "answer"} - set(reference):
            return f"expected index and answer, got {reference!r:.80}"
        index = reference["index"]
        if type(index) is not int or not 0 <= index < self.size:
            return f"index must be from 0 to {self.size - 1}, got {index!r:.80}"
        if index not in self._faults:
            self._faults[index] = self._fault(index, reference["answer"])
        return self._faults[index]

    def _fault(self, index: int, gold: Any) -> str | None:
        if gold is None:
            return None  # of some puzzles no answer is kept
        if not str(gold).strip():
            return "the known answer is empty, and the package pays any reply without a number"
        try:
            paid = float(self.dataset.score_answer(gold, self.entry(index)))
        except Exception as error:
            return f"{self.name} cannot score its own answer: {type(error).__name__}: {error}"
        return None if paid >= 1 else f"{self.name} pays its own answer only {paid:.3f}"

    def judge(self, reply: str, reference: Any) -> Verdict:
        """Judge one reply."""
        found = final_answer(reply, RULES, longest=LONGEST)
        if found.text is None:
            return Verdict.wrong(found.reason, status=Status.UNPARSEABLE)
        try:
            paid = float(self.dataset.score_answer(found.text, self.entry(reference["index"])))
        except Exception as error:  # the known answer went through, so it is the reply's doing
            reason = f"{self.name} cannot read it: {type(error).__name__}"
            return Verdict.wrong(reason, status=Status.UNPARSEABLE, extracted=found.text)
        if paid >= 1:  # a share of NaN is none
            return Verdict.correct(f"{self.name} pays it", extracted=found.text)
        share = max(paid, 0.0) if self.partial and paid == paid else 0.0
        return Verdict.wrong(f"{self.name} pays {paid:.3f}", score=share, extracted=found.text)

    def oracle_reply(self, reference: Any) -> str | None:
        """Return the known answer, if any."""
        return None if reference["answer"] is None else tagged(str(reference["answer"]))


def made_dataset(name: str, seed: int, size: int, config: Mapping[str, Any]) -> Any:
    """Make a data set of the package."""
    with needing("from_reasoning_gym", "reasoning-gym"):
        import reasoning_gym
    return reasoning_gym.create_dataset(name, seed=seed, size=size, **config)


def tagged(answer: str) -> str:
    """Return an answer in the form that the prompt requests."""
    return f"<answer>{answer}</answer>"
