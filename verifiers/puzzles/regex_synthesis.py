"""Regex synthesis: does a pattern match every string that it should, and no other?"""

from __future__ import annotations

import re
from typing import Any

from ..form.linear import Linear
from ..text.boxes import boxes
from ..text.extract import final_answer
from ..text.fences import unfenced
from ..text.labels import strip_label
from ..validation import safe_repr
from ..verdict import Verdict
from .puzzle import BadReference, PuzzleVerifier, fields

_MOST_CHARACTERS = 20_000
"""Of all strings of a reference together."""
_MEMORY = 1 << 19  # bytes of a compiled expression: the work for each character
_LISTS = ("positive", "negative", "hidden_positive", "hidden_negative")
_NOUNS = ("regex", "pattern", "regular expression")
_SLASHES = re.compile(r"/(.*)/([a-z]{0,8})", re.DOTALL)
_RAW = re.compile(r"""r?(["'])(.*)\1""", re.DOTALL)
_TEXT = re.compile(r"\\(?:text|texttt|mathtt)\{(.*)\}", re.DOTALL)
_FLAGS_WITHOUT_EFFECT = frozenset("gduvy")


class RegexSynthesis(PuzzleVerifier):
    r"""Accept any regular expression that matches the positive strings whole, and no negative one.

    The expression is the last ``<answer>``, fenced block or line, with or without ``\boxed{}``; all
    of it, so several lines lose. Code signs, a label (``Regex: ...``), ``r'...'``, quotes and
    ``/.../i`` around it are taken off; quotes and slashes stay if the positive strings begin with
    one. It is read by RE2, in time linear in the strings: lookaround, backreferences, possessive
    and atomic groups are refused. ``^`` and ``$`` may be left out; ``.`` matches no line break
    unless the flag ``s`` says so.

    Hidden strings are judged like the others and are not to be shown. Without hidden positive
    strings an expression must have fewer characters than the positive ones joined by ``|``:
    a list of what it was shown earns nothing.

    Reference: ``{"positive": ["a1", "b22"], "negative": ["a", "1a"], "hidden_positive": ["c3"],
    "hidden_negative": ["cc3"], "pattern": "[a-c][0-9]+"}``. The first two are needed; ``pattern``,
    one that is known to be right, is for audits.

    Args:
        longest: characters that an expression may have.

    Raises:
        ValueError: ``longest`` is not from 1 to 2000.
    """

    many_answers = False

    def __init__(self, *, longest: int = 500) -> None:
        if not 1 <= longest <= 2000:
            raise ValueError(f"longest must be from 1 to 2000, got {longest!r}")
        self.longest = longest

    def check(self, reference: Any) -> None:
        """Check that no string is both positive and negative, and that the known pattern passes."""
        fields(reference, "positive", "negative")
        every = []
        for name in _LISTS:
            strings = reference.get(name, [])
            if not isinstance(strings, list) or not all(isinstance(s, str) for s in strings):
                raise BadReference(f"{name} must be a list of strings, got {safe_repr(strings)}")
            every += strings
        if (total := sum(map(len, every)) + len(every)) > _MOST_CHARACTERS:
            raise BadReference(
                f"the strings must have at most {_MOST_CHARACTERS} characters, got {total}"
            )
        if any("\ud800" <= char <= "\udfff" for char in "".join(every)):
            raise BadReference("a string must be text that UTF-8 can hold, got a lone surrogate")
        if not reference["positive"] or not reference["negative"]:
            raise BadReference(
                "needs a positive and a negative string at least, or everything would win"
            )
        positive, negative = _strings(reference)
        if both := sorted(positive & negative):
            raise BadReference(
                f"a string cannot be both positive and negative, got {safe_repr(both[0])}"
            )
        pattern = reference.get("pattern")
        if pattern is None:
            return
        if not isinstance(pattern, str) or not pattern:
            raise BadReference(f"pattern must be a regular expression, got {safe_repr(pattern)}")
        verdict = self.judge(f"<answer>{pattern}</answer>", reference)
        if verdict.score != 1.0:
            raise BadReference(f"the known pattern does not win: {verdict.reason}")

    def oracle_reply(self, reference: Any) -> str | None:
        pattern = reference.get("pattern")
        return None if pattern is None else f"<answer>{pattern}</answer>"

    def judge(self, reply: str, reference: Any) -> Verdict:
        """Find the expression, and try it on the strings."""
        found, reason = _expression(reply, reference["positive"])
        if found is None:
            return Verdict.unparseable(reason)
        most = min(self.longest, _memorised(reference) - 1)
        if len(found) > most:
            return Verdict.wrong(
                f"{len(found)} characters, at most {most} are allowed", extracted=found[:200]
            )
        try:
            pattern = Linear(found, memory=_MEMORY)
        except ValueError as error:
            return Verdict.unparseable(str(error), extracted=found)
        fault = _mistake(pattern, reference)
        if fault is not None:
            return Verdict.wrong(fault, extracted=found)
        return Verdict.correct("distinguishes all strings", extracted=found)


def _strings(reference: Any) -> tuple[set[str], set[str]]:
    """Return all positive and all negative strings."""
    positive = {*reference["positive"], *reference.get("hidden_positive", ())}
    return positive, {*reference["negative"], *reference.get("hidden_negative", ())}


def _memorised(reference: Any) -> int:
    """Return the length of a list of what was shown, if there is nothing else to generalise to."""
    seen = set(reference["positive"])
    if set(reference.get("hidden_positive", ())) - seen:
        return _MOST_CHARACTERS
    return len("|".join(seen))


def _expression(reply: str, positive: list[str]) -> tuple[str | None, str]:
    """Return the expression of a reply, bare, or ``None`` with the reason."""
    found = final_answer(reply, ("tag", "fence", "last_line"), longest=4000)
    text = found.text
    if text is None:
        return None, found.reason
    if found.rule == "tag":
        text = unfenced(text)
    closed, _ = boxes(text)
    if len(closed) == 1 and (closed[0][:2] == (0, len(text)) or found.rule == "last_line"):
        text = _TEXT.sub(r"\1", closed[0][2].strip())
    if found.rule != "fence" and not any(map(_labelled, positive)):
        text = strip_label(text, *_NOUNS)
    text = _bare(text, positive)
    if "\n" in text:
        return None, "an expression has one line"
    return (text, "") if text else (None, "the expression is empty")


def _labelled(text: str) -> bool:
    """Return True if a string begins as a label does, so that an expression may."""
    return strip_label(text, *_NOUNS) != text


def _bare(text: str, positive: list[str]) -> str:
    """Return an expression without code signs and delimiters, its flags in front."""
    text = text[:-1] if text.endswith("`.") else text
    for sign in ("**", "`"):
        if len(text) > 2 * len(sign) and text.startswith(sign) and text.endswith(sign):
            text = text[len(sign) : -len(sign)].strip()
    raw = _RAW.fullmatch(text)
    if raw and (text[0] == "r" or not any(s.startswith(text[0]) for s in positive)):
        text = raw[2]
    slashes = _SLASHES.fullmatch(text)
    if slashes and not all(s.startswith("/") for s in positive):
        flags = "".join(sorted(set(slashes[2]) - _FLAGS_WITHOUT_EFFECT))
        text = f"(?{flags}){slashes[1]}" if flags else slashes[1]
    if text.endswith(r"\Z") and (len(text) - len(text.rstrip("\\Z"))) == 2:
        text = text[:-1] + "z"  # Python's spelling
    return text


def _mistake(pattern: Linear, reference: Any) -> str | None:
    positive, negative = _strings(reference)
    if not all(map(pattern.fills, positive)):
        return "misses a positive string"
    return "matches a negative string" if any(map(pattern.fills, negative)) else None
