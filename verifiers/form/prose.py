r"""The part of a reply that a verifier of style reads, and what of it is prose."""

from __future__ import annotations

import re
from typing import Any, Literal

from ..text.fences import map_fenced
from ..text.thought import UNCLOSED, after_thinking
from ..text.words import check_content, distinct_words
from ..validation import check_one_of
from ..verdict import Verdict
from ..verifier import Verifier

Part = Literal["all", "answer", "thought"]
PARTS = ("all", "answer", "thought")

_TAGS = re.compile(r"</?(?:think|answer)>|<\|[a-z_]{2,30}\|>|</s>")
_NOT_PROSE = re.compile(
    r"`[^`\n]*+`"
    r"|\$\$[^$]*+\$\$|\$[^$\n]*+\$"
    r"|\\\([^\\]*+(?>(?:\\(?![()])[^\\]*+)*)\\\)|\\\[[^\\]*+(?>(?:\\(?![\[\]])[^\\]*+)*)\\\]"
    r"|(?:https?://|www\.)\S++"
    r"|\\[A-Za-z]++"
)
_BLANKED = dict.fromkeys([*range(0x20, 0x7F), *range(0x370, 0x400)], " ")


def part_of(reply: str, part: Part) -> str | None:
    """Return a part of a reply without its tags, or ``None`` if it is missing.

    Args:
        reply: the whole reply.
        part: ``answer`` is what follows the last ``</think>``, or everything if nothing is
            thought aloud; ``thought`` is what precedes it. A thought that is never closed is
            neither.
    """
    text: str | None = reply
    if part == "answer":
        text = after_thinking(reply)
    elif part == "thought":
        thought, closed, _ = reply.rpartition("</think>")
        text = thought if closed and after_thinking(reply) is not None else None
    return None if text is None else _TAGS.sub(" ", text)


def missing(part: Part) -> str:
    """Return why there is no such part."""
    return "there is no closed thought" if part == "thought" else UNCLOSED


def prose(text: str) -> str:
    r"""Remove code, formulas, LaTeX commands and addresses from a text.

    Of those only ASCII and Greek go: whoever writes Chinese in a fence or in ``\text{}`` still
    writes Chinese.

    Example:
        >>> prose(r"So $x=y$, see https://a.b and `f(x)`!").split()
        ['So', ',', 'see', 'and', '!']
    """
    text = map_fenced(text, lambda line: line.translate(_BLANKED))
    return _NOT_PROSE.sub(lambda found: found.group().translate(_BLANKED), text)


class StyleVerifier(Verifier):
    """Judge the style of a part of a reply that says something. Derive from it; write `judge_text`.

    Args:
        part: what is read: ``all``, the ``thought``, or the ``answer`` that follows it.
        content: different words that it must hold, or it says nothing and earns 0.

    Raises:
        ValueError: ``content`` is below 1, or the part is not known.
    """

    judges_form = True

    def __init__(self, part: Part, content: int) -> None:
        check_one_of("part", part, PARTS)
        check_content(content)
        self.part, self.content = part, content

    @property
    def least_words(self) -> int:
        """How many different words the part must hold."""
        return self.content

    def judge_text(self, text: str) -> Verdict:
        """Judge a part that says something."""
        raise TypeError(f"{type(self).__name__} must define judge_text")

    def judge(self, reply: str, reference: Any) -> Verdict:
        """Judge the part of one reply, if it is there and says something."""
        text = part_of(reply, self.part)
        if text is None:
            return Verdict.unparseable(missing(self.part))
        least = self.least_words
        if distinct_words(text, enough=least) < least:
            return Verdict.wrong(f"says too little: fewer than {least} different words")
        return self.judge_text(text)
