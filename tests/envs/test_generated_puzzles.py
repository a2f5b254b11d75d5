"""Generated puzzles: solvable, and where they say so in one way only, by solvers written anew."""

import json
import re
from collections.abc import Iterator
from importlib import import_module
from itertools import combinations_with_replacement, permutations, product

import pytest

from assay.envs import PuzzleEnv, make
from assay.envs.puzzles import PUZZLES
from assay.envs.puzzles.twenty_four import solved
from assay.verifiers import Countdown

LEVELS = range(1, 6)
EVERY = {
    name: kind
    for name, (module, _) in PUZZLES.items()
    if issubclass(kind := getattr(import_module(f"assay.envs.puzzles.{module}"), name), PuzzleEnv)
}
QUERIES = ("SQL", "RegexSynthesis")  # how they are judged: test_generated_queries.py
KINDS = {name: kind for name, kind in EVERY.items() if name not in QUERIES}
MADE = {(name, k): make(f"assay/{name}-v1", level=k) for name in KINDS for k in LEVELS}
# The same steps may measure other amounts, values satisfy other clauses, boards hold the queens.
SHARED = {"WaterJugs": 3, "Satisfiability": 3, "Queens": 30}


@pytest.mark.parametrize("name", KINDS)
def test_each_task_is_won_by_its_own_answer_alone(name) -> None:
    for level in LEVELS:
        env = MADE[name, level]
        tasks = [env.task(i) for i in range(6)]
        for i, task in enumerate(tasks):
            assert env.rubric.check_reference(task.reference) is None
            cut = task.solution[: len(task.solution) * 3 // 4].rstrip(" ,")
            replies = [task.solution, f"<answer>{task.solution}</answer>", cut, task.text]
            scores = [v.score for v in env.rubric.verify_many(replies, [task.reference] * 4)]
            assert scores == [1.0, 1.0, 0.0, 0.0]
            assert json.loads(json.dumps(task.reference)) == task.reference
            again = env.task(i)
            assert again == task
            held = set(map(id, containers(task.reference)))
            assert held.isdisjoint(map(id, containers(again.reference)))
            assert {type(c) for c in containers(task.reference)} <= {list, dict}
        assert len({task.text for task in tasks}) >= len(tasks) - 2  # Hanoi's first are few
    pairs = [(one.solution, other.reference) for one, other in permutations(tasks, 2)]
    won = sum(env.rubric.verify(*pair).score for pair in pairs)
    assert won <= SHARED.get(name, 0)


def containers(value):
    """All lists, dicts and other holders inside a value."""
    if isinstance(value, dict | list | tuple):
        yield value
        for item in value.values() if isinstance(value, dict) else value:
            yield from containers(item)


@pytest.mark.parametrize(
    ("name", "form", "score"),
    [
        ("BaseConversion", "{0}_{{{1}}}", 1.0),
        ("BaseConversion", "{0}", 1.0),
        ("BaseConversion", "{0}_{{10}}", 0.0),
        ("LinearSystem", "x = {0}, y = {1}, z = {2}, w = {3}", 1.0),
        ("LinearSystem", "w = {3}, x = {0}, y = {1}, z = {2}", 1.0),
        ("LinearSystem", "({0}, {1}, {2}, {3})", 1.0),
        ("LinearSystem", "w = {0}, x = {1}, y = {2}, z = {3}", 0.0),
        ("Remainder", "{0} \\bmod {1}", 0.0),
    ],
)
def test_calculations_are_read_as_they_are_asked_for(name, form, score) -> None:
    """A base may be named, unknowns are what they are called, a product is no remainder."""
    env = make(f"assay/{name}-v1", level={"LinearSystem": 5, "Remainder": 2}.get(name, 4))
    for task in map(env.task, range(5)):
        values = {
            "BaseConversion": lambda t: [t.solution[7:-1], re.findall(r"base (\d)", t.text)[1]],
            "LinearSystem": lambda t: t.solution[8:-2].split(", "),
            "Remainder": _product,
        }[name](task)
        reply = rf"\boxed{{{form.format(*values)}}}"
        assert env.rubric.verify(reply, task.reference).score == score, reply


def _product(task) -> list[int]:
    a, b, divisor = map(int, re.findall(r"\d+", task.text))
    return [a * b, divisor]


@pytest.mark.slow
@pytest.mark.parametrize("name", EVERY)
def test_splits_share_no_task_and_seeds_put_others(name) -> None:
    train, test, later = (
        make(f"assay/{name}-v1", **options) for options in ({}, {"split": "test"}, {"seed": 1})
    )
    of_train, of_test, of_later = (
        {env.task(i).text for i in range(count)}
        for env, count in ((train, 12), (test, 3), (later, 12))  # a draw in ten is for test
    )
    assert not of_train & of_test
    assert len(of_train & of_later) < 5


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("level", [0, 6, -1])
def test_there_are_five_levels(name, level) -> None:
    with pytest.raises(ValueError, match=f"level must be from 1 to 5, got {level}"):
        make(f"assay/{name}-v1", level=level)


@pytest.mark.parametrize("name", [n for n in KINDS if KINDS[n].verifier().many_answers])
def test_the_texts_of_levels_grow(name) -> None:
    lengths = [sum(len(MADE[name, k].task(i).text) for i in range(8)) for k in LEVELS]
    assert lengths[0] < lengths[2] < lengths[4]


def test_levels_grow() -> None:
    def size(name: str, of) -> list[float]:
        return [sum(of(MADE[name, k].task(i).reference) for i in range(12)) for k in LEVELS]

    def blanks(reference) -> int:
        return sum(row.count(0) for row in reference["grid"])

    for grown in (
        size("Sudoku", blanks),
        size("Queens", lambda r: r["n"] - len(r["placed"])),
        size("KnightsAndKnaves", lambda r: len(r["people"])),
        size("Zebra", lambda r: r["houses"] * len(r["categories"])),
        size("TwentyFour", lambda r: -solved(tuple(r["numbers"]))[0]),
    ):
        assert grown == sorted(set(grown)), grown


# -- one solution and no more ------------------------------------------------------------------


def fillings(grid: list[list[int]]) -> Iterator[list[list[int]]]:
    """All fillings of a Sudoku, cell by cell; the cell with the fewest digits first."""
    n = len(grid)
    high, wide = {4: (2, 2), 6: (2, 3), 9: (3, 3)}[n]
    best = None
    for r, c in product(range(n), repeat=2):
        if not grid[r][c]:
            top, left = r - r % high, c - c % wide
            box = {grid[i][j] for i in range(top, top + high) for j in range(left, left + wide)}
            free = set(range(1, n + 1)) - box - set(grid[r]) - {row[c] for row in grid}
            if best is None or len(free) < len(best[2]):
                best = r, c, free
    if best is None:
        yield [row[:] for row in grid]
        return
    r, c, free = best
    for digit in free:
        grid[r][c] = digit
        yield from fillings(grid)
    grid[r][c] = 0


@pytest.mark.parametrize("level", LEVELS)
def test_a_sudoku_has_one_filling(level) -> None:
    for index in range(8):
        task = MADE["Sudoku", level].task(index)
        found = list(fillings([row[:] for row in task.reference["grid"]]))
        assert ["\n".join(" ".join(map(str, row)) for row in grid) for grid in found] == [
            task.solution
        ]


def meant(said: list, roles: tuple[bool, ...]) -> bool:
    word, *rest = said
    if word == "exactly":
        return sum(roles) == rest[0]
    if word in ("knight", "knave"):
        return roles[rest[0]] is (word == "knight")
    a, b = (meant(part, roles) for part in rest)
    return {"and": a and b, "or": a or b, "if": b or not a, "iff": a is b}[word]


@pytest.mark.parametrize("level", LEVELS)
def test_what_people_say_fits_one_assignment(level) -> None:
    for index in range(12):
        task = MADE["KnightsAndKnaves", level].task(index)
        people, says = task.reference["people"], task.reference["statements"]
        fitting = [
            roles
            for roles in product((True, False), repeat=len(people))
            if all(meant(what, roles) is roles[i] for _, i, what in says)
        ]
        assert len(fitting) == 1
        named = zip(people, fitting[0], strict=True)
        assert task.solution == "\n".join(f"{n}: {'knight' if k else 'knave'}" for n, k in named)
        assert sorted(i for _, i, _ in says) == list(range(len(people)))  # everybody speaks


def living(reference: dict) -> Iterator[dict[str, int]]:
    """All assignments that satisfy the clues, category by category."""
    houses = range(1, reference["houses"] + 1)
    relations = {
        "at": lambda a, b: a == b, "not_at": lambda a, b: a != b, "same": lambda a, b: a == b,
        "different": lambda a, b: a != b, "left": lambda a, b: a + 1 == b,
        "before": lambda a, b: a < b, "next": lambda a, b: a + 1 == b or b + 1 == a,
    }  # fmt: skip

    def known(at: dict, value):
        return value if isinstance(value, int) else at.get(value)

    def extend(at: dict[str, int], left: list[list[str]]) -> Iterator[dict[str, int]]:
        for kind, a, b in reference["clues"]:
            x, y = known(at, a), known(at, b)
            if x is not None and y is not None and not relations[kind](x, y):
                return
        if not left:
            yield at
            return
        for order in permutations(houses):
            yield from extend({**at, **dict(zip(left[0], order, strict=True))}, left[1:])

    yield from extend({}, list(reference["categories"].values()))


@pytest.mark.parametrize("level", [*LEVELS[:4], pytest.param(5, marks=pytest.mark.slow)])
def test_clues_leave_one_assignment_and_none_of_the_others(level) -> None:
    for index in range(4 if level < 5 else 1):
        task = MADE["Zebra", level].task(index)
        found = list(living(task.reference))
        assert len(found) == 1
        for value, house in found[0].items():
            line = task.solution.split("\n")[house - 1]
            assert value in line.partition(": ")[2].split(", ")
        # nor does the order in which the values are listed tell anything
        for name, values in task.reference["categories"].items():
            assert f"{name}: {', '.join(sorted(values))}" in task.text


# -- twenty-four -------------------------------------------------------------------------------


def reachable(values: tuple[float, ...]) -> bool:
    """Whether 24 can be made, by joining any two and rounding: no fractions, no memory."""
    if len(values) == 1:
        return abs(values[0] - 24) < 1e-6
    for i, j in permutations(range(len(values)), 2):
        rest = tuple(v for k, v in enumerate(values) if k not in (i, j))
        a, b = values[i], values[j]
        joined = [a - b] if i > j else [a + b, a * b, a - b]
        joined += [a / b] if abs(b) > 1e-9 else []
        if any(reachable((*rest, value)) for value in joined):
            return True
    return False


def test_what_can_be_made_is_found_and_what_cannot_is_not() -> None:
    for numbers in list(combinations_with_replacement(range(1, 14), 4))[::23]:
        ways, expression = solved(numbers)
        assert bool(ways) == bool(expression) == reachable(numbers), numbers
        if expression:
            reference = {"numbers": list(numbers), "target": 24}
            assert Countdown().verify(expression, reference).score == 1.0


def test_problems_that_need_a_fraction_are_solved() -> None:
    assert solved((3, 3, 8, 8))[1] == "8/(3-(8/3))"
    assert solved((1, 5, 5, 5))[1] == "5*(5-(1/5))"
    assert solved((1, 1, 1, 1)) == (0, "")


def test_a_problem_belongs_to_one_level() -> None:
    asked = [
        {tuple(MADE["TwentyFour", k].task(i).reference["numbers"]) for i in range(40)}
        for k in LEVELS
    ]
    for i, one in enumerate(asked):
        assert not any(one & other for other in asked[i + 1 :])
