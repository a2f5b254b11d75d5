r"""Products of matrices: ``A^{-1}B`` is not ``BA^{-1}``, and ``(AB)^T`` is ``B^TA^T``."""

from __future__ import annotations

import re

from .latex import split_terms

_TOKEN = re.compile(
    r"\^(?:\{(?P<raised>-?(?:1|T)|\\top|\\intercal)\}|(?P<bare>T|\\top|\\intercal))"
    r"|(?P<letter>(?:[A-Z]|\\(?:Lambda|Sigma|Phi|Omega)(?![A-Za-z]))(?![_'])"
    r"|[a-z](?=\)?\Z|[(^]))"  # a vector at the end, before a bracket or a transpose
    r"|(?P<sign>[()]|\\(?:cdot|times)(?![A-Za-z])|\*| )"
)
_FACTOR = re.compile(
    r"([-+]?(?:\\frac\{[a-z\d]{1,9}\}\{[a-z\d]{1,9}\}|\\(?:alpha|beta|lambda|mu)(?![A-Za-z])|[a-z](?!\^)|[\d./])*)"
)
ORDERED = frozenset("ABCDX")
"""Letters that name no quantity of physics: of two of them, one inverted, the order counts."""
_QUOTIENT = re.compile(r"(?:/ ?\(?|\\frac\{[^{}]*\}\{)[A-Z]")
_MOST = 200

_Letter = tuple[str, bool, bool]  # with whether it is inverted, and transposed
_Terms = dict[tuple[_Letter, ...], str]


def same_product(gold: str, answer: str) -> bool | None:
    """Return whether two respelled products of matrices, or sums of them, have the same factors.

    ``None`` if that does not decide: one is none, or the order counts by no sign in the reference.
    A quotient does not say on which side the inverse stands, so it is no such product.
    A transpose, a letter beside its inverse, and an inverse among A, B, C, D, X are such signs.
    """
    if "^" not in gold:
        return None
    left = _terms(gold.rpartition("=")[2])
    if left is None or not any(map(_is_ordered, left)):
        return None
    right = _terms(answer.rpartition("=")[2])
    if right is None:
        return False if _QUOTIENT.search(answer) else None
    if left.keys() != right.keys():
        return False
    named = {text.rpartition("=")[0] for text in (gold, answer)} - {""}
    return True if len(left) == 1 and left == right and len(named) < 2 else None


def _is_ordered(product: tuple[_Letter, ...]) -> bool:
    inverted = {letter for letter, turned, _ in product if turned}
    plain = {letter for letter, turned, _ in product if not turned}
    named = inverted and len(ORDERED & (inverted | plain)) > 1
    named = named or (inverted & ORDERED and any(map(str.islower, plain)))  # A^{-1}b
    signs = named or inverted & plain or any(transposed for *_, transposed in product)
    return len(product) > 1 and bool(signs)


def _terms(text: str) -> _Terms | None:
    """Return the factor of each product of a sum; ``None`` if it is no sum of products."""
    found: _Terms = {}
    for term in split_terms(text):
        factor = _FACTOR.match(term)
        product = _product(term[factor.end() :] if factor else term)
        if product is None:
            return None
        found[product] = found.get(product, "") + (factor[1] if factor else "")
    return found


def _product(text: str) -> tuple[_Letter, ...] | None:
    """Return the letters in order, none beside its own inverse; ``None`` if it is no product."""
    groups: list[list[list[_Letter]]] = [[]]  # of each open bracket
    at = 0
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None or at > _MOST:
            return None
        at = token.end()
        raised, sign = token["raised"] or token["bare"], token["sign"]
        if token["letter"]:
            groups[-1].append([(token["letter"], False, False)])
        elif raised and not groups[-1]:
            return None
        elif raised:
            inverts, turns = raised[0] == "-", raised != "-1"
            last = [(x, inverted ^ inverts, t ^ turns) for x, inverted, t in groups[-1][-1]]
            groups[-1][-1] = last[:: -1 if inverts is not turns else 1]
        elif sign == "(":
            groups.append([])
        elif sign == ")" and len(groups) < 2:
            return None
        elif sign == ")":
            inside = groups.pop()
            groups[-1].append([letter for group in inside for letter in group])
    kept: list[_Letter] = []
    for x, inverted, transposed in (letter for group in groups[0] for letter in group):
        if kept and kept[-1] == (x, not inverted, transposed):
            kept.pop()
        else:
            kept.append((x, inverted, transposed))
    return tuple(kept) if len(groups) == 1 else None
