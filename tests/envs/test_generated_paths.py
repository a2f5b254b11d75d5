"""Procedural ways, orders and colourings: every task can be solved, and only by its own answer."""

import json
from importlib import import_module
from itertools import permutations

import pytest

from assay.envs import PuzzleEnv, make
from assay.envs.puzzles import PUZZLES

NAMES = [
    name
    for name, (module, _) in PUZZLES.items()
    for kind in [getattr(import_module(f"assay.envs.puzzles.{module}"), name)]
    if issubclass(kind, PuzzleEnv) and kind.verifier().many_answers
]


@pytest.mark.parametrize("level", range(1, 6))
@pytest.mark.parametrize("name", NAMES)
def test_each_task_of_each_level_is_won_by_its_answer_and_lost_with_it_cut_short(
    name, level
) -> None:
    env = make(f"assay/{name}-v1", level=level)
    tasks = [env.task(i) for i in range(12)]
    for task in tasks:
        assert env.rubric.check_reference(task.reference) is None
        assert env.rubric.verify(task.solution, task.reference).score == 1.0
        cut = task.solution[: len(task.solution) * 3 // 4].rstrip(" ,")
        assert env.rubric.verify(cut, task.reference).score == 0.0
    assert len({task.text for task in tasks}) >= len(tasks) - 1  # of Hanoi's first there are 486


@pytest.mark.parametrize("name", NAMES)
def test_answers_to_other_tasks_lose(name) -> None:
    env = make(f"assay/{name}-v1", level=5)
    tasks = [env.task(i) for i in range(12)]
    pairs = [(one.solution, other.reference) for one, other in permutations(tasks, 2)]
    won = sum(env.rubric.verify(*pair).score for pair in pairs)
    # the same steps may measure other amounts, the same values satisfy other clauses
    assert won <= (3 if name in ("WaterJugs", "Satisfiability") else 0)


@pytest.mark.parametrize("name", NAMES)
def test_levels_grow(name) -> None:
    lengths = []
    for level in range(1, 6):
        env = make(f"assay/{name}-v1", level=level)
        lengths.append(sum(len(env.task(i).text) for i in range(8)))
    assert lengths[0] < lengths[2] < lengths[4]
    with pytest.raises(ValueError, match="level must be from 1 to 5, got 6"):
        make(f"assay/{name}-v1", level=6)


@pytest.mark.parametrize("name", NAMES)
def test_a_reference_is_plain_and_belongs_to_one_task(name) -> None:
    for level in range(1, 6):
        env = make(f"assay/{name}-v1", level=level)
        one, again = env.task(3), env.task(3)
        assert json.loads(json.dumps(one.reference)) == one.reference == again.reference
        held = set(map(id, containers(one.reference)))
        assert held.isdisjoint(map(id, containers(again.reference)))
        assert {type(c) for c in containers(one.reference)} <= {list, dict}


def containers(value):
    """All lists, dicts and other holders inside a value."""
    if isinstance(value, dict | list | tuple):
        yield value
        for item in value.values() if isinstance(value, dict) else value:
            yield from containers(item)
