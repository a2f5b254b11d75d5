"""Compare lists, sets, tuples, matrices, intervals and unions, member by member."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import replace

from .comparison import Comparison
from .equations import assignment
from .expression import read_expression
from .identity import constant_value
from .intervals import read_intervals, same_inequality, same_intervals
from .number import read_respelled
from .parsed_answer import Kind, ParsedAnswer, as_interval, parse_answer
from .quantity import to_be_worked_out
from .variables import letters, same_letters

_UNIT = re.compile(r"\\[A-Za-z]+|([ijk])")
_NUMBERED = re.compile(r"\A([A-Za-z]|\\[a-z]{2,7})_?\{?\d\}?=")
_VARIABLE = re.compile(r"[A-Za-z]|\\[a-z]{2,7}")
_INDEXED = re.compile(r"([A-Za-z])_\{?\d\}?")
_MAX_ELEMENTS = 60
"""Members that are compared each with each."""

BAGS = frozenset((Kind.LIST, Kind.SET))
RANGES = frozenset((Kind.RELATION, Kind.UNION, Kind.TUPLE))


def same_sequences(a: ParsedAnswer, b: ParsedAnswer, on: Comparison, depth: int) -> bool | None:
    """Compare tuples, intervals, vectors and matrices."""
    a, b = _components(a, len(b.parts)), _components(b, len(a.parts))
    if a.kind is b.kind:
        same_frame = a.mark == b.mark
    elif {a.kind, b.kind} == {Kind.MATRIX, Kind.TUPLE}:  # a column vector may be written (1,2)
        column = f"pmatrix {len(a.parts)}"
        same_frame = {a.mark, b.mark} == {column, "()"}
    else:
        expression = a if a.kind is Kind.EXPRESSION else b
        # a product of matrices: what it comes to is not for us to say
        return None if expression.kind is Kind.EXPRESSION and "matrix" in expression.text else False
    unequal = not same_frame or len(a.parts) != len(b.parts)
    if unequal or _misnamed(a, b) or _misnamed(b, a):
        return False
    if on.how.worked_out and (bare := _without_factor(b)) is not None:
        if any(to_be_worked_out(x, y, on) for x, y in zip(a.parts, bare.parts, strict=True)):
            return False
        on = on.by_value()  # it is read_shape that has multiplied each cell by the factor
    return on.all_same(a.parts, b.parts, depth)


def _components(shape: ParsedAnswer, size: int) -> ParsedAnswer:
    """Return the vector ``2i-3j+k`` as a tuple of components; any other shape unchanged."""
    named = letters(shape.text) if shape.kind is Kind.EXPRESSION and size in {2, 3} else frozenset()
    if not named or not named <= frozenset("jk"[: size - 1]):  # i is no variable
        return shape

    def at(*place: int) -> str:
        values = dict(zip("ijk", place, strict=False))
        return _UNIT.sub(lambda unit: f"({values[unit[1]]})" if unit[1] else unit[0], shape.text)

    places = [[int(k == n) for k in range(size)] for n in range(size)]
    parts = [at(*place) for place in places]
    trees = [read_expression(text) for text in (at(*[0] * size), at(2, 3, 5), *parts)]
    found = [constant_value(tree) for tree in trees if tree is not None]
    values = [value for value in found if value is not None]
    if len(values) != len(trees) or values[0] != 0:
        return shape
    if abs(sum(x * v for x, v in zip((2, 3, 5), values[2:], strict=False)) - values[1]) > 1e-40:
        return shape
    simple = [tree.value if tree.kind == "number" else "" for tree in trees[2:] if tree]
    parts = [str(value) or part for value, part in zip(simple, parts, strict=True)]
    return ParsedAnswer(Kind.TUPLE, shape.text, tuple(parts), "()")


def _misnamed(one: ParsedAnswer, other: ParsedAnswer) -> bool:
    """Return whether only one side names its members, out of order: ``(y=3, x=-5)``."""
    named = [assignment(parse_answer(part)) for part in one.parts if "=" in part]
    values = [found[1][-1] for found in named if found]
    if len(values) < 2 or any("=" in part for part in other.parts):
        return False
    return _coordinates(one) != values


def _without_factor(matrix: ParsedAnswer) -> ParsedAnswer | None:
    """Return the matrix without a factor, ``None`` if there is no factor."""
    start = matrix.text.find("\\begin") if matrix.kind is Kind.MATRIX else 0
    bare = parse_answer(matrix.text[start:]) if start > 0 else None
    return bare if bare is not None and len(bare.parts) == len(matrix.parts) else None


# -- lists and sets ----------------------------------------------------------------------------


def same_bags(a: ParsedAnswer, b: ParsedAnswer, on: Comparison, depth: int) -> bool | None:
    """Compare lists and sets with each other, a single value, or a range given by inequalities."""
    if Kind.EQUATION in {a.kind, b.kind}:
        a, b = named_members(a), named_members(b)
    if not (a.kind in BAGS and b.kind in BAGS):
        return _bag_and_other(a, b, on, depth)
    if a.kind is b.kind is Kind.SET:
        a, b = _sets_apart(a), _sets_apart(b)
    a = _all_named(a)
    a, b = _numbered_as(b, a), _numbered_as(a, b)
    if _named_in_order(a, b):
        return on.all_same(a.parts, b.parts, depth)
    given = _own_names(a, b)
    if given is not None:
        return on.noted(on.all_same(a.parts, given, depth), "given by name")
    repeated = len(set(a.parts)) < len(a.parts) and not any(map(str.isdigit, a.text))
    if (on.how.ordered or repeated) and a.kind is b.kind is Kind.LIST:  # True, False, True
        return on.all_same(a.parts, b.parts, depth)
    found = _same_members(_distinct(a.parts, on, depth), _distinct(b.parts, on, depth), on, depth)
    kinds = {parse_answer(part).kind for part in (*a.parts, *b.parts)}
    return found or (kinds == {Kind.RELATION} and _regions(a, b, on)) or found


def _sets_apart(shape: ParsedAnswer) -> ParsedAnswer:
    """Return a set whose members that are sets, ``{1}``, are no numbers, as a single one may be."""
    parts = (f"({part},0)" if part.startswith("\\{") else part for part in shape.parts)
    return replace(shape, parts=tuple(parts))


def _all_named(shape: ParsedAnswer) -> ParsedAnswer:
    """Return ``x=1, 4`` as ``x=1, x=4``; any other shape unchanged."""
    name, sign, _ = shape.parts[0].partition("=") if shape.parts else ("", "", "")
    if not sign or not _VARIABLE.fullmatch(name) or any("=" in part for part in shape.parts[1:]):
        return shape
    if any(parse_answer(part).kind is not Kind.NUMBER for part in shape.parts[1:]):
        return shape
    return replace(shape, parts=(shape.parts[0], *(f"{name}={p}" for p in shape.parts[1:])))


def _numbered_as(one: ParsedAnswer, other: ParsedAnswer) -> ParsedAnswer:
    """Return ``x_1=2, x_2=3`` as ``x=2, x=3`` if one is written so; else the other unchanged."""
    names = {part.rpartition("=")[0] for part in one.parts} - {""}
    if len(names) != 1 or not _VARIABLE.fullmatch(names.pop()):
        return other
    return replace(other, parts=tuple(_NUMBERED.sub(r"\1=", part) for part in other.parts))


def _bag_and_other(a: ParsedAnswer, b: ParsedAnswer, on: Comparison, depth: int) -> bool | None:
    bag, other = (a, b) if a.kind in BAGS else (b, a)
    alike = len(set(bag.parts)) == 1 and parse_answer(bag.parts[0]).kind is other.kind is Kind.TUPLE
    if alike or (len(bag.parts) == 1 and other.kind not in RANGES):  # {5} for 5
        gold = bag.parts[0] if bag is a else a.text
        answer = bag.parts[0] if bag is b else b.text
        return on.same(gold, answer, depth + 1)
    if other.kind is Kind.TUPLE and not on.how.brackets and bag.kind is Kind.LIST:
        return on.noted(on.all_same(a.parts, b.parts, depth), "without the brackets")
    if bag is a and on.how.members == "some" and other.kind not in RANGES:
        return _same_members(list(a.parts), [b.text], on, depth)
    if other.kind is Kind.TUPLE and other.mark == "()":
        named = _coordinates(bag)
        if named is not None and len(named) == len(other.parts):
            golds, answers = (named, other.parts) if bag is a else (other.parts, named)
            return on.noted(on.all_same(golds, answers, depth), "given by name")
    pairs = [len(s.parts) == 2 and s.kind is Kind.TUPLE for s in map(parse_answer, b.parts)]
    if bag is b and a.kind is Kind.UNION and all(pairs):  # (-\infty,0) or (2,\infty)
        return on.same(a.text, "\\cup".join(b.parts), depth + 1)
    points = other.kind is Kind.UNION and bag.kind is Kind.SET
    ranges = other.kind in RANGES or other.kind is Kind.EXPRESSION
    kinds = {parse_answer(part).kind for part in bag.parts}
    cases = Kind.RELATION in kinds <= {Kind.RELATION, Kind.EQUATION}
    return _regions(a, b, on) if points or (ranges and cases) else False


def named_members(shape: ParsedAnswer) -> ParsedAnswer:
    """Return ``(a,b) = (2,5)`` as the list ``a = 2, b = 5``; any other shape unchanged."""
    if shape.kind is Kind.EQUATION and len(shape.parts) > 2:  # a = b = 1
        members = tuple(f"{name}={shape.parts[-1]}" for name in shape.parts[:-1])
        chained = all(assignment(parse_answer(member)) for member in members)
        return replace(shape, kind=Kind.LIST, parts=members) if chained else shape
    sides = [parse_answer(side) for side in shape.parts]
    if shape.kind is not Kind.EQUATION or len(sides) != 2:
        return shape
    names, values = sides
    if not names.kind is values.kind is Kind.TUPLE or len(names.parts) != len(values.parts):
        return shape
    members = tuple(f"{n}={v}" for n, v in zip(names.parts, values.parts, strict=True))
    return replace(shape, kind=Kind.LIST, parts=members)


def solutions(shape: ParsedAnswer) -> ParsedAnswer:
    """Return ``x=1, y=2, x=2, y=1`` as the list ``(1,2), (2,1)``; any other shape unchanged."""
    found = [assignment(parse_answer(part)) for part in shape.parts if shape.kind is Kind.LIST]
    named = [each for each in found if each is not None]
    size = len({name for name, _ in named})
    if not 1 < size < len(named) == len(found):
        return shape
    groups = [dict(named[at : at + size]) for at in range(0, len(named), size)]
    if any(group.keys() != groups[0].keys() for group in groups):
        return shape
    parts = [",".join(group[name][-1] for name in sorted(group)) for group in groups]
    return replace(shape, parts=tuple(f"({part})" for part in parts))


def _coordinates(bag: ParsedAnswer) -> list[str] | None:
    """Return the values of ``x = 3, y = -5`` in the order of the names, or else as given.

    The order of the names counts for x, y, z and for indices; ``None`` for other names that stand
    in the reverse order of the alphabet: nobody can say which comes first.
    """
    named = [assignment(parse_answer(part)) for part in bag.parts]
    values = {found[0]: found[1][-1] for found in named if found}
    if len(values) < 2 or len(values) != len(bag.parts):
        return None
    names = list(values)
    if set(names) <= {"x", "y", "z"} or all(_INDEXED.fullmatch(name) for name in names):
        return [values[name] for name in sorted(names)]
    single = all(len(name) == 1 for name in names)
    follow = single and ord(max(names)) - ord(min(names)) < len(names)
    return None if follow and names != sorted(names) else list(values.values())


def _named_in_order(a: ParsedAnswer, b: ParsedAnswer) -> bool:
    """Return whether the reference has names, as in ``k=4, n=2``, and the answer ``4, 2``.

    Different units name members too: ``3 red, 4 blue``.
    """
    if not 1 < len(a.parts) == len(b.parts):
        return False
    golds, answers = ([parse_answer(part) for part in shape.parts] for shape in (a, b))
    names = [_label(member) for member in golds]
    if "" in names or len(set(names)) != len(names):
        return False
    return not any(_label(member) for member in answers)


def _own_names(a: ParsedAnswer, b: ParsedAnswer) -> list[str] | None:
    """Return the values of ``w=16, d=3``, an answer to the list ``16, 3``, in their order.

    ``None`` if the gold names its members, or the answer has ``x_1`` and ``x_2``, one name with
    indices, for the roots of one equation.
    """
    if not (1 < len(a.parts) == len(b.parts) and a.kind is b.kind is Kind.LIST):
        return None
    found = [assignment(parse_answer(part)) for part in b.parts]
    names = {name[0] for name in found if name}
    if any(assignment(parse_answer(part)) for part in a.parts) or len(names) < len(found):
        return None
    return None if all(map(_INDEXED.fullmatch, names)) else _coordinates(b)


def _label(member: ParsedAnswer) -> str:
    found = assignment(member)
    return found[0] if found else member.number.unit if member.number else ""


def _key(part: str, on: Comparison) -> Hashable:
    """Return a key that certainly equal members share."""
    # A shape has the value of 1-4 too, which is no answer where a number is to be worked out.
    found = read_respelled(part) if on.how.worked_out else parse_answer(part).number
    return part if found is None else (found.value, found.percent, found.unit)


def _distinct(parts: Sequence[str], on: Comparison, depth: int) -> list[str]:
    unique = list({_key(part, on): part for part in reversed(parts)}.values())[::-1]
    if len(unique) > _MAX_ELEMENTS:
        return unique
    kept: list[str] = []
    notes = list(on.notes)
    on = on.without_tolerance()  # {1, 1.01} has two members
    for part in unique:
        if not any(on.same(other, part, depth + 1) for other in kept):
            kept.append(part)
    on.notes = notes  # what makes two members one is no convention about the answer
    return kept


def _same_members(gold: list[str], answer: list[str], on: Comparison, depth: int) -> bool | None:
    """Return whether members pair up; :attr:`Conventions.members` says which may be left over."""
    members = on.how.members
    short, long = (answer, gold) if members == "some" else (gold, answer)
    spare = {"exact": 0, "some": len(gold) - 1, "more": len(gold)}[members]
    if not 0 <= len(long) - len(short) <= spare:
        return False
    common = Counter(_key(part, on) for part in gold) & Counter(_key(part, on) for part in answer)
    rest, candidates = _without(short, common, on), _without(long, common, on)
    if len(rest) > _MAX_ELEMENTS:
        return None
    unknown = False
    for part in rest:
        pairs = [(part, other) if short is gold else (other, part) for other in candidates]
        findings: list[bool | None] = []
        for left, right in pairs:
            findings.append(on.same(left, right, depth + 1))
            if findings[-1]:
                break
        if findings and findings[-1] is True:
            del candidates[len(findings) - 1]
        elif None not in findings:
            return False
        else:
            unknown = True
    if unknown:
        return None
    if len(long) > len(short):
        on.note("with members missing" if members == "some" else "with members added")
    return True


def _without(parts: Sequence[str], common: Counter[Hashable], on: Comparison) -> list[str]:
    left, kept = Counter(common), []
    for part in parts:
        key = _key(part, on)
        if left[key] > 0:
            left[key] -= 1
        else:
            kept.append(part)
    return kept


# -- parts of the line -------------------------------------------------------------------------


def same_ranges(a: ParsedAnswer, b: ParsedAnswer, on: Comparison, depth: int) -> bool | None:
    """Compare inequalities, intervals and their unions."""
    unions = a.kind is b.kind is Kind.UNION
    if unions and len(a.parts) == len(b.parts) <= _MAX_ELEMENTS:
        exactly = Comparison(on.how, on.part, work=on.work)
        if _same_members(list(a.parts), list(b.parts), exactly, depth) and exactly.work < 5000:
            return True
    whole = ("\\mathbb", "\\setminus")
    for shape in (a, b):
        loose = shape.kind is Kind.EXPRESSION and any(sign in shape.text for sign in whole)
        if shape.kind not in RANGES and not loose and shape.kind is not Kind.SET:
            return False
    if a.kind is b.kind is Kind.RELATION and not same_letters(a.text, b.text):
        return False
    found = _regions(a, b, on)
    if found is None and a.kind is b.kind is Kind.RELATION:
        found = same_inequality(a.text, b.text)
    if found is not None:
        return found
    left, right = (as_interval(s.text) if s.kind is Kind.RELATION else s for s in (a, b))
    if left is None or right is None or left.kind is not right.kind:
        return None
    return same_sequences(left, right, on, depth)


def _regions(a: ParsedAnswer, b: ParsedAnswer, on: Comparison) -> bool | None:
    """Compare as sets of real numbers; ``None`` if one cannot be parsed as such."""
    left, right = read_intervals(a), read_intervals(b)
    if left is None or right is None:
        return None
    if not same_intervals(left, right):
        return False
    return on.note("as a set of numbers") if a.kind is not b.kind else True
