"""Read JSON strictly, and finds the one JSON value that a reply commits to.

What RFC 8259 leaves open is refused, as I-JSON (RFC 7493) has it: names that stand twice in an
object, lone surrogates, numbers out of range. Nothing here recurses on a reply before the depth
of its brackets is known.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from typing import Any, NoReturn

from ..text import fences
from ..text.extract import final_answer
from ..text.hedging import is_denied

MAX_LENGTH = 100_000
"""Characters. Longer JSON is not read."""

MAX_DEPTH = 64
"""Arrays and objects within one another. Deeper JSON is not read."""

_MAX_DIGITS = 1000
_MAX_LEAD_IN = 200
_STRING_OR_BRACKET = re.compile(r'"(?>(?:[^"\\]|\\.)*)"?|[\[{]|[\]}]', re.DOTALL)
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_UNCLOSED = "the last code fence is never closed"
_LANGUAGES = frozenset({"json", "jsonc", "json5", ""})


class NotJson(ValueError):
    """A text is not one JSON value, and why."""


def read_json(text: str) -> Any:
    """Parse a text that is strict JSON from end to end, after an optional byte order mark.

    Raises:
        NotJson: it is not, or it is longer than :data:`MAX_LENGTH`, nested deeper than
            :data:`MAX_DEPTH`, names a key twice in one object, or holds a lone surrogate or a
            number that a double cannot.

    Example:
        >>> read_json('{"a": [1, 2.5, null]}')
        {'a': [1, 2.5, None]}
        >>> read_json('{"a": 1, "a": 2}')
        Traceback (most recent call last):
            ...
        assay.verifiers.form.json_text.NotJson: the key 'a' occurs twice in one object
    """
    text = text.removeprefix("\ufeff")
    if len(text) > MAX_LENGTH:
        raise NotJson(f"longer than {MAX_LENGTH} characters")
    if _depth(text) > MAX_DEPTH:
        raise NotJson(f"nested deeper than {MAX_DEPTH}")
    try:
        value = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise NotJson(f"not JSON: {error.msg} at character {error.pos}") from error
    if _SURROGATE.search(text) or (r"\u" in text and _has_surrogate(value)):
        raise NotJson("half of a surrogate pair")
    return value


def json_end(text: str, start: int) -> int:
    """Return where the JSON object or array ends that begins at ``start``.

    Raises:
        NotJson: none begins there, or its brackets are never closed.
    """
    depth = 0
    for token in _STRING_OR_BRACKET.finditer(text, start):
        depth += {"{": 1, "[": 1, "}": -1, "]": -1}.get(token[0], 0)
        if depth < 1 or text[start] not in "{[":
            break
    else:
        raise NotJson("brackets that are never closed")
    if token.start() == start:
        raise NotJson(f"expected an object, got {text[start : start + 40]!r}")
    return token.end()


def read_number(text: str) -> int | float:
    """Parse a number as JSON writes it.

    Raises:
        NotJson: it has more than 1,000 digits, or a double cannot hold it.
    """
    return _number(text) if set(text) & set(".eE") else _whole_number(text)


def hashable_json(value: Any) -> Any:
    """Return a hashable value, equal exactly if JSON Schema says that values are.

    ``1`` equals ``1.0``; ``true`` equals neither.
    """
    if isinstance(value, bool):
        return ("truth", value)
    if isinstance(value, list):
        return ("array", tuple(map(hashable_json, value)))
    if isinstance(value, dict):
        return ("object", frozenset((key, hashable_json(item)) for key, item in value.items()))
    return value


def as_json(value: Any) -> Any:
    """Copy a Python value as a round trip through JSON would.

    Raises:
        NotJson: JSON cannot hold it, or :func:`read_json` would refuse it.
    """
    try:
        return read_json(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        if isinstance(error, NotJson):
            raise
        raise NotJson(f"JSON cannot hold it: {error}") from error


@dataclass(frozen=True, slots=True)
class FoundJson:
    """The JSON of a reply.

    Attributes:
        text: the JSON, or ``None`` if the reply has none that can be judged.
        value: what it says.
        reason: why there is none.
    """

    text: str | None
    value: Any = None
    reason: str = ""


def find_json(reply: str, *, only: bool = False) -> FoundJson:
    r"""Return the JSON value that a reply commits to.

    What follows the thought is read. Where the whole of it is no value: the last ``<answer>``;
    else the last fenced block of JSON, or the last of all if none says that it is JSON; else
    the whole after a line that introduces it and ends in a colon. Every rule reads the reply a
    fixed number of times.

    Args:
        reply: the whole reply.
        only: read nothing but the whole, so that no tags, fence or words may stand around.

    Example:
        >>> find_json('Here you are:\n{"a": 1}').value
        {'a': 1}
        >>> find_json('{"a": 1} or {"a": 2}').reason
        'not JSON: Extra data at character 9'
    """
    found = final_answer(reply, ("whole",), longest=10 * MAX_LENGTH)
    if found.text is None:
        return FoundJson(None, reason=found.reason)
    text = found.text
    if only or text[0] in "{[":  # a string may hold what looks like a tag or a fence
        try:
            return FoundJson(text, read_json(text))
        except NotJson as error:
            if only or ("<answer>" not in text and not fences.has_fence(text)):
                return FoundJson(None, reason=str(error))
    found = final_answer(reply, ("answer", "whole"), longest=10 * MAX_LENGTH)
    if found.text is None:
        return FoundJson(None, reason=found.reason)
    try:
        text = _without_lead_in(_without_fence(found.text))
        return FoundJson(text, read_json(text))
    except NotJson as error:
        return FoundJson(None, reason=str(error))


def strip_json_fence(text: str) -> str:
    """Return the content of a fence around the whole of a text, or the text if there is none.

    Raises:
        NotJson: the fence is never closed.
    """
    if text.startswith(("```", "~~~")) and fences.fenced_blocks(text)[1] is not None:
        raise NotJson(_UNCLOSED)
    return fences.unfenced(text)


def _without_fence(text: str) -> str:
    blocks, unclosed = fences.fenced_blocks(text)
    if unclosed is not None:
        raise NotJson(_UNCLOSED)
    named = [block for block in blocks if block.language == "json"]
    for block in (named or blocks)[-1:]:
        if block.language not in _LANGUAGES:
            raise NotJson(f"the last fenced block is {block.language!r}, not JSON")
        return block.text.strip()
    return fences.unfenced(text, _LANGUAGES)


def _without_lead_in(text: str) -> str:
    """Remove a first line such as ``Here is the JSON:``."""
    starts = [at for at in (text.find("{"), text.find("[")) if at >= 0]
    start = min(starts, default=0)
    before = text[:start].rstrip().rstrip("*")
    if not before or len(before) > _MAX_LEAD_IN or not before.endswith((":", "：")):
        return text
    if "\n" in before or '"' in before or is_denied(text, start, len(text)):
        return text
    return text[start:]


def _depth(text: str) -> int:
    """Return the nesting depth of brackets outside strings."""
    depth = deepest = 0
    for token in _STRING_OR_BRACKET.finditer(text):
        first = text[token.start()]
        if first in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif first in "]}":
            depth -= 1
    return deepest


def _has_surrogate(value: Any) -> bool:
    todo = [value]
    while todo:
        item = todo.pop()
        if isinstance(item, dict):
            todo += item
            todo += item.values()
        elif isinstance(item, list):
            todo += item
        elif isinstance(item, str) and _SURROGATE.search(item):
            return True
    return False


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        seen: set[str] = set()
        twice = next(k for k, _ in pairs if k in seen or seen.add(k))  # type: ignore[func-returns-value]  # add gives None
        raise NotJson(f"the key {twice!r:.80} occurs twice in one object")
    return made


def _whole_number(text: str) -> int:
    if len(text) > _MAX_DIGITS:  # long before Python's own limit, which raises
        raise NotJson(f"a number of more than {_MAX_DIGITS} digits")
    return int(text)


def _number(text: str) -> float:
    value = float(text) if len(text) <= _MAX_DIGITS else math.inf
    mantissa = text.lower().partition("e")[0]
    if math.isinf(value) or (value == 0 and mantissa.strip("-0.")):
        raise NotJson(f"the number {text:.40} is out of range")
    return value


def _constant(name: str) -> NoReturn:
    raise NotJson(f"{name} is no JSON")


_DECODER = json.JSONDecoder(
    object_pairs_hook=_object,
    parse_int=_whole_number,
    parse_float=_number,
    parse_constant=_constant,
)
