"""Who is where, and who is what: every assignment is judged by the clues, in every spelling."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import permutations, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.verifiers import KnightsAndKnaves, Status, Zebra

# -- zebra puzzles -----------------------------------------------------------------------------

CATEGORIES = {
    "name": ["Ann", "Bob", "Cy"],
    "drink": ["tea", "apple juice", "milk"],
    "pet": ["cat", "dog", "fish"],
}
CLUES = [["before", "Ann", "tea"], ["next", "cat", "milk"], ["different", "Bob", "dog"],
         ["not_at", "fish", 2]]  # fmt: skip

Houses = list[list[str]]


def assignments() -> Iterator[Houses]:
    orders = [list(permutations(values)) for values in CATEGORIES.values()]
    for chosen in product(*orders):
        yield [list(house) for house in zip(*chosen, strict=True)]


def satisfies(houses: Houses) -> bool:
    """The clues above, in words of this test."""
    at = {value: i for i, house in enumerate(houses, 1) for value in house}
    return (
        at["Ann"] < at["tea"]
        and at["cat"] - at["milk"] in (1, -1)
        and at["Bob"] != at["dog"]
        and at["fish"] != 2
    )


def by_category(house: list[str]) -> dict[str, str]:
    return dict(zip(CATEGORIES, house, strict=True))


HOUSES: dict[str, Callable[[Houses], str]] = {
    "lines": lambda h: "\n".join(f"House {i}: {', '.join(v)}" for i, v in enumerate(h, 1)),
    "sentences": lambda h: "\n".join(
        f"{i}. House {i} is the home of {n}, who drinks {d} and has the {p}."
        for i, (n, d, p) in enumerate(h, 1)),
    "upper case": lambda h: HOUSES["lines"](h).upper(),
    "lists": lambda h: "\n\n".join(
        f"**House {i}**\n- Name: {n}\n- Drink: {d}\n- Pet: {p}"
        for i, (n, d, p) in enumerate(h, 1)),
    "table": lambda h: "| House | Name | Drink | Pet |\n|:-:|---|---|---|\n" + "\n".join(
        f"| {i} | {' | '.join(v)} |" for i, v in enumerate(h, 1)),
    "table on its side": lambda h: "| | House 1 | House 2 | House 3 |\n|---|---|---|---|\n"
    + "\n".join(f"| {name} | {' | '.join(row)} |"
                for name, *row in zip(CATEGORIES, *h, strict=True)),
    "json": lambda h: json.dumps(
        {f"House {i}": by_category(v) for i, v in enumerate(h, 1)}),
    "json in lines": lambda h: "```json\n" + json.dumps(
        [{"house": i, **by_category(v)} for i, v in enumerate(h, 1)], indent=1) + "\n```",
    "short json": lambda h: json.dumps({str(i): v for i, v in enumerate(h, 1)}),
    "last house first": lambda h: "\n".join(
        f"House {i}: {', '.join(reversed(v))}" for i, v in reversed(list(enumerate(h, 1)))),
    "matrix": lambda h: r"\boxed{\begin{array}{c|ccc}" + r"\\".join(
        rf"{i} & \text{{{n}}} & \text{{{d}}} & \text{{{p}}}" for i, (n, d, p) in enumerate(h, 1))
    + r"\end{array}}",
}  # fmt: skip


@pytest.mark.parametrize("spelling", HOUSES)
def test_every_assignment_is_judged_by_the_clues(spelling: str) -> None:
    puzzle = {"houses": 3, "categories": CATEGORIES, "clues": CLUES}
    for houses in assignments():
        verdict = Zebra().verify(HOUSES[spelling](houses), puzzle)
        assert verdict.score == satisfies(houses), (houses, verdict)
        assert verdict.status in (Status.CORRECT, Status.INCORRECT)
    assert sum(map(satisfies, assignments())) > 1


POSITIONS = {
    "at": lambda a, b: a == 2, "not_at": lambda a, b: a != 2, "same": lambda a, b: a == b,
    "different": lambda a, b: a != b, "left": lambda a, b: b - a == 1,
    "before": lambda a, b: b - a > 0, "next": lambda a, b: b - a in (1, -1),
}  # fmt: skip


@pytest.mark.parametrize("kind", POSITIONS)
def test_each_kind_of_clue_means_what_it_says(kind: str) -> None:
    clue = [kind, "Ann", 2 if kind in ("at", "not_at") else "dog"]
    puzzle = {"houses": 3, "categories": CATEGORIES, "clues": [clue]}
    for houses in assignments():
        a, b = (next(i for i, h in enumerate(houses, 1) if v in h) for v in ("Ann", "dog"))
        verdict = Zebra().verify(HOUSES["lines"](houses), puzzle)
        assert verdict.score == POSITIONS[kind](a, b)


# -- knights and knaves ------------------------------------------------------------------------

PEOPLE = ["Ann", "Bob", "Cleo"]
ISLAND = {
    "people": PEOPLE,
    "statements": [["says", 0, ["or", ["knave", 0], ["knight", 1]]], ["says", 1, ["knight", 0]]],
}
Roles = tuple[bool, ...]


def role(knight: bool) -> str:
    return "knight" if knight else "knave"


def named(roles: Roles) -> list[tuple[str, bool]]:
    return list(zip(PEOPLE, roles, strict=True))


def of_role(roles: Roles, knight: bool) -> list[str]:
    return [name for name, is_knight in named(roles) if is_knight == knight]


ASSIGNMENTS: dict[str, Callable[[Roles], str]] = {
    "lines": lambda r: "\n".join(f"{n}: {role(k)}" for n, k in named(r)),
    "sentence": lambda r: "So "
    + ", and ".join(f"{n} is a {role(k)}" for n, k in named(r)) + ".",
    "list": lambda r: "\n".join(f"- **{n}**: {role(k).title()}" for n, k in named(r)),
    "numbered": lambda r: "\n".join(f"{i}. {n} - {role(k)}" for i, (n, k) in
                                    enumerate(named(r), 1)),
    "table": lambda r: "| Person | Role |\n|---|---|\n"
    + "\n".join(f"| {n} | {role(k)} |" for n, k in named(r)),
    "json": lambda r: json.dumps({n: role(k) for n, k in named(r)}),
    "json list": lambda r: json.dumps([{"name": n, "role": role(k)} for n, k in named(r)]),
    "by role": lambda r: f"Knights: {', '.join(of_role(r, True)) or 'none'}\n"
    f"Knaves: {', '.join(of_role(r, False)) or 'none'}",
    "json by role": lambda r: json.dumps(
        {"knaves": of_role(r, False), "knights": of_role(r, True)}),
    "box": lambda r: r"\boxed{\text{" + ", ".join(f"{n} is a {role(k)}" for n, k in named(r))
    + "}}",
    "with a gap": lambda r: "\n\n".join(f"{n} is a {role(k)}." for n, k in named(r)),
    "together": lambda r: ". ".join(
        f"{' and '.join(of_role(r, k))} are {role(k)}s" for k in (True, False) if of_role(r, k)),
}  # fmt: skip


@pytest.mark.parametrize("spelling", ASSIGNMENTS)
def test_every_assignment_that_fits_wins(spelling: str) -> None:
    for roles in product((False, True), repeat=3):
        ann, bob, _ = roles
        fits = ann == (not ann or bob) and bob == ann
        verdict = KnightsAndKnaves().verify(ASSIGNMENTS[spelling](roles), ISLAND)
        assert verdict.score == fits, (roles, verdict)
        assert verdict.status in (Status.CORRECT, Status.INCORRECT)


WORDS = {
    "and": lambda a, b: a and b,
    "or": lambda a, b: a or b,
    "if": lambda a, b: (not a) or b,
    "iff": lambda a, b: a is b,
}


@pytest.mark.parametrize("word", WORDS)
def test_each_word_joins_as_it_says(word: str) -> None:
    said = [word, ["knight", 1], ["not", ["knave", 2]]]
    puzzle = {"people": PEOPLE, "statements": [["says", 0, said]]}
    for ann, bob, cleo in product((False, True), repeat=3):
        verdict = KnightsAndKnaves().verify(ASSIGNMENTS["lines"]((ann, bob, cleo)), puzzle)
        assert verdict.score == (ann is WORDS[word](bob, cleo))


def test_exactly_counts_the_knights() -> None:
    for k in range(4):
        puzzle = {"people": PEOPLE, "statements": [["says", 0, ["exactly", k]]]}
        fitting = [r for r in product((False, True), repeat=3) if r[0] == (sum(r) == k)]
        for roles in product((False, True), repeat=3):
            verdict = KnightsAndKnaves().verify(ASSIGNMENTS["lines"](roles), puzzle)
            assert verdict.score == (None if not fitting else roles in fitting)


formulas = st.recursive(
    st.tuples(st.sampled_from(["knight", "knave"]), st.integers(0, 2))
    | st.tuples(st.just("exactly"), st.integers(0, 3)),
    lambda inner: (
        st.tuples(st.just("not"), inner)
        | st.tuples(st.sampled_from(["and", "or", "if", "iff"]), inner, inner)
        | st.tuples(st.sampled_from(["and", "or"]), inner, inner, inner)
    ),
    max_leaves=6,
)


def meant(said: list, roles: Roles) -> bool:
    """The truth of what is said, in words of this test."""
    word, *rest = said
    if word == "exactly":
        return roles.count(True) == rest[0]
    if word in ("knight", "knave"):
        return roles[rest[0]] is (word == "knight")
    parts = [meant(part, roles) for part in rest]
    if word == "not":
        return not parts[0]
    return WORDS[word](*parts) if len(parts) == 2 else {"and": all, "or": any}[word](parts)


@settings(deadline=None, derandomize=True, max_examples=60)
@given(
    said=st.lists(st.tuples(st.just("says"), st.integers(0, 2), formulas), min_size=1, max_size=3)
)
def test_any_statements_are_judged_as_they_are_meant(said) -> None:
    puzzle = {"people": PEOPLE, "statements": json.loads(json.dumps(said))}
    every = list(product((False, True), repeat=3))
    fitting = [r for r in every if all(meant(s, r) is r[i] for _, i, s in puzzle["statements"])]
    verifier = KnightsAndKnaves()
    fault = verifier.check_reference(puzzle)
    if fault is not None:
        assert fault.startswith("every" if fitting else "no")
        assert len(fitting) in (0, 8)
        return
    assert verifier.oracle_reply(puzzle) in map(ASSIGNMENTS["lines"], fitting)
    for roles in every:
        verdict = verifier.verify(ASSIGNMENTS["lines"](roles), puzzle)
        assert verdict.score == (roles in fitting)
