r"""Remove typesetting: ``\text{}``, bold print, dollar signs, colours, sizes, tables, matrices."""

from __future__ import annotations

import re

TEXT_COMMANDS = (
    "text", "textrm", "textbf", "textit", "textsf", "texttt", "textnormal", "textsc", "textup",
    "textmd", "textsl", "mbox", "hbox", "mathrm", "mathbf", "mathit", "mathsf", "mathtt",
    "mathnormal", "emph", "operatorname", "boldsymbol", "bm", "underline",
)  # fmt: skip
"""LaTeX commands that only change how their argument is printed."""

TEXT_COMMAND = rf"\\(?:{'|'.join(TEXT_COMMANDS)})(?![A-Za-z])\*?\s{{0,3}}"
r"""Pattern of such a command before its brace."""

TEXT = re.compile(TEXT_COMMAND + r"\{([^{}]*)\}")
"""Such a command with its argument."""

PLAIN_SIGNS = str.maketrans(
    "，、；：（）［］｛｝＝＋－＞。０１２３４５６７８９\xa0✅✓✔", ",,;:()[]{}=+->.0123456789    "
)
"""Fullwidth signs and digits, and what they stand for; ticks say nothing."""

DELIMITERS = (("$$", "$$"), ("$", "$"), ("\\(", "\\)"), ("\\[", "\\]"))
"""What opens and closes a formula."""

_COLOURED = re.compile(r"\\(?:text)?color(?:box)?\s{0,3}\{[A-Za-z0-9!]{1,30}\}\s{0,3}")
_SIZE = re.compile(
    r"\\(?:tiny|scriptsize|footnotesize|small|normalsize|[lL]arge|LARGE|[hH]uge|bf|bfseries|it|rm|"
    r"displaystyle|textstyle)(?![A-Za-z])\s{0,3}"
)
_FORMULA_SIGN = re.compile(r"(?<!\\)\$|\\[()\[\]]")
_SPACING = re.compile(r"\\[,;:! ]|\\q?quad(?![A-Za-z])|(?<!\\)~|\xa0")
_BOLD = re.compile(r"(?<![\w)])(?:\*\*|__)|(?:\*\*|__)(?![\w(])")
TAGS = re.compile(r"</?(?:b|strong|em|i|u)>")
"""HTML's bold print and the like."""
_NESTED = 4


def unwrap_text(text: str, around: str = "") -> str:
    r"""Replace each command such as ``\text{...}`` with its content.

    Args:
        text: LaTeX.
        around: what is written before and after each content.

    Example:
        >>> unwrap_text(r"\textbf{\mbox{Paris}}, \operatorname{B}")
        'Paris, B'
    """
    for _ in range(_NESTED):
        if "\\" not in text:
            break
        inner = TEXT.sub(rf"{around}\1{around}", text)
        if inner == text:
            break
        text = inner
    return text


def blank_text(text: str) -> str:
    r"""Replace each command such as ``\text{...}``, and its content, with a space."""
    return TEXT.sub(" ", text) if "\\" in text else text


def strip_bold(text: str) -> str:
    """Remove Markdown's ``**`` and ``__``, but not the power of ``2**5`` or ``a__b``; and tags."""
    text = TAGS.sub("", text) if "<" in text else text
    return _BOLD.sub("", text) if "**" in text or "__" in text else text


def strip_markup(text: str) -> str:
    r"""Return the words of an answer of one line without its typesetting.

    Example:
        >>> strip_markup(r"$\textcolor{red}{\textrm{(B)}\ \mbox{Paris}}$")
        '(B) Paris'
    """
    if "\\" in text or "$" in text:
        text = _SPACING.sub(" ", _SIZE.sub("", _COLOURED.sub("", text)))
        text = _FORMULA_SIGN.sub("", unwrap_text(text)).strip()
        if text[:1] == "{" and text[-1:] == "}":
            text = text[1:-1]
    text = strip_bold(text.replace("~", " ")).strip()
    for mark in ("*", "_", "`"):
        if len(text) > 2 and text[0] == text[-1] == mark:
            text = text.strip(mark)
    return text


def strip_math_delimiters(text: str) -> str:
    r"""Remove the ``$...$``, ``\(...\)`` or ``\[...\]`` around all of a text."""
    if text[:1] not in {"$", "\\"}:
        return text
    for left, right in DELIMITERS:
        inside = text[len(left) : -len(right)]
        if (
            len(text) > len(left) + len(right)
            and text.startswith(left)
            and text.endswith(right)
            and left not in inside.replace("\\$", "")  # \$ is money
            and not (right[0] == "$" and (len(inside) - len(inside.rstrip("\\"))) % 2)
        ):
            return inside.strip()
    return text


RULED_LINE = re.compile(r"(?:\A|\n)[ \t]{0,3}(?:-{3,160}|_{3,160})[ \t]{0,3}\n\s{0,9}\Z")
"""Markdown's line across the page at the end of a text: no minus before what follows."""

_BREAK = re.compile(r"\\\\(?:\[\w{1,8}\])?|\\(?:newline|cr)\b|\r\n?|[\x85\u2028\u2029]")
_LAYOUT = re.compile(
    r"\\(?:begin|end)\{[A-Za-z*]{1,12}\}(?:\{[clr|@ ]{0,80}\})?"
    rf"|{TEXT_COMMAND}"
    r"|\\(?:hline|q?quad|left|right|displaystyle)\b|\\[,;:! ]|\*\*|`|&|^[ \t]*>[ \t]",
    re.MULTILINE,
)
_NAMED = re.compile(r"\s{0,9}[A-Za-z_]{1,20}\s{0,3}=(?=\s{0,3}\[)")
_DRAWN = dict.fromkeys(range(0x2500, 0x2580), " ") | PLAIN_SIGNS  # box drawing


def strip_layout(text: str) -> str:
    r"""Return the words and signs of a table or a grid, one row in each line.

    LaTeX's arrays and ``\text``, Markdown's bold and code, drawn boxes and the name before a list
    (``grid = [...``) are layout.

    Example:
        >>> strip_layout(r"\begin{bmatrix}1&2\\3&4\end{bmatrix}").split("\n")
        [' 1 2', '3 4 ']
    """
    named = _NAMED.match(text)
    bare = text[named.end() :] if named else text
    return _LAYOUT.sub(" ", _BREAK.sub("\n", bare)).translate(_DRAWN)
