"""JsonFields: how much of a known record did the answer extract?"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from typing import Any
from unicodedata import normalize

from ..verdict import Verdict
from ..verifier import Verifier
from .json_text import as_json, find_json
from .json_value import json_fault

Leaf = tuple[tuple[Any, ...], tuple[Any, ...]]
"""A path of keys and places, and the value that stands there, as it is compared."""

_EMPTY = {("null",), ("object",), ("array",), ("text", "")}
_DUMP = 4
"""A record of more than this many times the known leaves is a dump, and earns nothing."""


class JsonFields(Verifier):
    """F1 over the leaves of a record: pairs of a path and a value.

    An extra leaf costs precision, a missing one recall; the score is
    ``2 * right / (given + known)``. The record is the reply's JSON object, read as by
    :class:`~assay.verifiers.form.json_value.Json`. ``1`` equals ``1.0``, but neither
    ``true`` nor ``"1"``; an empty object or array is a leaf of its own. A field that is null in the
    reference may be left out: a column of Parquet has those of all rows. Leaves that are null or
    empty in both records earn nothing unless another leaf agrees, and a record with more than four
    times the known leaves earns nothing.

    Reference: the known record, such as ``{"name": "Ada", "born": 1815}``.

    Args:
        ordered: whether the places in an array count; if not, arrays without objects or arrays in
            them are compared as bags.
        case: whether capitals in strings count.
        whitespace: whether white space within strings counts; at both ends it never does.
        all_or_nothing: only the whole record pays.
        only: allow nothing around the object, neither fence nor tags nor words.

    Example:
        >>> gold = {"name": "Ada", "born": 1815}
        >>> JsonFields().verify('{"name": "Ada", "born": 1816}', gold).score
        0.5
    """

    def __init__(
        self,
        *,
        ordered: bool = True,
        case: bool = True,
        whitespace: bool = True,
        all_or_nothing: bool = False,
        only: bool = False,
    ) -> None:
        self.ordered, self.case, self.whitespace = ordered, case, whitespace
        self.all_or_nothing, self.only = all_or_nothing, only

    def check_reference(self, reference: Any) -> str | None:
        """Require a record with at least one leaf that is neither null nor empty."""
        fault = json_fault(reference, dict)
        if fault is None and not _says_something(self._leaves(as_json(reference))):
            return "the record says nothing: every leaf is null or empty"
        return fault

    def oracle_reply(self, reference: Any) -> str | None:
        """Return the record itself."""
        return json.dumps(reference)

    def judge(self, reply: str, reference: Any) -> Verdict:
        """Judge one reply."""
        found = find_json(reply, only=self.only)
        if found.text is None:
            return Verdict.unparseable(found.reason)
        if not isinstance(found.value, dict):
            return Verdict.wrong("the value is no object", extracted=found.text)
        given = self._leaves(found.value)
        known = self._leaves(as_json(reference))
        for path, value in list(known):
            if value == ("null",) and _lacks(found.value, path):
                del known[path, value]
        right = given & known
        many, few = given.total(), known.total()
        parts = {"precision": right.total() / max(many, 1), "recall": right.total() / few}
        if given == known:
            verdict = Verdict.correct("every field agrees", extracted=found.text)
            return replace(verdict, parts=parts)
        score = 2 * right.total() / (many + few)
        if self.all_or_nothing or many > _DUMP * few or not _says_something(right):
            score = 0.0
        reason = f"{right.total()} of {few} fields agree, {many} given"
        return replace(Verdict.wrong(reason, score=score, extracted=found.text), parts=parts)

    def _leaves(self, record: Any) -> Counter[Leaf]:
        """Count the leaves, without recursion; only in a bag does one occur more than once."""
        found: Counter[Leaf] = Counter()
        todo: list[tuple[tuple[Any, ...], Any]] = [((), record)]
        while todo:
            path, value = todo.pop()
            if isinstance(value, dict) and value:
                todo += [((*path, key), item) for key, item in value.items()]
            elif isinstance(value, list) and value:
                placed = self.ordered or any(isinstance(item, list | dict) for item in value)
                todo += [((*path, at if placed else ...), item) for at, item in enumerate(value)]
            else:
                found[path, self._leaf(value)] += 1
        return found

    def _leaf(self, value: Any) -> tuple[Any, ...]:
        if isinstance(value, str):
            value = normalize("NFC", value)
            text = value.strip() if self.whitespace else " ".join(value.split())
            return ("text", text if self.case else text.casefold())
        if isinstance(value, bool):  # before numbers: True is an int to Python
            return ("truth", value)
        if isinstance(value, int | float):
            return ("number", value)
        return ("null" if value is None else "object" if isinstance(value, dict) else "array",)


def _lacks(record: Any, path: tuple[Any, ...]) -> bool:
    """Return True if the object that has a field at this path is there and lacks it."""
    *parents, field = path
    for key in parents:
        try:
            record = record[key]
        except (LookupError, TypeError):
            return False
    return isinstance(record, dict) and field not in record


def _says_something(leaves: Counter[Leaf]) -> bool:
    return any(value not in _EMPTY for _, value in leaves)
