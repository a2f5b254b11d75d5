"""Instruction following: does a reply keep to constraints that a rule can check?"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, get_args

from ..text.thought import after_thinking, without_end_tokens
from ..verdict import Verdict
from ..verifier import Verifier
from .reference import Instruction, prompt_of, read_instructions
from .words import about_how_many, collapsed, folded, has_content, plain, words

Mode = Literal["strict", "loose"]

_REFUSAL = re.compile(
    r"(?:(?:i am|i'm) )?sorry (?:but )?i|i (?:don't|do not) know|as an ai\b"
    r"|i (?:cannot|can't|can not|won't|am unable to|'m unable to) "
    r"(?:help|assist|answer|comply|provide|fulfil|fulfill|do)\b"
)
_REFUSAL_WORDS = 12


class Instructions(Verifier):
    """Full marks where every instruction is followed.

    The instructions are those of IFEval (Zhou et al. 2023, arXiv:2311.07911), of IFBench and of
    its training set (Pyatkin et al. 2025, arXiv:2507.02833), by their public names:
    ``docs/instructions.md`` lists them. What follows a thought is judged, without end tokens that
    a decoder kept. A reply without content
    follows none: fewer than ``least_words`` words, a short refusal, or the prompt given back where
    the reference has it. An instruction that fixes the whole reply, such as one of a few options,
    may be followed in fewer words. Where an instruction bounds the words, no more are asked for.

    Reference: ``[{"id": "keywords:existence", "keywords": ["sun"]}]``, or a public row:
    ``{"instruction_id_list": [...], "kwargs": [{...}], "prompt": ...}``.

    Args:
        mode: ``"loose"`` also tries the reply without its first line, its last, or both, and each
            without asterisks; it is enough to follow an instruction in one of them.
        partial: pay the share of instructions that are followed.
        least_words: a reply with fewer words has no content.

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
        self, *, mode: Mode = "strict", partial: bool = False, least_words: int = 4
    ) -> None:
        if mode not in get_args(Mode):
            raise ValueError(f"mode must be 'strict' or 'loose', got {mode!r}")
        if type(least_words) is not int or least_words < 1:
            raise ValueError(f"least_words must be a whole number from 1, got {least_words!r}")
        self.mode = mode
        self.partial = partial
        self.least_words = least_words

    def check_reference(self, reference: Any) -> str | None:
        """A reference names known instructions with arguments that fit."""
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
        """For each variant of the reply, the reply itself first: what it follows."""
        bounds = [most for each in instructions if (most := each.most_words) is not None]
        least = max(1, min([self.least_words, *bounds]))
        echo = _is_echo(texts[0], prompt, least)
        found = []
        for text in texts:
            followed = [has_content(text) and each.followed_by(text) for each in instructions]
            prescribed = any(
                held and each.constraint.whole
                for each, held in zip(instructions, followed, strict=True)
            )
            if not prescribed and (echo or _is_empty(text, least) or _is_echo(text, prompt, least)):
                followed = [False] * len(instructions)
            found.append(followed)
        return found


def _is_empty(reply: str, least: int) -> bool:
    """Whether a reply says next to nothing: too few words, or a refusal."""
    found = folded(reply)
    if about_how_many(reply) < least:
        return True
    return len(found) <= _REFUSAL_WORDS and _REFUSAL.match(" ".join(found)) is not None


def _is_echo(reply: str, prompt: str, least: int) -> bool:
    """Whether a reply is the prompt, a piece of it as it stands, or little besides."""
    asked = collapsed(prompt.replace("*", ""))  # loose mode takes them from the reply
    if not asked:
        return False
    said = collapsed(plain(reply).replace("*", ""))
    rest = said.casefold().replace(asked.casefold(), " ")
    return said in asked or (len(rest) < len(said) and len(words(rest)) < least)


def _variants(reply: str) -> list[str]:
    """The eight replies of IFEval's loose mode."""
    rows = reply.split("\n")
    cuts = (reply, *("\n".join(cut).strip() for cut in (rows[1:], rows[:-1], rows[1:-1])))
    return list(dict.fromkeys([*cuts, *(cut.replace("*", "") for cut in cuts)]))


def _names(instructions: Sequence[Instruction]) -> list[str]:
    """The instructions' names; one that occurs again is numbered."""
    seen: Counter[str] = Counter()
    names = []
    for each in instructions:
        name = each.constraint.id
        seen[name] += 1
        names.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return names
