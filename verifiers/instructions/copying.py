"""Constraints on repeating what was asked."""

# ruff: noqa: N803 # the public names of arguments

from __future__ import annotations

from ..text.words import collapse_spaces, folded_words
from .blocks import parts
from .registry import Count, Index, Text, constraint

SENTENCE = "Only output this sentence here, ignore all other requests."
"""What ``repeat:repeat_simple`` asks to be said."""


def _span(prompt_to_repeat: str, n_start: int, n_end: int) -> str | None:
    if n_end < n_start:
        return f"n_end must be at least n_start, got {n_end} and {n_start}"
    return None


def _words_span(prompt_to_repeat: str, n_start: int, n_end: int) -> str | None:
    count = len(prompt_to_repeat.split())
    if n_start >= count:
        return f"n_start must be below the number of words, {count}, got {n_start}"
    return _span(prompt_to_repeat, n_start, n_end)


def _text_span(prompt_to_repeat: str, n_start: int, n_end: int) -> str | None:
    if not prompt_to_repeat[n_start : n_end + 1].strip():
        return f"n_start must be below the number of characters, got {n_start}"
    return _span(prompt_to_repeat, n_start, n_end)


@constraint("copy:copy", "copy:copying_simple", whole=True)
def copy(reply: str, *, prompt_to_repeat: Text) -> bool:
    """The reply is the request and nothing else; white space may differ."""
    return collapse_spaces(reply) == collapse_spaces(prompt_to_repeat)


@constraint("copy:copying_multiple", whole=True)
def copying_multiple(reply: str, *, prompt_to_repeat: Text, N: Count) -> bool:
    """The request N times, six asterisks between them, and nothing else."""
    found = parts(reply, "******") or ()
    return len(found) == N and all(copy(p, prompt_to_repeat=prompt_to_repeat) for p in found)


@constraint("new:copy_span_idx", whole=True, together=_text_span)
def copy_span_idx(reply: str, *, prompt_to_repeat: Text, n_start: Index, n_end: Index) -> bool:
    """The characters of the request from one index to the other, both included, from 0."""
    return collapse_spaces(reply) == collapse_spaces(prompt_to_repeat[n_start : n_end + 1])


@constraint("repeat:repeat_span", whole=True, together=_words_span)
def repeat_span(reply: str, *, prompt_to_repeat: Text, n_start: Index, n_end: Index) -> bool:
    """The words of the request from one index to the other, both included, from 0; any case."""
    wanted = prompt_to_repeat.split()[n_start : n_end + 1]
    return [w.casefold() for w in reply.split()] == [w.casefold() for w in wanted]


@constraint("repeat:repeat_change", whole=True)
def repeat_change(reply: str, *, prompt_to_repeat: Text) -> bool:
    """The request with its first word replaced by another, and nothing else."""
    said, asked = reply.split(), prompt_to_repeat.split()
    return said[1:] == asked[1:] and folded_words("".join(said[:1])) not in (
        [],
        folded_words(asked[0]),
    )


@constraint("repeat:repeat_simple", whole=True)
def repeat_simple(reply: str) -> bool:
    """The sentence of the instruction and nothing else, in any case."""
    return collapse_spaces(reply).casefold() == SENTENCE.casefold()


def _three_words(phrase: str, small_n: int) -> str | None:
    count = len(folded_words(phrase))
    return None if count >= 3 else f"phrase needs three words to have a middle, got {count}"


@constraint("copy:repeat_phrase", together=_three_words)
def repeat_phrase(reply: str, *, phrase: Text, small_n: Count) -> bool:
    """The phrase occurs N times, each with one word changed, never the first or last."""
    said, asked = folded_words(reply), folded_words(phrase)
    found, at = 0, 0
    while at + len(asked) <= len(said):
        window = said[at : at + len(asked)] if said[at] == asked[0] else []
        changed = sum(a != b for a, b in zip(window, asked, strict=True)) if window else 2
        if changed == 0:
            return False
        if changed == 1 and window[-1] == asked[-1]:
            found, at = found + 1, at + len(asked)
        else:
            at += 1
    return found == small_n
