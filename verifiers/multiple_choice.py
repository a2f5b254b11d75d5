"""Multiple choice: does the reply name the right option, and no other?"""

from __future__ import annotations

import re
from collections.abc import Mapping
from string import ascii_uppercase
from typing import Any

from .text.labels import without_choice_label
from .text.markup import strip_markup
from .text.read_answer import read_answer
from .text.words import strip_invisible
from .validation import safe_repr
from .verdict import Verdict
from .verifier import Verifier

_RULES = ("answer", "boxed", "hash", "phrase", "fence", "last_line")
_LETTER = re.compile(r"\(?\s*([A-Za-z])\s*[).:\]]?|\[\s*([A-Za-z])\s*\]")
_LABELLED = re.compile(
    r"(?:[(\[]\s*([A-Z])\s*[)\]]|([A-Z])\s*[).:]|([A-Z])\s+[-–—])\s*[:.,]?\s*(\S.*)",
    re.IGNORECASE,
)
_HEDGED = re.compile(
    r"\b(?:or|not|nor|neither|maybe|unless)\b|\?|[(\[][A-Z][)\]]|\b[A-Z][).:](?=\s)"
)
_TEXT_FIRST = re.compile(r"(\S.*?)\s*(?:\(([A-Z])\)|\[([A-Z])\])")
_LETTER_APART = re.compile(r"\(?([A-Z])\)?(?:,\s*(\S.*)|\s*\((\S.*)\))")
_REASONED = re.compile(
    r"\(?([A-Z])\)?(?:[.,]?\s+(?:because|since)\b(?!.*\b(?:but|or|wait|actually)\b)[^?]*"
    r"|,?\snot\s\(?(?!\1)[A-Z]\)?)"
)
_SAYS = re.compile(  # I choose B; B is the correct option
    r"(?:(?:so|therefore|thus|hence|ans)[,:.]?\s)?"
    r"(?:(?:i|we)(?:['’](?:d|ll)|\swould|\swill)?\s(?:choose|pick|select|go\swith)\s"
    r"|it(?:['’]s|\sis|\smust\sbe)\s|(?:selected|chosen)\s(?:answer|option|choice):?\s"
    r"|(?:this|that|which)\s(?:is|leaves(?:\sus\swith)?|matches|corresponds\sto)\s"
    r"|among\s(?:the|these)\s(?:options|choices),?\s|the\s(?:correct\s)?letter\sis\s"
    r"|not\s\(?(?P<other>[A-Z])\)?(?:,?\sbut|[.;])\s(?!\(?(?P=other))|选择?\s?)?"
    r"(?:(?:option|choice)\s)?(?P<choice>.+?)"
    r"(?:选?项(?:是?正确的?)?|是?正确的?|\sis\s(?:(?:the\s)?(?:correct|right|best)|(?:the\s)?(?:(?:correct|right|best)\s)?"
    r"(?:answer|option|choice|one)))?",
    re.IGNORECASE,
)
_SIGNS = ("*`$ ", '*`$"“” ', "*`$\"“”'‘’✅✓✔ ")  # by turns: an option may be f', {7} or "a"
_BRACED = re.compile(r"\{([^{}]*)\}|\[([^\[\]]*)\]")
_FULLWIDTH = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)}
_SEPARATOR = re.compile(r"\s*(?:[,;&/+，、]|\band\b)\s*(?:and\b\s*)?")


class MultipleChoice(Verifier):
    r"""Accept the letter of the right option, its text, or both if they agree.

    ``B``, ``(B)``, ``b.``, ``Option B``, ``B) Paris`` and ``Paris`` are one answer; a reply that
    names two options, or a letter and the text of another, fails. The answer is the last
    ``<answer>``, else the last ``\boxed{}``, else the last line with ``####``, else what follows
    "answer is", else the last line: all of it.

    Reference: ``{"answer": "B", "options": ["Rome", "Paris"]}``: options in the order of their
    letters, or by letter; a bare ``"B"`` or ``"(B)"`` if the options are not known. A list of
    letters as the answer wants all of them and no other.

    Example:
        >>> problem = {"answer": "B", "options": ["Rome", "Paris", "Bern"]}
        >>> choose = MultipleChoice()
        >>> [choose.verify(r, problem).score for r in ("The answer is (B).", "paris", "B) Bern")]
        [1.0, 1.0, 0.0]
    """

    def check_reference(self, reference: Any) -> str | None:
        """Require letters of existing options, and distinct options."""
        if not isinstance(reference, dict):
            reference = {"answer": reference}
        if "answer" not in reference or set(reference) - {"answer", "options"}:
            return f"expected an answer, and perhaps options, got {safe_repr(reference)}"
        answer = reference["answer"]
        letters = _right(answer)
        if not letters or not all(_is_letter(letter) for letter in letters):
            return f"the answer must be one of A to Z, or a list of them, got {safe_repr(answer)}"
        if len(set(letters)) < len(letters):
            return f"the answer has a letter twice: {safe_repr(answer)}"
        return _fault_of_options(reference["options"], letters) if "options" in reference else None

    def oracle_reply(self, reference: Any) -> str | None:
        """Return the letter, or all of them."""
        return f"The answer is {', '.join(sorted(_wanted(reference)))}."

    def judge(self, reply: str, reference: Any) -> Verdict:
        """Read which options are named, and compare."""
        found = read_answer(reply, _RULES)
        if found.text is None:
            return Verdict.unparseable(found.reason)
        options = _options(reference)
        chosen = _chosen(found.text, options, several=isinstance(_answer(reference), list))
        if chosen is None:
            return Verdict.unparseable("names no single option", extracted=found.text)
        named = ", ".join(sorted(chosen))
        if chosen != _wanted(reference):
            return Verdict.wrong(f"{named} is not the right choice", extracted=named)
        return Verdict.correct(f"{named} is right", extracted=named)


def _answer(reference: Any) -> Any:
    return reference["answer"] if isinstance(reference, dict) else reference


def _wanted(reference: Any) -> set[str]:
    return set(_right(_answer(reference)))


def _right(answer: Any) -> list[Any]:
    """Return the letters of an answer; ``(A)``, as BIG-Bench Hard writes it, is A."""
    found = answer if isinstance(answer, list) else [answer]
    return [v[1] if isinstance(v, str) and re.fullmatch(r"\([A-Z]\)", v) else v for v in found]


def _options(reference: Any) -> dict[str, str]:
    """Return the normalized text of options by letter."""
    options = reference.get("options", {}) if isinstance(reference, dict) else {}
    if not isinstance(options, Mapping):
        options = dict(zip(ascii_uppercase, options, strict=False))
    return {letter: _plain(str(text)) for letter, text in options.items()}


def _is_letter(value: Any) -> bool:
    return isinstance(value, str) and len(value) == 1 and value in ascii_uppercase


def _fault_of_options(options: Any, letters: list[str]) -> str | None:
    if not isinstance(options, list | dict) or not options or len(options) > len(ascii_uppercase):
        return f"options must be a list or an object of 1 to 26, got {safe_repr(options)}"
    if isinstance(options, dict) and not all(_is_letter(letter) for letter in options):
        return f"options must be by letters from A to Z, got {safe_repr(list(options))}"
    texts = _options({"options": options})
    if not all(texts.values()):
        return f"an option is empty: {safe_repr(options)}"
    if len(set(texts.values())) < len(texts):
        return f"two options are the same: {safe_repr(options)}"
    missing = [letter for letter in letters if letter not in texts]
    return f"there is no option {missing[0]}" if missing else None


def _plain(text: str) -> str:
    """Normalize a text: no case, single spaces, no full stop."""
    text = strip_markup(text).translate(_FULLWIDTH)
    return " ".join(text.split()).rstrip(".").strip().casefold()


def _chosen(text: str, options: dict[str, str], *, several: bool) -> set[str] | None:
    """Return the letters that an answer names, or ``None``."""
    if "~~" in text:  # struck out
        return None
    text = " ".join(strip_markup(strip_invisible(text)).translate(_FULLWIDTH).split())
    read = (_letters(text, options, signs, several=several) for signs in _SIGNS)
    return next((found for found in read if found is not None), None)


def _letters(text: str, options: dict[str, str], signs: str, *, several: bool) -> set[str] | None:
    text = text.strip(signs).rstrip(".").strip(signs)
    text = without_choice_label(text).strip(signs)
    if signs == _SIGNS[-1] and (braced := _BRACED.fullmatch(text)) is not None:
        text = (braced[1] or braced[2] or "").strip(signs)
    said = _SAYS.fullmatch(text)
    if said is not None and _plain(text) not in options.values():
        text = said["choice"].strip(signs)
    if several:
        parts = list(text) if _is_run(text) else _SEPARATOR.split(text)
        letters = [_one(part, options) for part in parts]
        return None if None in letters else {letter for letter in letters if letter}
    letter = _one(text, options)
    return None if letter is None else {letter}


def _is_run(text: str) -> bool:
    """Return whether a text is like ``ACD``: capitals in a row, each once, in order."""
    return text.isascii() and text.isalpha() and text.isupper() and list(text) == sorted({*text})


def _one(text: str, options: dict[str, str]) -> str | None:
    """Return the letter that a text names, alone, with its option, or by its option."""
    by_text = {option: letter for letter, option in options.items()}
    if _plain(text) in by_text and (alone := _LETTER.fullmatch(text)) is None:
        return by_text[_plain(text)]
    alone = _LETTER.fullmatch(text)
    if alone:
        letter = (alone[1] or alone[2]).upper()
        return letter if letter in options or not options else by_text.get(_plain(text))
    if (reasoned := _REASONED.fullmatch(text)) is not None:  # B because A is wrong
        return reasoned[1] if reasoned[1] in options or not options else None
    if (after := _TEXT_FIRST.fullmatch(text)) is not None and options:  # Paris (B)
        letter = after[2] or after[3]
        return letter if options.get(letter) == _plain(after[1]) else None
    if (apart := _LETTER_APART.fullmatch(text)) is not None and options:  # B, Paris; B (Paris)
        return apart[1] if options.get(apart[1]) == _plain(apart[2] or apart[3]) else None
    labelled = _LABELLED.fullmatch(text)
    if labelled is None:
        return None
    letter, option = labelled[1] or labelled[2] or labelled[3], labelled[4]
    if _plain(option) not in by_text:  # "(A) - Bern": the dash is the option's if one has it
        option = option.removeprefix("-").lstrip().strip("\"“”'‘’")
    if not options:
        return letter if letter.isupper() and not _HEDGED.search(option) else None
    return letter.upper() if options.get(letter.upper()) == _plain(option) else None
