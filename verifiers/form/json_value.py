"""Json: is the answer one well-formed JSON value that says something?"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from ..text.words import has_content
from ..verdict import Verdict
from ..verifier import Verifier
from .json_text import NotJson, as_json, find_json

_KINDS = {"object": dict, "array": list}


class Json(Verifier):
    r"""Full marks for one strict JSON object or array.

    The value is the last ``<answer>``, else the last fenced block of JSON, else everything after
    the thought, optionally after a line that ends in a colon. It fails on text after the value, a
    second value, single quotes, comments, trailing commas, NaN, a duplicate key, half of a
    surrogate pair, numbers out of a double's range, more than 64 levels and more than 100,000
    characters, and on a value without content: a number, a boolean, or a string with a letter or a
    digit. The content is not judged: use this as the gate of a
    :class:`~assay.verifiers.rubric.Rubric`, or use a schema.

    Reference: ignored.

    Args:
        kinds: what the value may be: ``"object"``, ``"array"`` or both.
        required: keys that an object must have; an array has none.
        only: allow nothing around the value, neither fence nor tags nor words.

    Raises:
        ValueError: an option is none of these.

    Example:
        >>> Json().verify('Here it is:\n```json\n{"city": "Oslo"}\n```', None).score
        1.0
        >>> Json().verify("{'city': 'Oslo'}", None).score
        0.0
    """

    judges_form = True

    def __init__(
        self,
        *,
        kinds: Sequence[str] = ("object", "array"),
        required: Sequence[str] = (),
        only: bool = False,
    ) -> None:
        if isinstance(kinds, str) or not kinds or set(kinds) - set(_KINDS):
            raise ValueError(f"kinds must name 'object', 'array' or both in a list, got {kinds!r}")
        if isinstance(required, str) or not all(isinstance(key, str) for key in required):
            raise ValueError(f"required must be a list of keys, got {required!r}")
        if required and "object" not in kinds:
            raise ValueError(f"required must be empty if kinds has no 'object', got {required!r}")
        self.kinds, self.required, self.only = tuple(kinds), tuple(required), only

    def oracle_reply(self, reference: Any) -> str | None:
        """Return an object with the required keys, or an array if only that is allowed."""
        if "object" in self.kinds:
            return json.dumps(dict.fromkeys(self.required or ("answer",), 42))
        return "[42]"

    def judge(self, reply: str, reference: Any) -> Verdict:
        """Judge one reply."""
        found = find_json(reply, only=self.only)
        if found.text is None:
            return Verdict.unparseable(found.reason)
        value = found.value
        if not isinstance(value, tuple(_KINDS[kind] for kind in self.kinds)):
            return Verdict.wrong(f"no {' or '.join(self.kinds)}", extracted=found.text)
        if not holds_content(value):
            return Verdict.wrong("the value says nothing", extracted=found.text)
        missing = [key for key in self.required if not isinstance(value, dict) or key not in value]
        if missing:
            return Verdict.wrong(f"{missing[0]!r} is missing", extracted=found.text)
        return Verdict.correct("well formed", extracted=found.text)


def holds_content(value: Any) -> bool:
    """Return whether a value has a number, a boolean, or a string with a letter or a digit."""
    todo = [value]
    while todo:
        item = todo.pop()
        if isinstance(item, dict):
            todo += item.values()
        elif isinstance(item, list):
            todo += item
        elif item is not None and not (isinstance(item, str) and not has_content(item)):
            return True
    return False


def json_fault(value: Any, kind: type | None = None) -> str | None:
    """Return why a value is not comparable JSON, or ``None`` if it is."""
    if kind is not None and not isinstance(value, kind):
        return f"the reference must be a {kind.__name__}, got {value!r:.80}"
    try:
        if as_json(value) != value:  # json.dumps makes text of any key, and lists of tuples
            return "the reference must be plain JSON: keys that are strings, lists for arrays"
    except NotJson as error:
        return f"the reference must be plain JSON: {error}"
    return None
