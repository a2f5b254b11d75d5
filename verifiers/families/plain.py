r"""Text without its layout: what a table, a matrix or bold print says when its marks are gone."""

from __future__ import annotations

import re

_BREAK = re.compile(r"\\\\(?:\[\w{1,8}\])?|\\(?:newline|cr)\b|\r\n?|[\x85\u2028\u2029]")
_MARK = re.compile(
    r"\\(?:begin|end)\{[A-Za-z*]{1,12}\}(?:\{[clr|@ ]{0,80}\})?"
    r"|\\(?:text|textbf|textit|textrm|mathrm|mathbf|mathtt|texttt|mbox)\b\s{0,2}"
    r"|\\(?:hline|q?quad|left|right|displaystyle)\b|\\[,;:! ]|\*\*|`|&"
)
_NAMED = re.compile(r"\s{0,9}[A-Za-z_]{1,20}\s{0,3}=(?=\s{0,3}\[)")
_DRAWN = dict.fromkeys(range(0x2500, 0x2580), " ") | {0xA0: " "}  # box drawing


def plain(text: str) -> str:
    r"""The words and signs of an answer, with line ends where its rows end.

    LaTeX's arrays and ``\text``, Markdown's bold and code, drawn boxes and the name before a list
    (``grid = [...``) are layout. The text is read a fixed number of times, whatever it holds.

    Example:
        >>> plain(r"\begin{bmatrix}1&2\\3&4\end{bmatrix}").split("\n")
        [' 1 2', '3 4 ']
    """
    named = _NAMED.match(text)
    bare = text[named.end() :] if named else text
    return _MARK.sub(" ", _BREAK.sub("\n", bare)).translate(_DRAWN)
