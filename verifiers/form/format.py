"""Format: did the reply think in one place and answer in another?"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ..text.thought import without_end_tokens
from ..text.words import has_content
from ..verdict import Status, Verdict
from ..verifier import Verifier

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,39}")
_ANY_TAG = re.compile(r"</?[A-Za-z]{1,40}>")
_MOST_TAGS = 20


class Format(Verifier):
    r"""Full marks for exactly ``<think>...</think> <answer>...</answer>``.

    Each tag occurs once and in this order, each part contains a letter or a digit, and there is
    only white space before, between and after. Empty elements, entities for blanks and comments
    are no content. End tokens that a decoder kept, such as ``<|im_end|>``, and a byte order mark
    are ignored. A tag counts anywhere, also in a quotation or a code fence, since readers of the
    answer cannot distinguish it. ``<Think>``, ``<think >`` and ``<answer id="1">`` are refused
    anywhere; ``&lt;answer&gt;`` is plain text.

    Reference: ignored.

    With ``graded`` the score is the share of these parts that are satisfied: each tag; nothing
    outside; line feeds, if required. The last two count only if all tags occur. The score is 0.0
    unless the thought is closed and not blank, something follows it, no part is empty, and the tags
    occur in order and once each.

    As numbers, and in brackets if the thought is prefilled: the whole grammar 1.0 (1.0); every
    tag, with text outside 0.8 (0.75); one tag missing 0.6 (0.5); two missing, as around a bare
    answer 0.4 (0.25); only ``</think>`` 0.2 (0.25); all else 0.0.

    Args:
        prefilled_think: the prompt has already opened ``<think>``, so the reply must not.
        graded: pay for the parts that are kept, as above.
        tags: other names, such as ``("reasoning", "solution")``, or more than two. One name,
            such as ``("think",)``, asks for a thought and then a bare answer without tags.
        line_feeds: what is in tags begins and ends with a line feed, as R1's template has it.

    Raises:
        ValueError: the tags are no different names.

    Example:
        >>> Format().verify("<think>6 by 7</think><answer>42</answer>", None).score
        1.0
        >>> Format(tags=("think",)).verify("<think>6 by 7</think> It is 42.", None).score
        1.0
        >>> Format(graded=True).verify("<think>6 by 7</think> It is 42.", None).score
        0.4
    """

    judges_form = True
    is_cheap = True

    def __init__(
        self,
        *,
        prefilled_think: bool = False,
        graded: bool = False,
        tags: Sequence[str] = ("think", "answer"),
        line_feeds: bool = False,
    ) -> None:
        self.prefilled_think = prefilled_think
        self.graded = graded
        self.tags = _checked(tags)
        self.line_feeds = line_feeds
        names = "|".join(self.tags)
        # What only looks like a tag is found as well, so that it can be refused.
        self._tag = re.compile(rf"<\s{{0,9}}/?\s{{0,9}}(?:{names})(?:[\s/][^<>]{{0,99}})?>", re.I)
        order = [f"<{slash}{name}>" for name in self.tags for slash in ("", "/")]
        self._order = tuple(order[1:] if prefilled_think else order)

    def oracle_reply(self, reference: Any) -> str | None:
        """Return a short thought and an answer."""
        feed = "\n" if self.line_feeds else ""
        parts = [f"<{name}>{feed}6 by 7 is 42{feed}</{name}>" for name in self.tags]
        if self.prefilled_think:
            parts[0] = parts[0].removeprefix(f"<{self.tags[0]}>")
        return "\n".join([*parts, "42"] if len(parts) == 1 else parts)

    def judge(self, reply: str, reference: Any) -> Verdict:
        """Judge one reply in one pass."""
        found = self._scan(without_end_tokens(reply))
        if isinstance(found, str):
            return _wrong(found, self._parts(None))
        missing = [tag for tag in self._order if tag not in found.tags]
        empty = self._empty(found)
        outside = "" if missing else self._outside(found)
        feeds = "" if missing or not self.line_feeds else self._without_line_feed(found)
        fault = found.fault or outside or empty or feeds
        if not fault:
            answer = found.pieces[-1 if len(self.tags) == 1 else -2]
            parts = self._parts(found) if self.graded else {}
            return Verdict(Status.CORRECT, 1.0, "well formed", answer.strip(), parts)
        thought_ends = f"</{self.tags[0]}>" in found.tags
        parts = self._parts(found if thought_ends and not empty else None, outside, feeds)
        return _wrong(fault, parts)

    def _scan(self, text: str) -> _Found | str:
        """Return the tags in order, or why nothing can be paid."""
        found = _Found()
        at = end = 0
        for match in self._tag.finditer(text):
            tag = match.group()
            if tag not in self._order:
                return self._no_tag(tag)
            place = self._order.index(tag)
            if place < at:
                return f"{tag} occurs twice" if tag in found.tags else f"{tag} comes too late"
            if place > at:
                found.fault = found.fault or f"{tag} comes before {self._order[at]}"
                if not self.graded:
                    return found.fault
            found.pieces.append(text[end : match.start()])
            found.tags.append(tag)
            at, end = place + 1, match.end()
        found.pieces.append(text[end:])
        if at < len(self._order):
            found.fault = found.fault or f"{self._order[at]} is missing"
        return found

    def _no_tag(self, tag: str) -> str:
        if tag == f"<{self.tags[0]}>":
            return f"{tag} is in the prompt already"
        return f"{tag!r:.60} is written unlike {' '.join(self._order)}"

    def _empty(self, found: _Found) -> str:
        """Return the name of a part without content: of a tag, or the bare answer."""
        for k, tag in enumerate(found.tags):
            piece = found.pieces[k if tag.startswith("</") else k + 1]
            if not has_content(piece):
                name = tag.strip("</>")
                return f"the {'thought' if name == 'think' else name} is empty"
        if found.tags and found.tags[-1] == f"</{self.tags[0]}>":
            bare = _ANY_TAG.sub(" ", found.pieces[-1])
            return "" if has_content(bare) else "the answer is empty"
        return ""

    def _outside(self, found: _Found) -> str:
        """Return the location of text outside the tags; all tags exist."""
        begin = 1 if self.prefilled_think else 0
        outside = found.pieces[begin::2]
        if len(self.tags) == 1:
            outside = outside[:-1]
        for k, piece in enumerate(outside):
            if piece.strip():
                last = begin + 2 * k == len(found.pieces) - 1
                place = "after" if last else "before" if begin + k == 0 else "between"
                return f"there is text {place} the tags"
        return ""

    def _without_line_feed(self, found: _Found) -> str:
        """Return the name of a tag without a line feed around its content; all tags exist."""
        for k, tag in enumerate(found.tags):
            closing = tag.startswith("</")
            if closing and not found.pieces[k].endswith("\n"):
                return f"there is no line feed before {tag}"
            if not closing and not found.pieces[k + 1].startswith(("\n", "\r\n")):
                return f"there is no line feed after {tag}"
        return ""

    def _parts(self, found: _Found | None, outside: str = "", feeds: str = "") -> dict[str, float]:
        """Return the parts by name, none if nothing is paid."""
        if not self.graded:
            return {}
        tags = [] if found is None else found.tags
        whole = len(tags) == len(self._order)
        parts = {tag: float(tag in tags) for tag in self._order}
        parts["nothing outside"] = float(whole and not outside)
        if self.line_feeds:
            parts["line feeds"] = float(whole and not feeds)
        return parts


@dataclass
class _Found:
    """The result of a scan.

    Attributes:
        tags: the tags that stand, in their order.
        pieces: the text before, between and after them: one more.
        fault: what is wrong with them; empty if all stand.
    """

    tags: list[str] = field(default_factory=list)
    pieces: list[str] = field(default_factory=list)
    fault: str = ""


def _checked(tags: Sequence[str]) -> tuple[str, ...]:
    names = tuple(tags) if isinstance(tags, list | tuple) else ()
    good = [name for name in names if isinstance(name, str) and _NAME.fullmatch(name)]
    different = len({name.casefold() for name in good})
    if not 1 <= different == len(names) <= _MOST_TAGS:
        raise ValueError(
            f"tags must be one to {_MOST_TAGS} different names such as ('think', 'answer'), "
            f"without < and >, got {tags!r}"
        )
    return names


def _wrong(reason: str, parts: dict[str, float]) -> Verdict:
    score = round(sum(parts.values()) / len(parts), 9) if parts else 0.0
    return Verdict(Status.UNPARSEABLE, score, reason, parts=parts)
