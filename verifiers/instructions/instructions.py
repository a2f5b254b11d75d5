"""Instruction following: does a reply satisfy constraints that a rule can check?"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, get_args

from ..text.thought import after_thinking, without_end_tokens
from ..text.words import canonical, collapse_spaces, count_distinct, folded_words, has_content
from ..validation import check_whole
from ..verdict import Verdict
from ..verifier import Verifier
from .reference import Instruction, prompt_of, read_instructions

Mode = Literal["strict", "loose"]

_REFUSAL = re.compile(
    r"(?:the )?(?:final )?answer(?: is)?$|(?:(?:i am|i'm) )?sorry(?:$| (?:but )?i\b)|as an ai\b"
    r"|i (?:don't|do not) know"
    r"|i (?:cannot|can't|can not|won't|am unable to|'m unable to) "
    r"(?:help|assist|answer|comply|provide|fulfil|fulfill|do)\b"
)
_REFUSAL_WORDS = 12
_MARKUP = re.compile(  # what holds an answer, or is to hold one, and is none itself
    r"(?<!<)</?[A-Za-z][\w-]{0,20}>(?!>)|\\(?:boxed|mbox|text[a-z]{0,9}|mathrm|q?quad)\b|```\w{0,20}"
)
_MISSING = frozenset(("None", "null", "NaN", "nan", "undefined"))
"""Missing values as programs write them."""
_PIECES = 3  # a piece of the prompt, longer than a third of it, is no answer; an option may be
_ONE_LETTER = re.compile(r"([^\W\d])\1{3,}")
_LOOP = 2  # a loop: more words than twice the square of the different ones


class Instructions(Verifier):
    """Full marks if every instruction is followed.

    The instructions are those of IFEval (Zhou et al. 2023, arXiv:2311.07911), of IFBench and of its
    training set (Pyatkin et al. 2025, arXiv:2507.02833), by their public names;
    ``docs/instructions.md`` lists them. The text after a thought is judged, without end tokens that
    a decoder kept. A reply without content follows no instruction: no word, the same few words
    again and again (more than twice the square of the distinct ones), a short refusal, only the
    keywords, or the prompt or a third of it repeated, if the reference has it. An instruction that
    fixes the whole reply, such as one of a few options, may require any of these.

    Args:
        mode: ``"loose"`` also tries the reply without its first line, its last, or both, and each
            without asterisks; it is enough to follow an instruction in one of them.
        partial: pay the share of instructions that are followed.
        least_words: a reply with fewer words has no content either.

    Raises:
        ValueError: the mode is not known, or ``least_words`` is below 1.

    Example:
        >>> wanted = [{"id": "punctuation:no_comma"}, {"id": "detectable_format:title"}]
        >>> verdict = Instructions(partial=True).verify("<<Sun>> It shines, and warms.", wanted)
        >>> verdict.score, dict(verdict.parts)
        (0.5, {'punctuation:no_comma': 0.0, 'detectable_format:title': 1.0})
    """

    judges_form = True

    def __init__(
        self, *, mode: Mode = "strict", partial: bool = False, least_words: int = 1
    ) -> None:
        if mode not in get_args(Mode):
            raise ValueError(f"mode must be 'strict' or 'loose', got {mode!r}")
        check_whole("least_words", least_words)
        self.mode = mode
        self.partial = partial
        self.least_words = least_words

    def check_reference(self, reference: Any) -> str | None:
        """Require known instructions with valid arguments."""
        try:
            read_instructions(reference)
        except ValueError as error:
            return str(error)
        return None

    def judge(self, reply: str, reference: Any) -> Verdict:
        """Hold the reply, or its variants, to each instruction."""
        instructions = read_instructions(reference)
        body = after_thinking(without_end_tokens(reply)) or ""
        texts = _variants(body) if self.mode == "loose" else [body]
        tried = self._followed(texts, instructions, prompt_of(reference))
        followed = [any(each) for each in zip(*tried, strict=True)]
        names = _names(instructions)
        missed = [name for name, held in zip(names, followed, strict=True) if not held]
        share = 1 - len(missed) / len(names)
        verdict = (
            Verdict.wrong(f"not followed: {', '.join(missed)}", score=self.partial * share)
            if missed
            else Verdict.correct(f"all {len(names)} followed")
        )
        return replace(verdict, parts=dict(zip(names, map(float, followed), strict=True)))

    def _followed(
        self, texts: Sequence[str], instructions: Sequence[Instruction], prompt: str
    ) -> list[list[bool]]:
        """Return what each variant of the reply follows, the reply itself first."""
        keywords = {word for each in instructions for word in each.keywords}
        first = self._is_empty(texts[0], prompt, keywords)
        found = []
        for text in texts:
            followed = [has_content(text) and each.followed_by(text) for each in instructions]
            prescribed = any(
                held and each.constraint.whole
                for each, held in zip(instructions, followed, strict=True)
            )
            if not prescribed and (first or self._is_empty(text, prompt, keywords)):
                followed = [False] * len(instructions)
            found.append(followed)
        return found

    def _is_empty(self, reply: str, prompt: str, keywords: set[str]) -> bool:
        """Return whether a reply says nothing of its own beside the prompt and the keywords."""
        said = collapse_spaces(canonical(reply).replace("*", ""))
        if prompt:
            if said in prompt and _PIECES * len(said) > len(prompt):
                return True
            said = said.replace(prompt, " ")
        said = _MARKUP.sub(" ", said).strip()
        found = folded_words(said)
        return (
            len(found) < self.least_words
            or _LOOP * count_distinct(said) ** 2 < len(found)
            or keywords.issuperset(found)
            or _ONE_LETTER.fullmatch("".join(found)) is not None
            or reply.strip() in _MISSING
            or (len(found) <= _REFUSAL_WORDS and _REFUSAL.match(" ".join(found)) is not None)
        )


def _variants(reply: str) -> list[str]:
    """Return the eight variants of IFEval's loose mode."""
    rows = reply.strip().split("\n")
    cuts = (reply, *("\n".join(cut).strip() for cut in (rows[1:], rows[:-1], rows[1:-1])))
    return list(dict.fromkeys([*cuts, *(cut.replace("*", "") for cut in cuts)]))


def _names(instructions: Sequence[Instruction]) -> list[str]:
    """Return the instructions' names; repeated ones are numbered."""
    seen: Counter[str] = Counter()
    names = []
    for each in instructions:
        name = each.constraint.id
        seen[name] += 1
        names.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return names
