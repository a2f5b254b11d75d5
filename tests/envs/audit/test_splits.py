"""The audit on splits: what overlaps is found, and what only looks alike is not."""

import pytest

from assay.envs import Generated, Source, Task, TextEnv, audit
from assay.envs.datasets.same_prompt import plain_prompt
from assay.verifiers import Exact

pytestmark = pytest.mark.slow


class Hundredth(Source):
    """A split of one's own: one task in a hundred of the test split is one of training."""

    size = None

    def __init__(self, split, seed):
        self.split, self.seed = split, seed

    def task(self, index):
        own = self.split if index % 100 else "train"
        return Task(f"Say {own} {self.seed} {index}.", "x", id=f"{self.split} {index}")


def number(rng):
    return Task(f"Say {rng.integers(3000)}.", "x")


def shouted(rng):
    """Two spellings of each prompt, which the hash takes for two."""
    n = int(rng.integers(3000))
    return Task(f"Say {n}!" if rng.integers(2) else f'SAY  "{n}".', "x")


def by_name(split, seed):
    """The name decides by which hash prompts are parted: here there are two."""
    return Generated(number, name=f"numbers, {split}", split=split, seed=seed)


def parted(make):
    return lambda split, seed: Generated(make, name="numbers", split=split, seed=seed)


@pytest.mark.parametrize(
    ("sibling", "prompts", "holds"),
    [
        (parted(number), 1000, True),
        (Hundredth, 1000, False),
        (Hundredth, 100, False),
        (by_name, 1000, False),
        (by_name, 100, False),
        (parted(shouted), 1000, False),  # too few of a hundred prompts would meet
    ],
)
def test_an_overlap_is_found(sibling, prompts, holds) -> None:
    env = TextEnv(sibling("train", 0), Exact())
    report = audit(env, tasks=2, checks=["splits"], sibling=sibling, prompts=prompts)
    (finding,) = report.findings
    assert finding.holds is holds
    assert {failure.found for failure in finding.failures} <= {"is in both splits"}


def test_an_id_of_two_tasks_is_found_in_either_split() -> None:
    def sibling(split, seed):
        def make(rng):
            return Task(f"Say {rng.integers(10**6)}.", "x", id="one" if split == "test" else "")

        return Generated(make, name="numbers", split=split, seed=seed)

    report = audit(TextEnv(sibling("train", 0), Exact()), checks=["splits"], sibling=sibling)
    assert {failure.found for failure in report.findings[0].failures} == {"names two tasks"}


def test_a_split_by_hash_is_compared_for_as_many_draws() -> None:
    made = []

    def make(rng):
        made.append(1)
        return Task(f"Say {rng.integers(10**9)}.", "x")

    report = audit(TextEnv(parted(make)("train", 0), Exact()), tasks=1, checks=["splits"])
    assert report.findings[0].cases == 1100
    assert len(made) < 3000  # of a thousand tasks of each split it would be fifteen thousand


@pytest.mark.parametrize(
    ("one", "two", "same"),
    [
        ("Say 'apple'!", "say  apple.", True),
        ("What is $x$ (in m)?", "what is x in m", True),
        ("#..S..#\n#.G.###", "#..S..#\n#..G###", False),  # a maze
        ("#.#.S#", "#.##S#", False),
        ("-5 + 3", "5 + 3", False),
        ("x > 3", "x < 3", False),
        ("0.5", "05", False),
        ("How many\u200b eggs?", "HOW MANY eggs", True),
        ("un caf\u00e9", "un cafe\u0301", True),
    ],
)
def test_spelling_makes_no_other_prompt_and_signs_do(one, two, same) -> None:
    assert (plain_prompt(one) == plain_prompt(two)) is same
