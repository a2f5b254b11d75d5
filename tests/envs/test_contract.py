"""What every registered environment holds to, whatever it asks."""

import math
import warnings

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.envs import arguments, check, make, specs
from assay.envs.datasets.library import LIBRARY

pytestmark = pytest.mark.slow

OWN_DATA_ONLY = {"assay/Harbor-v0"}  # no sample: a task is a folder with an image
BUILT_IN = [
    spec.id for spec in specs() if spec.id.startswith("assay/") and spec.id not in OWN_DATA_ONLY
]
OVER_DATA = {f"assay/{name}-v1" for name in LIBRARY}
NEEDS_SANDBOX = {spec.id for spec in specs() if "a sandbox" in spec.needs}
THINKING = {spec.id for spec in specs() if "think" in arguments(spec.id)}


@pytest.fixture(scope="module")
def build():
    """Make an environment by id; those over data have their sample."""
    made = {}

    def build_one(id_, **kwargs):
        if id_ in OVER_DATA:
            kwargs["data"] = "sample"
        key = (id_, *sorted(kwargs.items()))
        if key not in made:
            with warnings.catch_warnings():
                warnings.simplefilter(
                    "ignore"
                )  # without Docker the sandbox says so; not tested here
                made[key] = make(id_, **kwargs)
        return made[key]

    yield build_one
    for env in made.values():
        env.close()


def some_tasks(env, most=20):
    size = env.source.size
    return [env.task(i) for i in range(most if size is None else min(most, size))]


@pytest.mark.parametrize("id_", BUILT_IN)
@pytest.mark.filterwarnings("ignore::UserWarning")
class TestContract:
    """Shared by all."""

    def test_it_holds_to_the_contract(self, build, id_) -> None:
        check(build(id_))

    def test_every_task_has_a_solution_and_it_wins(self, build, id_) -> None:
        env = build(id_)
        tasks = some_tasks(env)
        assert all(task.solution for task in tasks)
        if env.max_turns > 1:  # the contract tries those of one turn
            told = [t.solution for t in tasks], [t.reference for t in tasks]
            assert {v.score for v in env.rubric.verify_many(*told)} == {1.0}

    def test_it_is_made_by_gymnasium_alone_and_in_vectors(self, build, id_) -> None:
        kwargs = {"data": "sample"} if id_ in OVER_DATA else {}
        env = gym.make(id_, **kwargs)
        env.reset(seed=0)
        assert env.step("wrong, surely")[1] == 0.0
        env.close()
        vector = gym.make_vec(id_, num_envs=4, group_size=2, **kwargs)
        vector.reset(options={"tasks": [0, 0]})
        solution = vector.env.task(0).solution
        earned = np.zeros(4)
        for _ in range(vector.env.max_turns):  # a group is judged when all its copies are done
            _, rewards, terminated, truncated, _ = vector.step((solution, "", solution, ""))
            earned += rewards
            if (terminated | truncated).all():
                break
        np.testing.assert_array_equal(earned, [1, 0, 1, 0])
        vector.close()


@pytest.mark.parametrize("id_", sorted(set(BUILT_IN) - NEEDS_SANDBOX))
@settings(deadline=None, derandomize=True, max_examples=50)
@given(reply=st.text() | st.text("\\boxed{}0123456789<>/answerthink#+-*= \n"))
def test_no_reply_raises_or_costs_a_score(build, id_, reply) -> None:
    env = build(id_)
    env.reset(options={"task": 1})
    reward = env.step(reply)[1]
    assert not math.isnan(reward)


@pytest.mark.parametrize(
    "id_", ["assay/Arithmetic-v1", "assay/Countdown-v1", *sorted(OVER_DATA & THINKING)]
)
def test_format_is_paid_beside_accuracy_and_only_with_it(build, id_) -> None:
    env = build(id_, think=True)
    task = env.task(0)
    answer = task.solution.partition("<answer>")[2].partition("</answer>")[0]
    bare = env.rubric.verify(f"<answer>{answer}</answer>", task.reference)
    wrong = env.rubric.verify("<think>hm</think><answer>-1</answer>", task.reference)
    full = env.rubric.verify(task.solution, task.reference)
    assert full.score == 1.0
    assert full.parts == {"accuracy": 1.0, "format": 1.0}
    assert bare.score == pytest.approx(1 / 1.2)
    assert wrong.score == 0.0
    assert wrong.parts["format"] == 1.0


@pytest.mark.parametrize(
    ("id_", "kwargs", "words"),
    [
        ("assay/Arithmetic-v1", {"digits": 0}, "digits must be from 1 to 100, got 0"),
        ("assay/Arithmetic-v1", {"operators": "^"}, "operators must be some of"),
        ("assay/Arithmetic-v1", {"split": "dev"}, "split must be 'train' or 'test', got 'dev'"),
        ("assay/Arithmetic-v1", {"digits": "abc"}, "digits must be a whole number, got 'abc'"),
        ("assay/Arithmetic-v1", {"digits": 1.5}, "digits must be a whole number, got 1.5"),
        ("assay/Arithmetic-v1", {"seed": True}, "seed must be a whole number, got True"),
        ("assay/Arithmetic-v1", {"think": "no"}, "think must be true or false, got 'no'"),
        ("assay/Arithmetic-v1", {"operators": 1}, "operators must be text, got 1"),
        ("assay/Countdown-v1", {"numbers": 1}, "numbers must be from 2 to 8, got 1"),
        ("assay/Countdown-v1", {"largest": 1}, "largest must be from 2 to 999,999,999, got 1"),
    ],
)
def test_arguments_out_of_range_are_named(id_, kwargs, words) -> None:
    with pytest.raises(ValueError, match=words):
        make(id_, **kwargs)


def test_arguments_may_be_numbers_of_numpy() -> None:
    plain, numpy = (
        make("assay/Arithmetic-v1", seed=3),
        make("assay/Arithmetic-v1", seed=np.int64(3)),
    )
    assert numpy.task(np.int64(0)) == plain.task(0)
    with pytest.raises(TypeError, match=r"task 1\.0 cannot be interpreted as an integer: give one"):
        plain.reset(options={"task": 1.0})
    for index in (1.0, "1", None):
        with pytest.raises(TypeError, match="cannot be interpreted as an integer"):
            plain.task(index)
