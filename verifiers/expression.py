r"""Reads a formula such as ``2x\sqrt{3} - \frac{1}{2}\sin^2 x`` as a tree.

A recursive descent over respelled LaTeX, bounded in length, depth and the size of its numbers. It
computes nothing but exact fractions, and refuses what it does not know or what two readers could
read in two ways (``1/2x``, ``f(x)``, ``x^10``): such texts are for the symbolic worker.
"""

from __future__ import annotations

import functools
import math
import re
from dataclasses import dataclass
from fractions import Fraction

MAX_LENGTH, MAX_DEPTH, MAX_TOKENS, MAX_BITS = 600, 40, 400, 4096


@dataclass(frozen=True, slots=True)
class Node:
    """One operation of a formula.

    Attributes:
        kind: ``number``, ``name``, ``constant``, ``sum``, ``product``, ``power`` or ``call``.
        parts: its operands.
        value: of a number.
        name: of a name, a constant (``pi``, ``e``, ``i``) or a function.
    """

    kind: str
    parts: tuple[Node, ...] = ()
    value: Fraction = Fraction(0)
    name: str = ""


class UnreadError(Exception):
    """The text is not a formula that is read here."""


@functools.lru_cache(maxsize=8192)
def read_expression(text: str) -> Node | None:
    """The tree of a respelled, squeezed text, or ``None`` where it is not read here."""
    if len(text) > MAX_LENGTH:
        return None
    try:
        reader = _Reader(_tokens(text))
        tree = reader.sum(0)
        return tree if reader.peek() == "" else None
    except (UnreadError, ZeroDivisionError):
        return None


@functools.lru_cache(maxsize=8192)
def names(tree: Node) -> frozenset[str]:
    """The variables of a formula."""
    if tree.kind == "name":
        return frozenset({tree.name})
    return frozenset().union(*(names(part) for part in tree.parts))


def is_polynomial(tree: Node) -> bool:
    """Whether its variables are only added, multiplied and raised to small whole powers."""
    if tree.kind == "call":
        return not names(tree)
    if tree.kind == "power":
        base, exponent = tree.parts
        if names(exponent):
            return False
        if names(base) and not (exponent.kind == "number" and _is_natural(exponent.value)):
            return False
    return all(is_polynomial(part) for part in tree.parts)


def _is_natural(value: Fraction) -> bool:
    return value.denominator == 1 and value >= 0


# -- making trees ------------------------------------------------------------------------------


def number(value: Fraction | int) -> Node:
    """A number, exactly.

    Raises:
        UnreadError: it has too many digits.
    """
    value = Fraction(value)
    if max(value.numerator.bit_length(), value.denominator.bit_length()) > MAX_BITS:
        raise UnreadError("a number too long")
    return Node("number", value=value)


def difference(left: Node, right: Node) -> Node:
    """``left - right``."""
    return _sum([left, _negative(right)])


def _sum(terms: list[Node]) -> Node:
    if len(terms) == 1:
        return terms[0]
    if all(term.kind == "number" for term in terms):
        return number(sum(term.value for term in terms))
    return Node("sum", tuple(terms))


def _product(factors: list[Node]) -> Node:
    if len(factors) == 1:
        return factors[0]
    if all(factor.kind == "number" for factor in factors):
        return number(math.prod((factor.value for factor in factors), start=Fraction(1)))
    return Node("product", tuple(factors))


def _negative(tree: Node) -> Node:
    return number(-tree.value) if tree.kind == "number" else _product([number(-1), tree])


def _inverse(tree: Node) -> Node:
    return number(1 / tree.value) if tree.kind == "number" else _power(tree, number(-1))


def _power(base: Node, exponent: Node) -> Node:
    if base.kind == exponent.kind == "number" and exponent.value.denominator == 1:
        size = max(base.value.numerator.bit_length(), base.value.denominator.bit_length())
        if abs(exponent.value.numerator) * size <= MAX_BITS:
            return number(base.value**exponent.value.numerator)
    return Node("power", (base, exponent))


# -- reading -----------------------------------------------------------------------------------

_GREEK = frozenset((
    "alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa",
    "lambda", "mu", "nu", "xi", "rho", "sigma", "tau", "upsilon", "phi", "chi", "psi", "omega",
    "Gamma", "Delta", "Theta", "Lambda", "Xi", "Sigma", "Phi", "Psi", "Omega", "ell", "hbar",
))  # fmt: skip
_FUNCTIONS = (
    "arcsin", "arccos", "arctan", "sinh", "cosh", "tanh", "sin", "cos", "tan", "cot", "sec", "csc",
    "ln", "log", "exp",
)  # fmt: skip
_INVERSE = {"sin": "arcsin", "cos": "arccos", "tan": "arctan"}
_TOKEN = re.compile(
    r"(?P<number>\d{1,3}(?:,\d{3})+(?!\d)(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+)"
    r"|\\(?P<command>[A-Za-z]+)|(?P<escaped>\\[{}|])"
    rf"|(?P<function>(?:{'|'.join(_FUNCTIONS)})(?![a-z]))|(?P<letter>[A-Za-z])"
    r"|(?P<sign>[-+*/^_(){}\[\]|!'])|(?P<space> )",
    re.ASCII,
)
_CALLED = frozenset("fghFGHPQ")  # f(x) may be a function of x, or f times x
_LARGEST_FACTORIAL = 300


def _tokens(text: str) -> list[str]:
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
        elif found[-1:] and found[-1][0].isdigit() and text[at : at + 1].isdigit():
            raise UnreadError("two numbers side by side")
    return found


class _Reader:
    """Reads tokens from the left."""

    def __init__(self, tokens: list[str]) -> None:
        self.tokens = tokens
        self.at = 0

    def peek(self, ahead: int = 0) -> str:
        at = self.at + ahead
        return self.tokens[at] if at < len(self.tokens) else ""

    def take(self, wanted: str = "") -> str:
        token = self.peek()
        if not token or (wanted and token != wanted):
            raise UnreadError(f"expected {wanted or 'more'}, got {token or 'the end'}")
        self.at += 1
        return token

    def sum(self, depth: int) -> Node:
        if depth > MAX_DEPTH:
            raise UnreadError("nested too deep")
        terms = [self.product(depth, self.sign())]
        while self.peek() in {"+", "-"}:
            terms.append(self.product(depth, self.sign()))
        return _sum(terms)

    def sign(self) -> int:
        sign = 1
        while self.peek() in {"+", "-"}:
            sign = -sign if self.take() == "-" else sign
        return sign

    def product(self, depth: int, sign: int = 1) -> Node:
        factors = [self.power(depth)]
        divided = False
        while True:
            ahead = self.peek()
            if ahead in {"*", "\\cdot", "\\times"}:
                self.take()
                factors.append(self.signed(depth))
            elif ahead in {"/", "\\div"}:
                self.take()
                factors.append(_inverse(self.signed(depth)))
                divided = True
                continue
            elif self.begins_factor():
                if divided:
                    raise UnreadError("1/2x has two readings")
                factors.append(self.beside(factors[-1], depth))
            else:
                break
            divided = False
        product = _product(factors)
        return product if sign > 0 else _negative(product)

    def beside(self, before: Node, depth: int) -> Node:
        """A factor that stands beside another without a sign between them."""
        previous, token = self.tokens[self.at - 1], self.peek()
        if token[0].isdigit() or token[0] == ".":
            raise UnreadError("a number beside something, such as x2")
        if token == "\\frac" and previous[0].isdigit() and before.value.denominator == 1:
            after = self.power(depth)
            if after.kind == "number" and self.tokens[self.at - 1] == "}":
                if not 0 < after.value < 1:
                    raise UnreadError("2\\frac{5}{3} has two readings")
                # a mixed number: before * (1 + after / before)
                return number(1 + after.value / before.value)
            return after
        return self.power(depth)

    def signed(self, depth: int) -> Node:
        return _negative(self.power(depth)) if self.sign() < 0 else self.power(depth)

    def begins_factor(self) -> bool:
        token = self.peek()
        if not token:
            return False
        if token[0] == "\\":
            return token[1:] in _GREEK or token[1:] in _FUNCTIONS or token in _PRIMARY_COMMANDS
        return token[0].isalnum() or token[0] in "(.{"

    def power(self, depth: int) -> Node:
        base = self.postfix(depth)
        if self.peek() != "^":
            return base
        self.take()
        exponent = self.exponent(depth)
        if self.peek() in {"^", "!", "_", "'"}:
            raise UnreadError("a^b^c has two readings")
        return _power(base, exponent)

    def exponent(self, depth: int) -> Node:
        token = self.peek()
        if token == "{":
            return self.group("{", "}", depth)
        if token[:1].isdigit():
            if len(token) > 1:
                raise UnreadError("x^10 has two readings")
            return number(int(self.take()))
        if token == "(":
            raise UnreadError("x^(2) is read by nobody alike")
        return self.atom(depth)

    def postfix(self, depth: int) -> Node:
        base = self.atom(depth)
        if self.peek() != "!":
            return base
        self.take()
        if self.peek() == "!" or base.kind != "number" or not _is_natural(base.value):
            raise UnreadError("a factorial of no whole number")
        if base.value > _LARGEST_FACTORIAL:
            raise UnreadError("a factorial too large")
        return number(math.factorial(base.value.numerator))

    def group(self, left: str, right: str, depth: int) -> Node:
        self.take(left)
        inside = self.sum(depth + 1)
        self.take(right)
        return inside

    def atom(self, depth: int) -> Node:
        token = self.take()
        if token[0].isdigit() or token[0] == ".":
            if self.peek() == "_":
                raise UnreadError("a number in some base")
            whole, _, places = token.replace(",", "").partition(".")
            return number(Fraction(int(whole + places), 10 ** len(places)))
        if token in _CLOSING:
            self.at -= 1
            return self.group(token, _CLOSING[token], depth)
        if token == "|":
            inside = self.sum(depth + 1)
            self.take("|")
            return Node("call", (inside,), name="abs")
        if token.isalpha():
            return self.name(token)
        return self.command(token.removeprefix("\\"), depth)

    def name(self, letter: str) -> Node:
        found = letter + self.subscript()
        while self.peek() == "'":
            found += self.take()
        if found in {"e", "i"}:
            return Node("constant", name=found)
        if self.peek() == "(" and letter in _CALLED:
            raise UnreadError("f(x) may be a function")
        return Node("name", name=found)

    def subscript(self) -> str:
        if self.peek() != "_":
            return ""
        self.take()
        found = self.take()
        if found == "{":
            inside = []
            while self.peek() not in {"}", ""}:
                inside.append(self.take())
            self.take("}")
            found = "".join(inside)
        return f"_{found}"

    def command(self, name: str, depth: int) -> Node:
        if name == "frac":
            top = self.group("{", "}", depth)
            return _product([top, _inverse(self.group("{", "}", depth))])
        if name == "sqrt":
            return self.root(depth)
        if name == "pi":
            return Node("constant", name="pi")
        if name == "binom":
            return self.binomial(depth)
        if name in _GREEK:
            return self.name_greek(name)
        if name in {"lfloor", "lceil"}:
            inside = self.sum(depth + 1)
            self.take(f"\\r{name[1:]}")
            return Node("call", (inside,), name=name[1:])
        if name in _FUNCTIONS:
            return self.call(name, depth)
        raise UnreadError(f"\\{name}")

    def name_greek(self, name: str) -> Node:
        return Node("name", name=f"\\{name}{self.subscript()}")

    def root(self, depth: int) -> Node:
        degree = number(2)
        if self.peek() == "[":
            degree = self.group("[", "]", depth)
        if degree.kind != "number" or degree.value.denominator != 1 or degree.value <= 0:
            raise UnreadError("a root of no whole degree")
        inside = self.group("{", "}", depth)
        if degree.value != 2 and not (inside.kind == "number" and inside.value >= 0):
            raise UnreadError("which of several roots is meant")
        return _power(inside, _inverse(degree))

    def binomial(self, depth: int) -> Node:
        n, k = self.group("{", "}", depth), self.group("{", "}", depth)
        if not (n.kind == k.kind == "number" and _is_natural(n.value) and _is_natural(k.value)):
            raise UnreadError("a binomial of no whole numbers")
        if n.value > MAX_BITS:
            raise UnreadError("a binomial too large")
        return number(math.comb(n.value.numerator, k.value.numerator))

    def call(self, name: str, depth: int) -> Node:
        base, exponent = None, None
        while self.peek() in {"_", "^"}:
            if self.take() == "_" and base is None and name == "log":
                base = self.exponent(depth)
            elif self.tokens[self.at - 1] == "^" and exponent is None:
                exponent = self.exponent(depth)
            else:
                raise UnreadError(f"\\{name} with odd indices")
        if exponent is not None and exponent.kind == "number" and exponent.value == -1:
            if name not in _INVERSE:
                raise UnreadError(f"\\{name}^{{-1}} has two readings")
            name, exponent = _INVERSE[name], None
        made = self.called(name, base, self.argument(depth))
        return made if exponent is None else _power(made, exponent)

    def called(self, name: str, base: Node | None, argument: Node) -> Node:
        if name == "exp":
            return _power(Node("constant", name="e"), argument)
        if name != "log":
            return Node("call", (argument,), name=name)
        natural = Node("call", (argument,), name="ln")
        if base is None:
            # whatever the base is, it is the same one everywhere: an unknown factor
            return _product([Node("name", name="\\log"), natural])
        return _product([natural, _inverse(Node("call", (base,), name="ln"))])

    def argument(self, depth: int) -> Node:
        """What a function is applied to: brackets, or the factors up to the next sign."""
        if depth > MAX_DEPTH:
            raise UnreadError("nested too deep")
        if self.peek() in {"(", "{", "|", "["}:
            inside = self.atom(depth + 1)
            if self.peek() in {"^", "!"}:
                raise UnreadError("\\sin(x)^2 has two readings")
            return inside
        sign = self.sign()
        factors = [self.power(depth + 1)]
        while self.begins_factor() and self.peek()[1:] not in _FUNCTIONS:
            if self.peek() == "(":
                raise UnreadError("\\sin x(x+1) has two readings")
            factors.append(self.beside(factors[-1], depth + 1))
        if self.peek() in {"/", "\\div"}:
            raise UnreadError("\\sin x/2 has two readings")
        product = _product(factors)
        return product if sign > 0 else _negative(product)


_CLOSING = {"(": ")", "{": "}", "[": "]"}
_PRIMARY_COMMANDS = frozenset(
    ("\\frac", "\\sqrt", "\\pi", "\\binom", "\\lfloor", "\\lceil")
)  # fmt: skip
