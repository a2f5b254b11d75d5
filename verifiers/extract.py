r"""Finds the one answer a reply commits to.

Every rule reads the reply a fixed number of times, whatever it holds: a reply of one megabyte
of ``\boxed{`` costs no more than one of prose. A thought is no answer: only what follows the
last ``</think>`` counts, and a ``<think>`` that is never closed leaves nothing to judge.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple

from .hedging import denied, left_open, retracted, supposed, taken_back
from .maths.latex import DELIMITERS, undelimited
from .maths.number_words import MAGNITUDES

MAX_ANSWER = 2000
"""Characters. A longer answer is not read: no known answer is near that long."""

DEFAULT_RULES = ("boxed", "answer", "hash", "phrase", "last_number")


class Answer(NamedTuple):
    """What a rule found.

    Attributes:
        text: the answer, or ``None`` where the reply gives none that can be judged.
        rule: the rule that decided; empty where none applied.
        reason: why there is no text.
    """

    text: str | None
    rule: str = ""
    reason: str = ""


def after_thinking(reply: str) -> str | None:
    """The part of a reply that follows its thought, or ``None`` where the thought is unclosed."""
    if "think>" not in reply:
        return reply
    closed = reply.rfind("</think>")
    rest = reply[closed + len("</think>") :] if closed >= 0 else reply
    return None if "<think>" in rest else rest


_END_TOKEN = re.compile(
    r"</s>|<eos>|<pad>|<end_of_turn>|<\|[A-Za-z0-9_]{2,30}\|>|<｜[A-Za-z▁_]{2,30}｜>"
)
_LONGEST_TOKEN = 40


def without_end_tokens(reply: str) -> str:
    r"""The reply without the marks with which a chat model ends it, where they were kept.

    A batch pads its shorter replies, so there may be thousands of them. A byte order mark before
    the reply goes too.

    Example:
        >>> without_end_tokens("It is 42.<|im_end|>\n<|endoftext|>")
        'It is 42.'
    """
    if reply.startswith("\ufeff"):
        reply = reply[1:]
    if ">" not in reply:
        return reply
    end, kept = len(reply.rstrip()), len(reply)
    while end and reply[end - 1] == ">":
        start = reply.rfind("<", max(0, end - _LONGEST_TOKEN), end)
        if start < 0 or not _END_TOKEN.fullmatch(reply, start, end):
            break
        end = start
        while end and reply[end - 1].isspace():
            end -= 1
        kept = end
    return reply[:kept]


def final_answer(
    reply: str, rules: Sequence[str] = DEFAULT_RULES, *, longest: int = MAX_ANSWER
) -> Answer:
    r"""Apply the rules in order; the first one that finds its mark decides, right or wrong.

    Args:
        reply: the whole reply.
        rules: names from :data:`RULES`:

            - ``boxed``: the last ``\boxed{}`` or ``\fbox{}``. Boxes with nothing but commas,
              ``and`` or ``or`` between them are one list; of boxes that stand apart the last
              counts. A last box that never closes is no answer.
            - ``answer``: the last ``<answer>...</answer>``.
            - ``hash``: the last line with ``####``, unless it is a heading in words.
            - ``phrase``: what follows the last "answer is" or "answer:", to the end of the
              sentence.
            - ``last_math``: the last ``$...$``, ``\(...\)`` or ``\[...\]``.
            - ``last_number``: the last number, unless the words next to it hedge or deny it
              ("5 or 6", "not 6", "6 is wrong").
            - ``fence``: the last fenced block, whatever its language.
            - ``last_line``: the last line that is not blank.
            - ``last_paragraph``: the last lines with no blank line between them.
            - ``whole``: everything.
        longest: an answer of more characters is not read.

    Raises:
        ValueError: there is no rule of that name.
    """
    if isinstance(rules, str):
        check_rules(rules)
    text = after_thinking(without_end_tokens(reply))
    if text is None:
        return Answer(None, reason="<think> is never closed")
    for rule, find in _finders(tuple(rules)):
        found = find(text)
        if found is None:
            continue
        given, named, reason = found
        if given is None:
            return Answer(None, rule, reason)
        if named and len(given) <= longest:  # the rule has made sure of the rest
            return found
        answer = given.strip()
        if answer and len(given) > longest:
            return Answer(None, rule, f"the answer is longer than {longest} characters")
        return Answer(answer, rule) if answer else Answer(None, rule, "the answer is empty")
    return Answer(None, reason=f"no answer found by {', '.join(rules)}")


def check_rules(rules: Sequence[str]) -> None:
    """Refuse names that are no rule."""
    unknown = [rule for rule in rules if rule not in RULES]
    if unknown or not rules or isinstance(rules, str):
        raise ValueError(
            f"extract must be a sequence of rules from {', '.join(RULES)}, got {rules!r}"
        )


@lru_cache(maxsize=256)
def _finders(rules: tuple[str, ...]) -> tuple[tuple[str, Callable[[str], Answer | None]], ...]:
    """The functions of rules; they are checked once, not with each reply."""
    check_rules(rules)
    return tuple((rule, RULES[rule]) for rule in rules)


# -- boxes -------------------------------------------------------------------------------------

_BOX_TOKEN = re.compile(r"\\(?:boxed|fbox)\s{0,8}\{|\\.|[{}]", re.DOTALL)
_BETWEEN_BOXES = re.compile(
    r"(?:[\s$,;&]|[A-Za-z](?:_\{?\w\}?)?\s?=|\\[()\[\],;!: ]|"
    r"\\q?quad|\\(?:text|mbox|textrm)\{\s*(?:and|or)\s*,?\s*\}|and|or)*"
)
_WIDEST_GAP = 60
_OR_NUMBER = re.compile(
    r"[\s$.,)(]{0,4}\bor\s{1,3}(?:(?:maybe|perhaps|possibly|even)\s{1,3})?\$?(-?\d[\d,./]*)(?![A-Za-z\d^_(])"
)


def boxes(text: str) -> tuple[list[tuple[int, int, str]], bool]:
    r"""The boxes of a text that are not inside another.

    Returns:
        ``(start, end, content)`` of each closed box, in order; and whether one opens after the
        last of them and never closes.
    """
    start = _first_box(text)
    if start < 0:
        return [], False
    depth: list[int] = []  # one entry per open brace: where its box began, or -1
    bodies: list[int] = []
    closed: list[tuple[int, int, int, int]] = []  # box and content; nested ones are not cut out
    for token in _BOX_TOKEN.finditer(text, start):
        mark = token.group()
        if mark == "}":
            if not depth:
                continue
            began, body = depth.pop(), bodies.pop()
            if began >= 0:
                while closed and closed[-1][0] > began:  # the outer box holds the inner ones
                    closed.pop()
                closed.append((began, token.end(), body, token.start()))
        elif mark == "{" or (mark[-1] == "{" and len(mark) > 2):
            depth.append(token.start() if len(mark) > 2 else -1)
            bodies.append(token.end())
    last = closed[-1][0] if closed else -1
    contents = [(began, end, text[left:right]) for began, end, left, right in closed]
    return contents, any(began > last for began in depth)


def _first_box(text: str) -> int:
    if "box" not in text:
        return -1
    found = [i for i in (text.find("\\boxed"), text.find("\\fbox")) if i >= 0]
    return min(found, default=-1)


def _boxed(text: str) -> Answer | None:
    if "box" not in text:
        return None
    closed, unclosed = boxes(text)
    if unclosed:
        return Answer(None, reason="the last box is never closed")
    if not closed:
        return None
    run = [closed[-1]]
    for box in reversed(closed[:-1]):
        gap = text[box[1] : run[-1][0]]
        if len(gap) > _WIDEST_GAP or not _BETWEEN_BOXES.fullmatch(gap):
            break
        run.append(box)
    if len(run) == 1:
        start, end, content = run[0]
        if denied(text, start, end):
            return Answer(None, reason="the boxed answer is denied or taken back")
        other = _OR_NUMBER.match(text, end, end + _WIDEST_GAP)
        inside = unboxed(content)
        return Answer(f"{inside} , {other.group(1)}" if other else inside)
    contents = list(dict.fromkeys(unboxed(content) for _, _, content in reversed(run)))
    return Answer(contents[0] if len(contents) == 1 else " , ".join(contents))


def boxed_or_bare(text: str) -> str:
    r"""A known answer by itself, given alone, in ``$...$``, or as a solution that boxes it."""
    found = _boxed(text)
    return unboxed(text if found is None or found.text is None else found.text)


def unboxed(content: str) -> str:
    r"""A text without the ``$...$`` and the boxes around all of it."""
    content = undelimited(content.strip())
    for _ in range(4):
        if "box" not in content:
            break
        inner, _unclosed = boxes(content)
        if len(inner) != 1 or inner[0][:2] != (0, len(content)):
            break
        content = undelimited(inner[0][2].strip())
    return content


# -- other marks -------------------------------------------------------------------------------


def _tagged(text: str) -> Answer | None:
    if "<answer>" not in text:
        return None
    end = text.rfind("</answer>")
    start = text.rfind("<answer>", 0, end) if end >= 0 else text.rfind("<answer>")
    if start < 0:
        return None
    if end < 0 or "<answer>" in text[end:]:
        return Answer(None, reason="the last <answer> is never closed")
    content = text[start + len("<answer>") : end]
    spoken = _phrased(content) if _SPOKEN.match(content) else None
    return spoken or Answer(content)


_WORD = re.compile(r"(?<![\\A-Za-z])[A-Za-z]{3,}")
_NUMBER_WITH_UNIT = re.compile(r"[-+$€£¥\\\s]{0,8}\d[\d,./\s]{0,60}[A-Za-z%°$€.\s]{0,40}")


def _hashed(text: str) -> Answer | None:
    at = text.rfind("####")
    if at < 0:
        return None
    line = text[at + 4 :].partition("\n")[0].strip()
    if line.isdecimal():  # nearly always
        return Answer(line, "hash")
    line = line.lstrip("#").strip()
    heading = _WORD.search(line[:MAX_ANSWER]) and not _NUMBER_WITH_UNIT.fullmatch(line)
    return None if heading or not line else Answer(line.strip("*` "))


_PHRASE = re.compile(
    r"\banswer(?:\s{0,4}[:=]|\s{1,4}is\b\s{0,4}:?)(?:\s{0,4}(?:therefore|thus|hence|then|simply|just|"
    r"exactly|option|choice)\b:?)?",
    re.IGNORECASE,
)
_OR_ELSE = re.compile(r"\bor\s{1,4}(?:the\s{1,4})?(?:final\s|correct\s)?\Z", re.IGNORECASE)
_SPOKEN = re.compile(
    r"\s{0,9}(?:(?:so|thus|therefore|hence),?\s)?(?:the\s)?(?:final\s|correct\s)?answer\b",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(r"[.!?](?=\s|$)|\n")
_CLAUSE = re.compile(r",?\s(?:since|because|as|which)\s")
_DOLLAR = re.compile(r"(?<!\\)\$")
_MONEY = re.compile(r"\$\d")
_FORMULA_WORDS = re.compile(r"\\(?:text|textrm|mbox|mathrm)\{[^{}]*\}")
_MORE = re.compile(
    r"\s{0,3}(?:(?:or|and|to|not)\b|[-–/;|+*=<>±\d\\]|,\s{0,3}(?:or\b|and\b|[$\d\\]))"
)


def _phrased(text: str) -> Answer | None:
    found = list(_PHRASE.finditer(text))
    if not found:
        return None
    last = next((f for f in reversed(found) if not supposed(text, f.start())), None)
    if last is None:
        return Answer(None, reason="the answer is only supposed, or denied")
    if _OR_ELSE.search(text, max(0, last.start() - _WIDEST_GAP), last.start()):
        return Answer(None, reason="the answer is one of several")
    rest = text[last.end() : last.end() + 4 * MAX_ANSWER].lstrip(" \t*:").lstrip("\n")
    stop = _SENTENCE_END.search(rest)
    end = stop.start() if stop else len(rest)
    sentence = rest[:end]
    for left, right in DELIMITERS:
        close = _closing(rest, left, right)
        if close > 0 and _MORE.match(rest, close + len(right)):  # $2$ or $3$
            sentence = sentence.replace(left, "").replace(right, "")
        elif close > 0:
            return _stood_by(rest, rest[len(left) : close], close + len(right))
    clause = _CLAUSE.search(sentence)
    if clause:
        sentence, end = sentence[: clause.start()], clause.start()
    return _stood_by(rest, sentence.strip(" *`"), end)


def _closing(text: str, left: str, right: str) -> int:
    """Where the formula that a text begins with closes; -1 where it begins with none."""
    if not text.startswith(left):
        return -1
    if left != "$":
        return text.find(right, len(left))
    found = _DOLLAR.search(text, 1)
    if found is None:
        return -1
    words = _WORD.search(_FORMULA_WORDS.sub("", text[1 : found.start()]))
    if words and _MONEY.match(text):  # $15, since she had $20
        return -1
    return found.start()


def _stood_by(text: str, answer: str, end: int) -> Answer:
    if retracted(text, end):
        return Answer(None, reason="the answer is questioned or taken back")
    return Answer(answer)


def _last_math(text: str) -> Answer | None:
    best: tuple[int, int, str] | None = None
    for left, right in DELIMITERS:
        close = _last_mark(text, right, len(text))
        begin = _last_mark(text, left, close) if close > 0 else -1
        if begin < 0 or close < begin + len(left):
            continue
        content = text[begin + len(left) : close]
        if content.strip() and (best is None or close > best[1]):
            best = (begin, close + len(right), content)
    if best is None:
        return None
    begin, end, content = best
    if left_open(text, begin, end):
        return Answer(None, reason="the last formula is hedged, denied or taken back")
    other = _FORMULA_OR.search(text[max(0, begin - _WIDEST_GAP) : begin])
    return Answer(f"{other.group(1)} , {content}" if other else content)


def _last_mark(text: str, mark: str, end: int) -> int:
    """Where a delimiter stands last before ``end``; a dollar that is escaped is money."""
    at = text.rfind(mark, 0, end)
    while mark == "$" and at > 0 and text[at - 1] == "\\":
        at = text.rfind(mark, 0, at)
    return at


_FORMULA_OR = re.compile(r"(?:\$|\\\()([^$]{1,40}?)(?:\$|\\\)),?\s{1,3}or\s{1,3}\Z")
_NUMBER_CHARS = frozenset("0123456789.,/")
_FRACTION = re.compile(r"-?\s?\\[dt]?frac\s{0,2}\{[^{}]{1,60}\}\s{0,2}\{[^{}]{1,60}\}$")
_MAGNITUDE = re.compile(rf"\s{{1,3}}(?:{'|'.join(MAGNITUDES)})(?![A-Za-z])")


def _last_number(text: str) -> Answer | None:
    end = len(text)
    while end and not ("0" <= text[end - 1] <= "9"):
        end -= 1
    if not end:
        return None
    fraction = (
        _FRACTION.search(text, max(0, end - 140), end + 1) if text[end : end + 1] == "}" else None
    )
    if fraction:
        start, end = fraction.span()
    else:
        start = end
        while start and text[start - 1] in _NUMBER_CHARS:
            start -= 1
    number = text[start:end].lstrip(",/ ")
    start = end - len(number)
    before = text[start - 2 : start] if start >= 2 else text[:start].rjust(2)
    minus = before[1] in "-−" and not (before[0].isalnum() or before[0] in ")}")
    minus |= before in {"-$", "−$"}
    begin = start - (before[1] == "$") - 1 if minus else start
    if taken_back(text, begin, end):
        return Answer(
            None, reason="the last number is hedged, taken back or part of something else"
        )
    magnitude = _MAGNITUDE.match(text, end)
    percent = text[end : end + 2].lstrip("\\").startswith("%")
    after = magnitude.group() if magnitude else "%" if percent else ""
    return Answer(("-" if minus else "") + number + after)


_FENCE = re.compile(r"^[ \t]{0,3}(```|~~~)[^\n`]*\n?", re.MULTILINE)


def _fenced(text: str) -> Answer | None:
    if "```" not in text and "~~~" not in text:
        return None
    marks = list(_FENCE.finditer(text))
    if not marks:
        return None
    if len(marks) % 2:
        return Answer(None, reason="the last code fence is never closed")
    return Answer(text[marks[-2].end() : marks[-1].start()])


def _last_line(text: str) -> Answer | None:
    return Answer(text.rstrip().rpartition("\n")[2])


_BLANK_LINE = re.compile(r"\n[ \t\r]*\n")


def _last_paragraph(text: str) -> Answer | None:
    blocks = _BLANK_LINE.split(text.strip())
    return Answer(blocks[-1])


def _whole(text: str) -> Answer | None:
    return Answer(text)


RULES: dict[str, Callable[[str], Answer | None]] = {
    "boxed": _boxed,
    "answer": _tagged,
    "hash": _hashed,
    "phrase": _phrased,
    "last_math": _last_math,
    "last_number": _last_number,
    "fence": _fenced,
    "last_line": _last_line,
    "last_paragraph": _last_paragraph,
    "whole": _whole,
}
