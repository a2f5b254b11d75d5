"""Constraints on the form of a reply: IFEval's formats, and those of its training set."""

from __future__ import annotations

import re

from ..form.json_text import NotJson, read_json
from ..form.json_value import holds_content
from ..text.fences import unfenced
from ..text.sentences import sentences
from ..text.words import (
    collapse_spaces,
    folded_words,
    has_content,
    normalize_characters,
    phrase_pattern,
    words,
)
from .blocks import bullets, parts
from .registry import Count, Text, constraint

_PLACEHOLDER = re.compile(r"(?<!\\)\[([^\[\]\n]*)\](?!\()")
_HIGHLIGHT = re.compile(r"(?<![*\\])(\*{1,3})(?![\s*])([^*\n]++)(?<!\s)\1(?!\*)")
_TITLE = re.compile(r"<<([^\n<>]+)>>")
_COMMA = re.compile(r"[,，、،﹐﹑､︐︑՝߸፣᠂᠈⸲⸴⹁꓾]|‚(?!\w)")
_SIX = re.compile(r"(?<!\*)\*{6}(?!\*)")
_AROUND = r"(?:[^\w\n]|_){0,20}(?:[a-z][a-z0-9]{0,9}>)?"  # signs before a heading, or its tag
_QUOTES = ('""', '„"', "«»", "»«", "「」", "『』")  # with curly ones as straight ones
_OPTIONS = ("My answer is yes.", "My answer is no.", "My answer is maybe.")


@constraint("detectable_content:number_placeholders")
def number_placeholders(reply: str, *, num_placeholders: Count) -> bool:
    """At least N placeholders such as ``[address]`` occur; links and ``[1]`` do not count."""
    found = (p for p in _PLACEHOLDER.findall(reply) if any(c.isalpha() for c in p))
    return sum(1 for _ in found) >= num_placeholders


@constraint("detectable_content:postscript")
def postscript(reply: str, *, postscript_marker: Text) -> bool:
    """The marker occurs, in any case, with text before and after it."""
    marker = postscript_marker.strip().casefold()
    literal = r"\.\s?".join(map(re.escape, marker.removesuffix(".").split(".")))
    ends = r"\." if marker.endswith(".") else r"(?![^\W_])"
    low = reply.casefold()
    first = next((k for k, c in enumerate(low) if c.isalnum()), len(low))
    last = next((k for k in range(len(low) - 1, -1, -1) if low[k].isalnum()), -1)
    # "p.s." inside "p.p.s." is another marker
    found = re.finditer(rf"(?<![^\W_])(?<!\bp\.)(?<!\bp\.\s){literal}{ends}", low)
    return any(first < m.start() and m.end() <= last for m in found)


@constraint("detectable_format:number_bullet_lists")
def number_bullet_lists(reply: str, *, num_bullets: Count) -> bool:
    """Exactly N bullets: lines with text after ``*``, ``-``, ``+`` or ``•``."""
    return len(bullets(reply)) == num_bullets


@constraint("detectable_format:number_highlighted_sections")
def number_highlighted_sections(reply: str, *, num_highlights: Count) -> bool:
    """At least N spans in ``*``, ``**`` or ``***``, each on one line and not empty."""
    found = (span for _, span in _HIGHLIGHT.findall(reply) if has_content(span))
    return sum(1 for _ in found) >= num_highlights


@constraint("detectable_format:multiple_sections")
def multiple_sections(reply: str, *, section_spliter: Text, num_sections: Count) -> bool:
    """At least N sections with text, each headed by the marker and a number of its own."""
    marker = re.escape(section_spliter.strip())
    pieces = re.split(rf"^{_AROUND}{marker}[ \t]{{0,3}}(\d+)", reply, flags=re.MULTILINE)
    headed = zip(pieces[1::2], pieces[2::2], strict=True)
    return len({number.lstrip("0") for number, body in headed if has_content(body)}) >= num_sections


@constraint("detectable_format:constrained_response", whole=True)
def constrained_response(reply: str) -> bool:
    """One of ``My answer is yes.``, ``... no.`` and ``... maybe.`` occurs, and no other."""
    return sum(option in reply for option in _OPTIONS) == 1


@constraint("detectable_format:json_format", whole=True)
def json_format(reply: str) -> bool:
    """The reply is a non-empty JSON object or array, bare or in one fence."""
    try:
        value = read_json(unfenced(reply))
    except NotJson:
        return False
    return isinstance(value, dict | list) and holds_content(value)


@constraint("detectable_format:title")
def title(reply: str) -> bool:
    """There is a non-empty title in double angular brackets, such as ``<<poem of joy>>``."""
    return any(map(has_content, _TITLE.findall(reply)))


@constraint("combination:two_responses")
def two_responses(reply: str) -> bool:
    """Six asterisks occur once, between two replies with different words."""
    found = parts(_SIX.sub("\0", reply), "\0") or ()
    return len(found) == 2 and folded_words(found[0]) != folded_words(found[1])


@constraint("combination:repeat_prompt")
def repeat_prompt(reply: str, *, prompt_to_repeat: Text) -> bool:
    """The reply starts with the request, word for word in any case, and continues."""
    said, asked = (
        collapse_spaces(normalize_characters(t)).casefold() for t in (reply, prompt_to_repeat)
    )
    return said.startswith(asked) and has_content(said[len(asked) :])


@constraint("startend:end_checker")
def end_checker(reply: str, *, end_phrase: Text) -> bool:
    """The reply ends with the phrase, in any case, with text before it."""
    said = collapse_spaces(normalize_characters(reply)).casefold().rstrip('"*_ ')
    wanted = collapse_spaces(normalize_characters(end_phrase)).casefold().rstrip('"*_ ')
    found = re.search(rf"{phrase_pattern(wanted)}\Z", said) if wanted else None
    return found is not None and has_content(said[: found.start()])


@constraint("startend:quotation")
def quotation(reply: str) -> bool:
    """The reply is in double quotation marks, as any language has them, and not empty."""
    bare = normalize_characters(reply).strip()
    return len(bare) > 1 and bare[0] + bare[-1] in _QUOTES and has_content(bare)


@constraint("punctuation:no_comma")
def no_comma(reply: str) -> bool:
    """There is no comma, of any script."""
    return _COMMA.search(reply) is None


@constraint("punctuation:punctuation_dot")
def no_dot(reply: str) -> bool:
    """There is no full stop, not even in a number."""
    return not any(c in ".．。｡․﹒" for c in reply)


@constraint("punctuation:punctuation_exclamation")
def no_exclamation(reply: str) -> bool:
    """There is no exclamation mark."""
    return not any(c in "!！¡‼⁉❕❗︕﹗ǃ" for c in reply)


@constraint("detectable_format:square_brackets")
def square_brackets(reply: str) -> bool:
    """Each word is in square brackets of its own; punctuation may follow one."""
    found = [token.rstrip(".,;:!?") for token in reply.split() if has_content(token)]
    return found != [] and all(
        t[0] == "[" and t[-1] == "]" and t.count("[") == t.count("]") == 1 for t in found
    )


@constraint("detectable_format:bigram_wrapping")
def bigram_wrapping(reply: str) -> bool:
    """Each two words are in ``<<double brackets>>``; a last odd one may be alone in them."""
    groups = [group.split() for group in re.findall(r"<<([^<>]*)>>", reply)]
    if has_content(re.sub(r"<<[^<>]*>>", "", reply)) or not groups:
        return False
    return all(len(g) == 2 for g in groups[:-1]) and len(groups[-1]) in (1, 2)


@constraint("detectable_format:sentence_hyphens")
def sentence_hyphens(reply: str) -> bool:
    """At least two sentences, each joined to the next by a hyphen without spaces."""
    pieces = re.split(r"(?<=[.!?])-(?=\S)", reply.strip())
    return len(pieces) > 1 and all(len(sentences(p)) == 1 and words(p) for p in pieces)
