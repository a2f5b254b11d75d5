"""Samplers: seeded, told of outcomes, resumable; pass rates by hand; draws against their law."""

import json
import math

import numpy as np
import pytest

from assay.envs import (
    DataError,
    EasyToHard,
    Episode,
    EpisodeGroup,
    Generated,
    Mixed,
    PassRates,
    Prioritised,
    Rows,
    TargetRate,
    Task,
    Uniform,
    levels,
    make,
)
from assay.envs.curriculum.difficulty import difficulty
from assay.envs.curriculum.samplers import draw
from assay.verifiers import Status, Verdict

RIGHT, WRONG = Verdict.correct("right"), Verdict.wrong("wrong")
FAULT = Verdict.fault(Status.SANDBOX_ERROR, "broken")


def rows(count: int, name: str = "") -> Rows:
    return Rows([Task("?", "1", id=f"{name}{i}", metadata={"level": i}) for i in range(count)])


def group(task: Task, *verdicts: Verdict) -> EpisodeGroup:
    return EpisodeGroup(task, tuple(Episode(task.id, (), v) for v in verdicts))


def told(sampler, index: int, passed: int, failed: int) -> None:
    task = sampler.source.task(index)
    sampler.update([group(task, *[RIGHT] * passed, *[WRONG] * failed)])


# -- pass rates --------------------------------------------------------------------------------


def test_a_pass_rate_is_the_mean_of_its_posterior() -> None:
    rates = PassRates(discount=1.0)
    assert rates.mean("a") == 0.5
    rates.record("a", 3, 5)
    assert rates.posterior("a") == (4.0, 6.0)
    rates.record("a", 0, 10)
    assert rates.mean("a") == 4 / 20


def test_what_is_older_weighs_less() -> None:
    rates = PassRates(prior=(1, 2), discount=0.5)
    rates.record("a", 0, 8)
    rates.record("a", 8, 0)
    assert rates.posterior("a") == (9.0, 6.0)
    rates.record("a", 0, 0)  # nothing was seen, so nothing is forgotten
    assert rates.posterior("a") == (9.0, 6.0)


def test_a_pass_is_a_status_and_a_fault_of_ours_is_nothing() -> None:
    sampler = Prioritised(rows(3), rates=PassRates(discount=1.0))
    nearly = Verdict.wrong("nearly", score=0.9)
    sampler.update([group(sampler.source.task(1), RIGHT, nearly, FAULT, FAULT)])
    assert sampler.rates.posterior("1") == (2.0, 2.0)


def test_pass_rates_are_kept_from_run_to_run(tmp_path) -> None:
    first = TargetRate(rows(5))
    told(first, 2, 1, 7)
    first.rates.save(tmp_path / "new" / "rates.json")
    assert [p.name for p in (tmp_path / "new").iterdir()] == ["rates.json"]
    kept = PassRates.load(tmp_path / "new" / "rates.json")
    assert kept.state_dict() == first.rates.state_dict()
    # Another order of rows, and other rows: what is known goes by the id.
    second = TargetRate(Rows([Task("?", "1", id=i) for i in ("new", "2", "0")]), rates=kept)
    assert second.rates.mean("2") == 0.2
    assert second._current[1] == first._current[2] != second._current[0] == first._current[0]


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", "null", '{"prior": [1, 1], "discount": 0.5, "tasks": {"a": [1]}}',
     '{"prior": [0, 1], "discount": 0.5, "tasks": {}}', "[" * 99_999,
     '{"prior": [1, 1], "discount": 0.5, "tasks": {"a": [-1, 2]}}'],
)  # fmt: skip
def test_a_file_that_holds_no_rates_is_refused(tmp_path, text) -> None:
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(DataError, match="holds no pass rates"):
        PassRates.load(tmp_path / "a.json")


def test_there_is_no_file_of_rates(tmp_path) -> None:
    with pytest.raises(DataError, match=r"begin with PassRates\(\)"):
        PassRates.load(tmp_path / "none.json")


# -- difficulty --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ({"level": 3}, 3.0),
        ({"level": "Level 5"}, 5.0),
        ({"difficulty": "introductory"}, 1.0),
        ({"difficulty": "VERY_HARD", "level": 0}, 4.0),
        ({"difficulty": 0.25}, 0.25),
        ({"difficulty": "5.5"}, 5.5),
        ({"difficulty": None, "level": 2}, 2.0),
    ],
)
def test_difficulty_is_read_from_metadata(metadata, expected) -> None:
    assert difficulty(Task("?", "1", metadata=metadata)) == expected


@pytest.mark.parametrize("metadata", [{}, {"level": "?"}, {"level": True}, {"level": math.nan}])
def test_a_task_without_difficulty_is_named(metadata) -> None:
    with pytest.raises(ValueError, match="task 'x' has no difficulty"):
        difficulty(Task("?", "1", id="x", metadata=metadata))


# -- draws -------------------------------------------------------------------------------------


def test_a_draw_is_where_the_running_sum_passes_the_share() -> None:
    weights = np.array([0.0, 1.0, 0.0, 3.0, 0.0])
    assert draw(weights, np.array([0.0, 0.24, 0.26]), again=True) == [1, 1, 3]
    assert draw(weights, np.array([1 - 2**-53]), again=True) == [3]
    assert draw(weights, np.array([0.9, 0.9, 0.0]), again=False) == [3, 1, 1]


def test_a_step_draws_different_tasks_until_there_are_no_more() -> None:
    sampler = Prioritised(rows(5))
    assert sorted(sampler.indices(1, 5)) == [0, 1, 2, 3, 4]
    twice = sampler.indices(1, 12)
    assert sorted(twice[:5]) == sorted(twice[5:10]) == [0, 1, 2, 3, 4]
    assert sampler.indices(1, 5) == sampler.indices(1, 5) != sampler.indices(2, 5)


def share_of(sampler, index: int) -> float:
    """How often a task is drawn, in five thousand draws of one each."""
    shares = np.random.default_rng(0).random(5000)
    return draw(sampler._current, shares, again=True).count(index) / len(shares)


def test_priority_is_the_expected_variance_of_the_outcome() -> None:
    """Posteriors (5, 5), (1, 9) and (1, 1): 25/110, 9/110 and 1/6 to draw in proportion to."""
    sampler = Prioritised(rows(3), rates=PassRates(discount=1.0))
    told(sampler, 0, 4, 4)
    told(sampler, 1, 0, 8)
    weights = [25 / 110, 9 / 110, 1 / 6]
    for index, weight in enumerate(weights):
        assert sampler._current[index] == pytest.approx(4 * weight)
        assert share_of(sampler, index) == pytest.approx(weight / sum(weights), abs=0.03)
    even = Prioritised(rows(3), rates=sampler.rates, exponent=0.0)
    assert list(even._current) == [1.0, 1.0, 1.0]


def test_a_task_that_is_always_solved_is_still_tried_now_and_then() -> None:
    sampler = Prioritised(rows(2), rates=PassRates(discount=1.0), floor=0.1)
    told(sampler, 0, 200, 0)
    assert share_of(sampler, 0) == pytest.approx(0.1 / (0.1 + 4 / 6), abs=0.03)


def test_the_target_is_preferred_and_what_is_not_known_is_tried() -> None:
    sampler = TargetRate(rows(4), target=0.8, rates=PassRates(discount=1.0))
    for index, passed in enumerate([80, 50, 10]):
        told(sampler, index, passed, 100 - passed)
    near, off, far, unknown = sampler._current
    assert near > unknown > off > far
    assert far == sampler.floor


def test_the_window_is_a_gaussian_averaged_over_the_posterior() -> None:
    """Against its average over draws from a normal of the posterior's mean and variance."""
    sampler = TargetRate(rows(1), target=0.4, width=0.2)
    alpha, beta = 30.0, 20.0
    mean, variance = 0.6, 0.6 * 0.4 / 51
    draws = np.random.default_rng(0).normal(mean, variance**0.5, 200_000)
    expected = np.exp(-((draws - 0.4) ** 2) / (2 * 0.2**2)).mean()
    found = sampler.weight(np.array([alpha]), np.array([beta]))[0]
    assert found == pytest.approx(expected, abs=2e-3)


# -- easy to hard ------------------------------------------------------------------------------


def test_easy_tasks_come_first_and_all_come_in_the_end() -> None:
    source = Rows([Task("?", "1", metadata={"level": 99 - i}) for i in range(100)])
    sampler = EasyToHard(source, steps=10, start=0.1)
    assert sampler.competence(1) == pytest.approx(0.1)
    assert sampler.competence(6) == pytest.approx(math.sqrt(5 * 0.99 / 10 + 0.01))
    assert sampler.competence(11) == sampler.competence(99) == 1.0
    assert sorted(sampler.indices(1, 10)) == list(range(90, 100))  # the ten easiest
    assert min(sampler.indices(2, 10)) >= 66  # c(2) is 0.33
    assert {i for step in range(11, 60) for i in sampler.indices(step, 10)} == set(range(100))
    assert all(len(set(sampler.indices(step, 40))) == 40 for step in (1, 5, 20))
    assert sorted(sampler.indices(30, 200)) == sorted([*range(100)] * 2)


def test_difficulty_may_be_given_in_numbers() -> None:
    rates = PassRates(discount=1.0)
    rates.record("2", 9, 0)
    source = rows(3)
    numbers = [1 - rates.mean(task.id) for task in source.tasks]
    sampler = EasyToHard(source, steps=9, start=0.1, difficulty=numbers)
    assert sampler.indices(1, 1) == [2]
    with pytest.raises(ValueError, match="difficulty must be 3 finite numbers"):
        EasyToHard(source, steps=9, difficulty=[1.0, math.nan, 2.0])


# -- mixtures ----------------------------------------------------------------------------------


def test_levels_are_one_environment() -> None:
    env = levels("assay/Sudoku-v1", level=[1, 2, 3], weights=[0, 1, 3])
    counts = {"level=1": 0, "level=2": 0, "level=3": 0}
    for position in range(400):
        task = env.task(env.source.schedule(position, seed=1))
        counts[task.metadata["source"]] += 1
    assert counts["level=1"] == 0
    assert 60 <= counts["level=2"] <= 140
    task = env.task(7)
    assert task.text == make("assay/Sudoku-v1", level=2).task(2).text
    assert task.id == "level=2/train-0-2"
    assert env.rubric.verify(task.solution, task.reference).score == 1.0
    env.reset(seed=3)
    assert env.step("no")[1] == 0.0


def test_a_mixture_of_rows_counts_through() -> None:
    mixed = Mixed({"a": rows(2), "b": rows(3)})
    assert mixed.size == 5
    assert [mixed.task(i).id for i in range(5)] == ["a/0", "a/1", "b/0", "b/1", "b/2"]
    assert sorted(mixed.schedule(i, 0) for i in range(5)) == [0, 1, 2, 3, 4]
    weighted = Mixed({"a": rows(2), "b": rows(3)}, [1, 0])
    assert {weighted.schedule(i, 0) for i in range(50)} == {0, 1}
    assert all(mixed.index_of(*mixed.place(i)) == i for i in range(5))
    sampler = Prioritised(mixed)
    assert sampler.keys == [mixed.task(i).id for i in range(5)]
    told(sampler, 3, 8, 0)
    assert sampler.rates.mean("b/1") == 0.9
    with pytest.raises(IndexError, match="task must be from 0 to 4, got 5"):
        mixed.task(5)


def test_levels_that_are_always_solved_give_way() -> None:
    env = levels("assay/Countdown-v1", numbers=[2, 3, 4])
    sampler = Prioritised(env.source, seed=4)
    solve = {"numbers=2": 1.0, "numbers=3": 0.5, "numbers=4": 0.0}
    rng = np.random.default_rng(0)
    for step in range(1, 9):
        found = []
        for index in sampler.indices(step, 8):
            task = env.task(index)
            passes = rng.random(8) < solve[task.metadata["source"]]
            found.append(group(task, *[RIGHT if p else WRONG for p in passes]))
        sampler.update(found)
    drawn = [env.task(i).metadata["source"] for i in sampler.indices(99, 400)]
    assert drawn.count("numbers=3") > 200
    assert len({i for step in range(1, 9) for i in sampler.indices(step, 8)}) == 64  # no task twice


ENDLESS = Generated(lambda rng: Task(str(rng.integers(9**9)), "1"), name="endless")


@pytest.mark.parametrize(
    ("make_it", "words"),
    [
        (lambda: Mixed({}), "at least one source"),
        (lambda: Mixed({"a": rows(1), "b": ENDLESS}), r"must all be endless or all end"),
        (lambda: Mixed({"a": ENDLESS}, [0.0]), "weights must be 1 finite numbers"),
        (lambda: Mixed({"a": ENDLESS}, [1, 1]), "weights must be 1 finite numbers"),
        (lambda: levels("assay/Hanoi-v1", level=2), "exactly one argument must be a list"),
        (lambda: levels("assay/Hanoi-v1", level=[2, 2]), "must not name a value twice"),
        (lambda: levels("assay/Hanoi-v1", level=[]), "one value or more"),
        (lambda: levels("assay/Hanoi-v1", think=[True, False]), "judges differently"),
        (lambda: Prioritised(ENDLESS), "these never end: give a mixture"),
        (lambda: Prioritised(rows(1), floor=0), "floor must be above 0"),
        (lambda: Prioritised(rows(1), exponent=-1), "exponent must be at least 0"),
        (lambda: TargetRate(rows(1), target=1), "target must be in"),
        (lambda: EasyToHard(rows(1), steps=0), "steps must be at least 1"),
        (lambda: EasyToHard(Rows([Task("?", "1")]), steps=2), "has no difficulty"),
        (lambda: Uniform(rows(1)).indices(0, 1), "step and groups must be at least 1"),
        (lambda: PassRates(prior=(0, 1)), "prior must be"),
        (lambda: PassRates(discount=0), "discount must be"),
        (lambda: PassRates().record("a", -1, 0), "counts must be at least 0"),
        (lambda: PassRates().record("a", float("nan"), 0), "counts must be at least 0 and finite"),
        (
            lambda: Prioritised(rows(1)).update([group(Task("?", "1", id="9"), RIGHT)]),
            "no task of this sampler is called '9'",
        ),
    ],
)
def test_arguments_out_of_range_are_named(make_it, words) -> None:
    with pytest.raises(ValueError, match=words):
        make_it()


# -- seeds and resuming ------------------------------------------------------------------------

SAMPLERS = {
    "uniform": lambda seed: Uniform(rows(40), seed=seed),
    "easy to hard": lambda seed: EasyToHard(rows(40), steps=5, seed=seed),
    "target": lambda seed: TargetRate(rows(40), target=0.6, seed=seed),
    "prioritised": lambda seed: Prioritised(rows(40), exponent=2.0, seed=seed),
    "levels": lambda seed: Prioritised(LEVELS.source, seed=seed),
}
LEVELS = levels("assay/Countdown-v1", numbers=[2, 3])


def run(sampler, first: int, last: int) -> list[list[int]]:
    """Steps whose outcomes depend on the step and the task alone."""
    chosen = []
    for step in range(first, last + 1):
        indices = sampler.indices(step, 6)
        chosen.append(indices)
        passes = [(i * 7 + step) % 5 for i in indices]
        sampler.update(
            [
                group(sampler.source.task(i), *[RIGHT] * p, *[WRONG] * (4 - p))
                for i, p in zip(indices, passes, strict=True)
            ]
        )
    return chosen


@pytest.mark.parametrize("name", SAMPLERS)
def test_a_resumed_run_makes_the_choices_of_the_unbroken_one(name) -> None:
    whole = run(SAMPLERS[name](3), 1, 20)
    assert whole == run(SAMPLERS[name](3), 1, 20)
    assert whole != run(SAMPLERS[name](4), 1, 20)
    before = SAMPLERS[name](3)
    run(before, 1, 11)
    state = json.loads(json.dumps(before.state_dict()))
    after = SAMPLERS[name](3)
    run(after, 1, 2)  # what it knew is forgotten
    after.load_state_dict(state)
    assert run(after, 12, 20) == whole[11:]


def test_a_state_of_another_sampler_is_refused() -> None:
    state = Prioritised(rows(3)).state_dict()
    for other in (Prioritised(rows(3), seed=1), Prioritised(rows(4)), TargetRate(rows(3)),
                  Prioritised(rows(3), exponent=2.0)):  # fmt: skip
        with pytest.raises(ValueError, match="the state is of another sampler"):
            other.load_state_dict(state)


def test_without_a_sampler_the_order_is_uniforms() -> None:
    source = rows(10)
    chosen = [i for step in (1, 2, 3) for i in Uniform(source, seed=7).indices(step, 4)]
    assert chosen == [source.schedule(i, 7) for i in range(12)]
    assert sorted(chosen[:10]) == list(range(10))


def test_many_tasks_cost_a_step_little() -> None:
    """The tree answers; nothing of the size of the data is gone through."""

    class Counted(Rows):
        asked = 0

        def task(self, index):
            type(self).asked += 1
            return super().task(index)

    source = Counted(rows(5_000).tasks)
    sampler = Prioritised(source)
    for step in range(1, 50):
        told(sampler, sampler.indices(step, 64)[0], 1, 1)
    assert Counted.asked == 49


def test_a_batch_with_a_task_of_others_changes_nothing() -> None:
    sampler = Prioritised(rows(4))
    before = sampler.state_dict()
    strange = Task("?", "1", id="nobody's")
    with pytest.raises(ValueError, match="no task of this sampler"):
        sampler.update([group(sampler.source.task(0), RIGHT), group(strange, RIGHT)])
    assert sampler.state_dict() == before
