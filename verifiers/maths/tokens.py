r"""Split a respelled formula into tokens: numbers, letters, commands and signs."""

from __future__ import annotations

import re

from .formula import UnreadError

MAX_TOKENS = 500
HYPERBOLIC = {
    f"{prefix}{name}": name for prefix in ("arc", "ar", "a") for name in ("sinh", "cosh", "tanh")
}
"""The inverse of each, by the names that it goes by."""
FUNCTIONS = (
    *HYPERBOLIC,
    "arcsin", "arccos", "arctan", "arccot", "sinh", "cosh", "tanh", "sin", "cos", "tan", "cot",
    "sec", "csc", "ln", "log", "lg", "exp", "cis",
)  # fmt: skip
GREEK = frozenset((
    "alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa",
    "lambda", "mu", "nu", "xi", "rho", "sigma", "tau", "upsilon", "phi", "chi", "psi", "omega",
    "Gamma", "Delta", "Theta", "Lambda", "Xi", "Sigma", "Phi", "Psi", "Omega", "ell", "hbar",
    "aleph",
))  # fmt: skip
_TOKEN = re.compile(
    r"(?P<number>[1-9]\d{0,2}(?:,\d{3})+(?!\d)(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+)"
    r"|\\(?P<command>[A-Za-z]+)"
    rf"|(?P<function>{'|'.join(FUNCTIONS)})|(?P<letter>[A-Za-z])"
    r"|(?P<sign>[-+*/^_(){}\[\]|!'=°,;])|(?P<space> )",
    re.ASCII,
)
_RUN = re.compile(r"\\[A-Za-z]+|[A-Za-z]{2,}")
_NOT_FACTORS = frozenset((
    "mod", "gcd", "lcm", "max", "min", "lim", "det", "sup", "inf", "arg", "sgn", "div", "nan",
    "choose", "if", "or", "for", "to", "is", "in", "of", "and", "the", "not", "let", "no", "sqrt",
    "frac", "over", "root", "dx", "dy", "dt",
))  # fmt: skip


def tokens_of(text: str) -> list[str]:
    r"""Return the tokens; functions as commands, whether ``\sin`` or ``sin`` is written.

    Raises:
        UnreadError: a character is unknown, words stand among the letters, or two numbers
            stand side by side.
    """
    for run in _RUN.findall(text):
        if run in _NOT_FACTORS:
            raise UnreadError(f"the word {run}")
    found: list[str] = []
    at = 0
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None or len(found) >= MAX_TOKENS:
            raise UnreadError(f"cannot read {text[at : at + 10]!r}")
        at = token.end()
        if token.lastgroup == "function":
            found.append("\\" + token.group())
        elif token.lastgroup != "space":
            found.append(token.group())
        elif _between_numbers(found, text[at : at + 1]):
            raise UnreadError("two numbers side by side")
    return found


def _between_numbers(found: list[str], following: str) -> bool:
    if not found or not found[-1][0].isdigit() or not following.isdigit():
        return False
    return len(found) < 2 or found[-2] not in {"_", "^"}  # \log_2 8
