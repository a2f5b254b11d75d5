r"""Chemical formulas: ``\mathrm{H_2O}``, ``\ce{H2O}``, ``\text{SO}_4^{2-}``."""

from __future__ import annotations

import re

_ELEMENT = (
    "A[cglrstu]|B[aehir]?|C[adeflmorsu]?|D[bsy]|E[rsu]|F[emr]?|G[ade]|H[efgos]?|I[nr]?|Kr?|L[airu]|"
    "M[dgno]|N[abdeiop]?|Os?|P[abdmortu]?|R[abefghnu]|S[bcegimnr]?|T[abcehilm]|U|V|W|Xe|Yb?|Z[nr]"
)
_FORMULA = re.compile(
    rf"(?=.*[\d+-])(?:(?:{_ELEMENT})(?:[1-9]\d*)?|\((?:(?:{_ELEMENT})(?:[1-9]\d*)?)+\)(?:[1-9]\d*)?)+"
    r"(?:\^?[1-9]?[+-])?"
)
_MARKUP = re.compile(r"\\(?:ce|mathrm|text|rm)(?![A-Za-z])|\\[,; ]|(?<!\d) |[{}_$]|[.]\Z")
_LOW = str.maketrans("₀₁₂₃₄₅₆₇₈₉⁺⁻", "0123456789+-")


def compound(text: str) -> str:
    """Return a chemical formula without its markup, as ``H2O``; empty if it is none."""
    bare = _MARKUP.sub("", text.strip()).translate(_LOW) if len(text) < 200 else ""
    return bare if _FORMULA.fullmatch(bare) else ""
