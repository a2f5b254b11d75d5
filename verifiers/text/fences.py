"""Read fenced blocks: backticks or tildes, three or more, with or without an info string."""

from __future__ import annotations

import re
from collections.abc import Callable, Container
from dataclasses import dataclass, field

from ...sandbox import LANGUAGES, ProgrammingLanguage
from .thought import UNCLOSED, after_thinking

_PYTHON = ("python", *LANGUAGES["python"].fences)
_FENCE = re.compile(r"([ \t]*)(`{3,}(?=[^`]*$)|~{3,})(.*)")
_LANGUAGE = re.compile(r"[{.\s]*([\w+#-]*)")
_TOKEN = re.compile(  # what may hold quotes that open nothing comes first
    r"\\.|#.*|\"{3}|'{3}" r'|"(?:\\.|[^"\\\n])*"' r"|'(?:\\.|[^'\\\n])*'"
)
_AROUND = re.compile(r"(`{3,}|~{3,})[ \t]*([\w+#.-]*)[ \t]*(?=[\s{\[<])")
_END_OF = {quote: re.compile(rf"\\.|{quote}") for quote in ('"""', "'''")}


@dataclass
class Block:
    """A fenced block while it is read.

    Attributes:
        mark: the characters that opened it; as many or more of them close it.
        indent: characters before the opening fence, which are taken off every line.
        language: the fence's first word, in lower case; empty if there is none.
        quote: what opened the string that the next line is still part of. A fence in a
            docstring closes nothing.
    """

    mark: str
    indent: int
    language: str
    lines: list[str] = field(default_factory=list)
    quote: str = ""

    @property
    def text(self) -> str:
        """The content, verbatim."""
        return "".join(self.lines)

    def is_closed_by(self, line: str) -> bool:
        """Return whether a line is the fence that ends the block."""
        end = line.strip()
        return not self.quote and end.startswith(self.mark) and not end.strip(self.mark[0])

    def add(self, line: str) -> None:
        """Take one more line into the block."""
        spaces = len(line) - len(line.lstrip(" \t"))
        self.lines.append(line[min(spaces, self.indent) :])
        if self.language in _PYTHON:
            self._follow_quotes(line)

    def _follow_quotes(self, line: str) -> None:
        position = 0
        while token := (_END_OF[self.quote] if self.quote else _TOKEN).search(line, position):
            position = token.end()
            if token[0] in _END_OF:
                self.quote = "" if self.quote else token[0]


_DEFINED = re.compile(r"^(?:async +def|def|class) +(\w+)", re.MULTILINE)
_BOUND = re.compile(  # f = lambda x: ..., or a method f
    r"^\w+(?=\s*(?::[^=\n]*)?=(?!=))|^[ \t]+(?:async +def|def) +(\w+)", re.MULTILINE
)
_OWN = re.compile(r"\b(?:def|class) +(\w+)")
_WORD = re.compile(r"\w+")


def find_program(
    reply: str, language: ProgrammingLanguage = LANGUAGES["python"], wanted: str = ""
) -> tuple[str | None, str]:
    """Return the program in a reply, or ``None`` and why there is none.

    It is the last block, or if ``wanted`` has names, such as that of a function under test, the
    last that defines one of them, as long as every block after it only uses that name: an example.
    Blocks that name no language often show output, so they count only if none names this one.
    An ``<answer>`` that ends the reply holds the program if it has a block, or nothing has. A
    fence that closes behind the last line of the reply's code does close. What
    indents a fence in a list is removed from its lines; otherwise a program is kept as it stands
    except for blank lines around it: the indentation of its first line may say that it continues
    something.
    """
    text = after_thinking(reply)
    if text is None:
        return None, UNCLOSED
    text = _within_answer(text)
    blocks, unclosed = fenced_blocks(text)
    if unclosed is not None and unclosed.text.rstrip().endswith(unclosed.mark):  # x = 1```
        unclosed.lines = [unclosed.text.rstrip().rstrip(unclosed.mark[0])]
        blocks, unclosed = [*blocks, unclosed], None
    names = (language.name, *language.fences)
    tagged = [block for block in blocks if _is_of(block, names)]
    plain = [block for block in blocks if not block.language]
    if unclosed is not None and _was_cut(unclosed, names, bool(tagged)):
        return None, "the last code fence is never closed"
    found = tagged or plain
    if not found and (blocks or unclosed is not None):
        labels = ", ".join(sorted({block.language for block in blocks})) or "another language"
        return None, f"there is no fenced block of {language.name.capitalize()}, only of {labels}"
    if wanted and len(found) > 1:
        own = _OWN.findall(wanted)  # test_f of the tests: a reply's test of that name is an example
        found = _without_examples(found, set(_WORD.findall(wanted)).difference(own))
    code = _without_blank_ends(found[-1].text if found else text)
    return (code, "") if code.strip() else (None, "there is no program")


def _within_answer(text: str) -> str:
    """Return what an ``<answer>`` at the end holds, unless only the text before has a fence."""
    start, bare = text.rfind("<answer>"), text.rstrip()
    if start < 0 or not bare.endswith("</answer>"):
        return text
    inside = bare[start:].removeprefix("<answer>").removesuffix("</answer>")
    inside = inside.lstrip(" \t").removeprefix("\n")
    return inside if has_fence(inside) or not has_fence(text) else text


def _without_examples(blocks: list[Block], wanted: set[str]) -> list[Block]:
    """Return the blocks up to the last that defines a wanted name, if all others only use it."""
    for last in range(len(blocks), 0, -1):
        if defined := wanted.intersection(_DEFINED.findall(blocks[last - 1].text)):
            after = [b.text for b in blocks[last:]]
            used = all(not defined.isdisjoint(_WORD.findall(text)) for text in after)
            bound = (m[1] or m[0] for text in after for m in _BOUND.finditer(text))
            return blocks[:last] if used and defined.isdisjoint(bound) else blocks
    return blocks


def _is_of(block: Block, names: tuple[str, ...]) -> bool:
    """Return whether a block is of a language; ``c++17`` is C++, but ``python2`` not Python."""
    named = block.language
    return named in names or (
        named.rstrip("0123456789-") in names and not named.startswith(("python2", "py2"))
    )


def _was_cut(unclosed: Block, names: tuple[str, ...], has_program: bool) -> bool:
    """Return whether a program was cut off. An extra fence after the last block does not count."""
    if _is_of(unclosed, names):
        return True
    return not (unclosed.language or has_program) and any(map(str.strip, unclosed.lines))


def has_fence(text: str) -> bool:
    """Return whether a text holds what may be a fence."""
    return "```" in text or "~~~" in text


def fenced_blocks(text: str) -> tuple[list[Block], Block | None]:
    """Return the fenced blocks of a text, and the one that it leaves open."""
    closed: list[Block] = []
    if not has_fence(text):
        return closed, None
    block: Block | None = None
    for line in text.splitlines(keepends=True):
        if block is not None and block.is_closed_by(line):
            closed.append(block)
            block = None
        elif block is not None:
            block.add(line)
        elif fence := _FENCE.match(line.rstrip()):
            word = _LANGUAGE.match(fence[3])
            block = Block(fence[2], len(fence[1]), word[1].lower() if word else "")
    return closed, block


def map_fenced(text: str, change: Callable[[str], str]) -> str:
    """Return a text in which each line of a fenced block, and its fences, are changed."""
    if not has_fence(text):
        return text
    lines: list[str] = []
    block: Block | None = None
    for line in text.splitlines(keepends=True):
        fence = _FENCE.match(line.rstrip()) if block is None else None
        lines.append(line if block is None and fence is None else change(line))
        if fence:
            block = Block(fence[2], len(fence[1]), "")
        elif block is not None and block.is_closed_by(line):
            block = None
    return "".join(lines)


def _without_blank_ends(text: str) -> str:
    lines = text.splitlines(keepends=True)
    first = next((at for at, line in enumerate(lines) if line.strip()), len(lines))
    return "".join(lines[first:]).rstrip() + "\n"


def unfenced(text: str, languages: Container[str] | None = None) -> str:
    r"""Return the content of a fence around the whole of a text, or the text if there is none.

    Args:
        text: a reply or an answer.
        languages: info strings that count, in lower case; ``None`` for all.

    Example:
        >>> unfenced("````json\n{}\n````"), unfenced("a `b`")
        ('{}', 'a `b`')
    """
    bare = text.strip()
    fence = _AROUND.match(bare)
    if fence is None or not (languages is None or fence[2].lower() in languages):
        return text
    content = bare[fence.end() :]
    if not content.endswith(fence[1]):
        return text
    return content.rstrip(fence[1][0]).strip()
