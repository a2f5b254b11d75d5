r"""Read a formula such as ``2x\sqrt{3} - \frac{1}{2}\sin^2 x`` as a tree.

A recursive descent over respelled LaTeX, bounded in length, depth and the size of its numbers.
It refuses what it does not know and what two readers could read in two ways (``1/2x``,
``f(x)``, ``x^10``): such texts are for the symbolic worker.
"""

from __future__ import annotations

import functools
import hashlib
import math
import re
from fractions import Fraction

from .formula import (
    UNDEFINED,
    Node,
    UnreadError,
    binomial,
    call,
    constant,
    double_factorial,
    factorial,
    inverse,
    is_natural,
    names,
    negative,
    number,
    power,
    product,
    root,
    size,
    substituted,
    total,
)
from .tokens import FUNCTIONS, GREEK, HYPERBOLIC, tokens_of

MAX_LENGTH, MAX_DEPTH = 1000, 40
_MAX_TERMS, _MAX_EXPANDED = 1000, 20_000
_CALLED = frozenset("fghFGHPQ")  # f(x) may be a function of x, or f times x
_INVERSE = {
    f"\\{name}": f"ar{'c' * (len(name) == 3)}{name}"
    for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")
}
_SYMMETRIC = frozenset(("gcd", "lcm", "max", "min"))
_MOST_OPERANDS = 6
_TRIGONOMETRIC = frozenset(("\\sin", "\\cos", "\\tan", "\\cot", "\\sec", "\\csc", "\\cis"))
_OF_VECTORS = re.compile(  # a product of two, whose sign and order count
    r"\\overrightarrow\{\w+\}[^-+=,]{0,80}\\overrightarrow"
)
_CLOSING = {"(": ")", "{": "}", "[": "]"}
_BEGIN = frozenset(
    ("\\frac", "\\sqrt", "\\pi", "\\binom", "\\mathbb", "\\lfloor", "\\lceil", "\\overrightarrow",
     *(f"\\{name}" for name in _SYMMETRIC),
     *(f"\\{name}" for name in (*GREEK, *FUNCTIONS)))
)  # fmt: skip


@functools.lru_cache(maxsize=8192)
def read_expression(text: str) -> Node | None:
    """Parse a respelled, squeezed text, or return ``None`` if it is not supported.

    What divides by zero is ``UNDEFINED``.
    """
    if len(text) > MAX_LENGTH or _OF_VECTORS.search(text):
        return None
    try:
        reader = _Reader(tokens_of(text))
        tree = reader.sum(0)
        return tree if reader.peek() == "" else None
    except UnreadError:
        return None
    except ZeroDivisionError:
        return UNDEFINED


class _Reader:
    """Read tokens from the left."""

    def __init__(self, tokens: list[str]) -> None:
        self.tokens = tokens
        self.at = 0
        self.bars = 0  # how many | are open
        self.angles = 0  # how many trigonometric functions are being read
        self.indices: list[str] = []  # of the sums that are being read

    def peek(self, ahead: int = 0) -> str:
        at = self.at + ahead
        return self.tokens[at] if at < len(self.tokens) else ""

    def take(self, wanted: str = "") -> str:
        token = self.peek()
        if not token or (wanted and token != wanted):
            raise UnreadError(f"expected {wanted or 'more'}, got {token or 'the end'}")
        self.at += 1
        return token

    # -- from sums down to atoms ---------------------------------------------------------------

    def sum(self, depth: int) -> Node:
        if depth > MAX_DEPTH:
            raise UnreadError("nested too deep")
        terms = [self.product(depth, self.sign())]
        while self.peek() in {"+", "-"}:
            terms.append(self.product(depth, self.sign()))
        return total(terms)

    def sign(self) -> int:
        sign = 1
        while self.peek() in {"+", "-"}:
            sign = -sign if self.take() == "-" else sign
        return sign

    def product(self, depth: int, sign: int = 1) -> Node:
        if self.peek() in {"\\sum", "\\prod"}:
            found = self.series(depth)
            return found if sign > 0 else negative(found)
        factors = [self.power(depth)]
        divided = False
        while True:
            ahead = self.peek()
            if ahead in {"*", "\\cdot", "\\times"}:
                self.take()
                factors.append(self.signed(depth))
            elif ahead in {"/", "\\div"}:
                self.take()
                factors.append(inverse(self.signed(depth)))
                divided = True
                continue
            elif self.begins_factor():
                if divided:
                    raise UnreadError("1/2x has two readings")
                factors.append(self.beside(factors[-1], depth))
            else:
                break
            divided = False
        found = product(factors)
        return found if sign > 0 else negative(found)

    def beside(self, before: Node, depth: int) -> Node:
        """Parse a factor that follows another without a sign between them."""
        previous, token = self.tokens[self.at - 1], self.peek()
        if (token[0].isdigit() or token[0] == ".") and previous != "!":
            raise UnreadError("a number beside something, such as x2")
        if token == "(" and self.may_be_called(previous):
            raise UnreadError("f(x) may be a function")
        if token == "\\frac" and previous.isdigit() and before.kind == "number":
            return self.mixed(before.value, depth)
        return self.power(depth)

    def may_be_called(self, previous: str) -> bool:
        r"""Return whether brackets after a letter may be its argument: ``y(2)``, ``\phi(n)``."""
        if not previous.isalpha() and previous.removeprefix("\\") not in GREEK:
            return False
        return self.peek(2) == ")"  # x(x+1) is a product; nobody puts one letter into brackets

    def mixed(self, whole: Fraction, depth: int) -> Node:
        r"""Parse ``2\frac{1}{3}`` as a mixed number, but not ``2\frac{5}{3}``, ``2\frac{x}{3}``."""
        if self.tokens[self.at - 2 : self.at - 1] == ["^"] or whole.denominator != 1:
            raise UnreadError("is it a mixed number?")
        after = self.atom(depth)
        if self.peek() in {"^", "!"}:
            raise UnreadError("is it a mixed number?")
        if after.kind != "number":
            return after
        if whole <= 0 or not 0 < after.value < 1:
            raise UnreadError("2\\frac{5}{3} has two readings")
        return number(1 + after.value / whole)  # before * (1 + after / before)

    def signed(self, depth: int) -> Node:
        return negative(self.power(depth)) if self.sign() < 0 else self.power(depth)

    def begins_factor(self) -> bool:
        token = self.peek()
        if not token:
            return False
        if token[0] == "\\":
            return token in _BEGIN
        return token[0].isalnum() or token[0] in "(.{" or (token == "|" and not self.bars)

    def power(self, depth: int) -> Node:
        begin = self.at
        base = self.postfix(depth)
        if self.peek() != "^":
            return base
        self.take()
        exponent = self.exponent(depth)
        if self.peek() == "_" and base.kind == "name" and "_" not in base.name:
            base = Node("name", name=base.name + self.subscript())  # v^2_0
        if self.peek() in {"^", "!", "_", "'"}:
            raise UnreadError("a^b^c has two readings")
        if self.peek() == "(" and self.tokens[begin] in _CALLED:
            raise UnreadError("f^{-1}(x) may be a function")
        return power(base, exponent)

    def exponent(self, depth: int) -> Node:
        token = self.peek()
        if token == "{":
            return self.group("{", "}", depth)
        if token[:1].isdigit():
            if len(token) > 1:
                raise UnreadError("x^10 has two readings")
            return number(int(self.take()))
        if token == "(":
            raise UnreadError("x^(2) is ambiguous")
        return self.atom(depth)

    def postfix(self, depth: int) -> Node:
        base = self.atom(depth)
        if self.peek() == "!":
            self.take()
            if self.peek() != "!":
                return factorial(base)
            self.take()
            return double_factorial(base)
        if self.peek() != "°":
            return base
        self.take()  # elsewhere than in a function it is a unit: 180°-2x
        return product([base, constant("pi"), number(Fraction(1, 180))]) if self.angles else base

    def group(self, left: str, right: str, depth: int) -> Node:
        self.take(left)
        bars, self.bars = self.bars, 0
        inside = self.sum(depth + 1)
        if left == "{" and self.peek() == "\\choose":
            self.take()
            inside = binomial(inside, self.sum(depth + 1))
        self.bars = bars
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
            inside = self.group(token, _CLOSING[token], depth)
            if token == "[" and inside.kind not in {"sum", "product"}:
                raise UnreadError("[x] may be the whole part of x")
            return inside
        if token == "|":
            self.bars += 1
            inside = self.sum(depth + 1)
            self.bars -= 1
            self.take("|")
            return call("abs", inside)
        if token.isalpha():
            return self.name(token)
        return self.command(token, depth)

    # -- names ---------------------------------------------------------------------------------

    def name(self, letter: str) -> Node:
        found = letter + self.subscript()
        while self.peek() == "'":
            found += self.take()
        if found in {"e", "i"} and found not in self.indices:
            return constant(found)
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
            while self.peek() != "}":
                inside.append(self.take())
            self.take("}")
            found = "".join(inside)
        if not found or not all(c.isalnum() or c in "+-'" for c in found.replace("\\", "")):
            raise UnreadError("an odd index")
        return f"_{found}"

    # -- commands ------------------------------------------------------------------------------

    def command(self, name: str, depth: int) -> Node:
        if name == "\\frac":
            top = self.group("{", "}", depth)
            return product([top, inverse(self.group("{", "}", depth))])
        if name == "\\sqrt":
            return self.root(depth)
        if name == "\\pi":
            return constant("pi")
        if name == "\\Gamma" and self.peek() == "(":
            below = total([self.group("(", ")", depth), number(-1)])
            natural = below.kind != "number" or is_natural(below.value)
            return factorial(below) if natural else call("factorial", below)
        if name[1:] in _SYMMETRIC:
            return self.symmetric(name, depth)
        if name == "\\binom":
            n = self.group("{", "}", depth)
            return binomial(n, self.group("{", "}", depth))
        if name == "\\mathbb":
            self.take("{")
            letter = self.take()
            self.take("}")
            return Node("name", name=letter + self.subscript())
        if name[1:] in GREEK:
            found = name + self.subscript()
            while self.peek() == "'":
                found += self.take()
            return Node("name", name=found)
        if name == "\\dots":  # whatever stands for it stands for the same in both
            return Node("name", name=name)
        if name == "\\overrightarrow":
            return self.vector()
        if name in {"\\lfloor", "\\lceil"}:
            inside = self.sum(depth + 1)
            self.take(f"\\r{name[2:]}")
            return call(name[2:], inside)
        if name[1:] in FUNCTIONS:
            return self.function(name, depth)
        raise UnreadError(name)

    def vector(self) -> Node:
        r"""Parse ``\overrightarrow{AB}`` as a name, and ``\overrightarrow{BA}`` as minus it."""
        self.take("{")
        first, last = self.take(), self.take()
        self.take("}")
        if not (first.isalpha() and last.isalpha()) or first == last:
            raise UnreadError("no vector of two points")
        found = Node("name", name=f"\\overrightarrow{{{min(first, last)}{max(first, last)}}}")
        return found if first < last else negative(found)

    def symmetric(self, name: str, depth: int) -> Node:
        r"""Parse ``\gcd(a,b)`` as a name of its own, regardless of the order of its operands."""
        self.take("(")
        operands = [self.sum(depth + 1)]
        while self.peek() in {",", ";"} and len(operands) < _MOST_OPERANDS:  # (12, 18) is (12;18)
            self.take()
            operands.append(self.sum(depth + 1))
        self.take(")")
        values = [node.value for node in operands if node.kind == "number"]
        if len(values) == len(operands) > 1:
            return number(_of_numbers(name, values))
        hashed = (hashlib.blake2b(repr(o).encode(), digest_size=16).hexdigest() for o in operands)
        return Node("name", name=f"{name}({','.join(sorted(hashed))})")  # it nests flat

    def root(self, depth: int) -> Node:
        degree = number(2)
        if self.peek() == "[":
            degree = self.group("[", "]", depth)
        if degree.kind != "number" or not is_natural(degree.value) or not 2 <= degree.value <= 99:
            raise UnreadError("a root of no whole degree")
        return root(self.group("{", "}", depth), degree.value)

    def series(self, depth: int) -> Node:
        r"""Parse ``\sum_{k=1}^{10} k^2``, expanded if its bounds are numbers."""
        kind = self.take()
        self.take("_")
        self.take("{")
        index = self.take()
        self.indices.append(index)
        name = self.name(index)
        self.take("=")
        first = self.sum(depth + 1)
        self.take("}")
        self.take("^")
        last = self.exponent(depth)
        begin = self.at
        body = self.product(depth + 1)
        self.indices.pop()
        body = _with_place(body, name.name)
        if kind == "\\prod" and set(self.tokens[begin : self.at]) & {"*", "/", "\\cdot", "\\times"}:
            raise UnreadError("the end of the factor is ambiguous")
        if name.kind != "name":
            raise UnreadError("an index that is no letter")
        if not first.kind == last.kind == "number":
            if name.name in names(first) | names(last):
                raise UnreadError("bounds that hold the index")
            said = "sum of" if kind == "\\sum" else "product of"
            return Node(said, (first, last, body), name=name.name)
        if first.value.denominator != 1 or last.value.denominator != 1:
            raise UnreadError("bounds that are not whole")
        count = int(last.value - first.value) + 1
        if not 1 <= count <= _MAX_TERMS or count * size(body) > _MAX_EXPANDED:
            raise UnreadError("too many terms")
        if any("#" in each for each in names(body)):
            raise UnreadError("terms with an index")
        terms = [substituted(body, name.name, number(first.value + k)) for k in range(count)]
        return total(terms) if kind == "\\sum" else product(terms)

    # -- functions -----------------------------------------------------------------------------

    def function(self, name: str, depth: int) -> Node:
        base, exponent = None, None
        while self.peek() in {"_", "^"}:
            if self.take() == "_" and base is None and name == "\\log":
                base = self.exponent(depth)
            elif self.tokens[self.at - 1] == "^" and exponent is None:
                exponent = self.exponent(depth)
            else:
                raise UnreadError(f"{name} with odd indices")
        inverted = exponent is not None and exponent.kind == "number" and exponent.value == -1
        if inverted and name not in _INVERSE:
            raise UnreadError(f"{name}^{{-1}} has two readings")
        self.angles += name in _TRIGONOMETRIC
        argument = self.argument(depth)
        self.angles -= name in _TRIGONOMETRIC
        if inverted:
            return _applied(_INVERSE[name], None, argument)
        made = _applied(name[1:], base, argument)
        return made if exponent is None else power(made, exponent)

    def argument(self, depth: int) -> Node:
        """Parse what a function is applied to: brackets, or the factors up to the next sign."""
        if depth > MAX_DEPTH:
            raise UnreadError("nested too deep")
        if self.peek() in {"(", "{", "|", "["}:
            inside = self.postfix(depth + 1)
            if self.peek() in {"^", "!"}:
                raise UnreadError("\\sin(x)^2 has two readings")
            return inside
        sign = self.sign()
        factors = [self.power(depth + 1)]
        while self.begins_factor() and self.peek()[1:] not in FUNCTIONS:
            if self.peek() in {"(", "|", "{"}:
                raise UnreadError("\\sin x(x+1) has two readings")
            factors.append(self.beside(factors[-1], depth + 1))
        divides = self.peek() in {"/", "\\div"}
        if divides and not self.peek(1).isalpha() and self.peek(1)[1:] not in FUNCTIONS:
            raise UnreadError("\\sin x/2 has two readings")
        found = product(factors)
        return found if sign > 0 else negative(found)


def _with_place(term: Node, index: str) -> Node:
    """Return the term of a series, in which ``a_ij`` is another quantity for each index."""
    for found in names(term):
        name, _, place = found.partition("_")
        if index in place:
            term = substituted(
                term, found, Node("name", name=f"{name}_{place.replace(index, '#')}")
            )
    return term


def _of_numbers(name: str, values: list[Fraction]) -> Fraction:
    if name in {"\\max", "\\min"}:
        return max(values) if name == "\\max" else min(values)
    if any(value.denominator != 1 for value in values):
        raise UnreadError("a divisor of what is not whole")
    of = math.gcd if name == "\\gcd" else math.lcm
    return Fraction(of(*(value.numerator for value in values)))


def _applied(name: str, base: Node | None, argument: Node) -> Node:
    if name == "exp":
        return power(constant("e"), argument)
    if name in HYPERBOLIC:
        return _hyperbolic_inverse(HYPERBOLIC[name], argument)
    if name == "cis":
        return total([call("cos", argument), product([constant("i"), call("sin", argument)])])
    if name == "arccot":
        right = product([constant("pi"), number(Fraction(1, 2))])
        return total([right, negative(call("arctan", argument))])
    if name not in {"log", "lg"}:
        return call(name, argument)
    natural = call("ln", argument)
    if name == "lg":
        base = number(10)
    if base is None:
        # whatever the base is, it is the same one everywhere: an unknown factor
        return product([Node("name", name="\\log"), natural])
    return product([natural, inverse(call("ln", base))])


def _hyperbolic_inverse(name: str, u: Node) -> Node:
    """Return its logarithmic form: Abramowitz and Stegun (1964), equations 4.6.20 to 4.6.22."""
    one = number(1)
    if name == "tanh":
        ratio = product([total([one, u]), inverse(total([one, negative(u)]))])
        return product([number(Fraction(1, 2)), call("ln", ratio)])
    under = total([power(u, number(2)), number(1 if name == "sinh" else -1)])
    return call("ln", total([u, root(under, Fraction(2))]))
