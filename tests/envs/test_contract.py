"""What every registered environment holds to, whatever it asks."""

import gzip
import json
import math
import warnings

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.envs import Rows, check, make, make_group, specs

GSM8K = [
    {
        "question": f"Ann has {n} pens and buys {n}. How many?",
        "answer": f"{n}+{n}={2 * n}\n#### {2 * n:,}",
    }
    for n in (3, 700, 12)
]
HUMANEVAL = [
    {
        "task_id": f"HumanEval/{i}",
        "prompt": f'def {name}(a, b):\n    """{name} two numbers."""\n',
        "entry_point": name,
        "canonical_solution": f"    return a {sign} b\n",
        "test": f"def check(candidate):\n    assert candidate(6, 3) == {value}\n",
    }
    for i, (name, sign, value) in enumerate([("add", "+", 9), ("take", "-", 3)])
]
MBPP = [
    {
        "task_id": 11,
        "text": "Write a function to double a number.",
        "code": "def double(n):\r\n  return 2 * n",
        "test_setup_code": "",
        "test_list": ["assert double(2) == 4", "assert double(0) == 0"],
        "challenge_test_list": [],
    }
]
IFEVAL = [
    {
        "key": 7,
        "prompt": "Write of the sea in 2 bullet points such as * this. Do not use commas.",
        "instruction_id_list": ["detectable_format:number_bullet_lists", "punctuation:no_comma"],
        "kwargs": [{"num_bullets": 2.0, "keywords": None}, {}],
        "solution": "* The sea is wide.\n* It is salt.",
    },
    {
        "key": 8,
        "prompt": "Name a season. Wrap your reply in double quotation marks.",
        "instruction_id_list": ["startend:quotation"],
        "kwargs": [{}],
        "solution": '"Spring is the season I like."',
    },
]
ROWS = {
    "assay/GSM8K-v0": GSM8K,
    "assay/HumanEval-v0": HUMANEVAL,
    "assay/IFEval-v0": IFEVAL,
    "assay/MBPP-v0": MBPP,
}
BUILT_IN = [spec.id for spec in specs() if spec.id.startswith("assay/")]
NEEDS_SANDBOX = {"assay/CodeRepair-v0", "assay/HumanEval-v0", "assay/MBPP-v0"}


@pytest.fixture(scope="module")
def build(tmp_path_factory):
    """Make an environment by id; those over data get a small file in the public layout."""
    folder, made = tmp_path_factory.mktemp("data"), {}

    def build_one(id_, **kwargs):
        if id_ in ROWS:
            path = folder / f"{id_.replace('/', '-')}.jsonl.gz"
            with gzip.open(path, "wt") as file:
                file.writelines(json.dumps(row) + "\n" for row in ROWS[id_])
            kwargs["data"] = str(path)
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
    return [env.task(i) for i in range(env.source.size if env.source.size is not None else most)]


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
        kwargs = {"data": str(build(id_).data)} if id_ in ROWS else {}
        env = gym.make(id_, **kwargs)
        env.reset(seed=0)
        assert env.step("wrong, surely")[1] == 0.0
        env.close()
        vector = gym.make_vec(id_, num_envs=4, group_size=2, **kwargs)
        vector.reset(options={"tasks": [0, 0]})
        solution = vector.env.task(0).solution
        # A group is judged when all of it has ended, which a wrong turn need not do.
        other = "" if vector.env.max_turns == 1 else solution
        _, rewards, *_ = vector.step((solution, other, solution, other))
        np.testing.assert_array_equal(rewards, [1, bool(other), 1, bool(other)])
        vector.close()


@pytest.mark.parametrize("id_", sorted(set(BUILT_IN) - NEEDS_SANDBOX))
@settings(deadline=None, derandomize=True, max_examples=50)
@given(reply=st.text() | st.text("\\boxed{}0123456789<>/answerthink#+-*= \n"))
def test_no_reply_raises_or_costs_a_score(build, id_, reply) -> None:
    env = build(id_)
    env.reset(options={"task": 1})
    reward = env.step(reply)[1]
    assert not math.isnan(reward)


@pytest.mark.parametrize("id_", ["assay/Arithmetic-v0", "assay/Countdown-v0"])
def test_procedural_splits_are_disjoint_and_seeds_differ(build, id_) -> None:
    train, test = (build(id_, split=split) for split in ("train", "test"))
    assert not {train.task(i).text for i in range(500)} & {test.task(i).text for i in range(500)}
    other = build(id_, seed=1)
    assert sum(train.task(i).text == other.task(i).text for i in range(100)) < 5


@pytest.mark.parametrize("id_", ["assay/Arithmetic-v0", "assay/Countdown-v0", "assay/GSM8K-v0"])
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


def test_rows_keep_the_ids_of_their_data(build) -> None:
    assert isinstance(build("assay/MBPP-v0").source, Rows)
    assert build("assay/MBPP-v0").task(0).id == "MBPP/11"
    assert build("assay/HumanEval-v0").task(1).id == "HumanEval/1"
    assert build("assay/GSM8K-v0").task(1).reference == "1,400"


@pytest.mark.parametrize("answer", ["no marker", "#### many", "####", "1 #### 2 or 3"])
def test_golds_that_cannot_be_used_stop_the_load(tmp_path, answer) -> None:
    rows = [*GSM8K, {"question": "?", "answer": answer}]
    path = tmp_path / "bad.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    with pytest.raises(ValueError, match=r"row 3: the answer must end in '####' and the gold"):
        make("assay/GSM8K-v0", data=str(path))


def test_instructions_that_cannot_be_used_stop_the_load(tmp_path) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text(json.dumps({**IFEVAL[1], "kwargs": [{"num_bullets": 2}]}))
    with pytest.raises(ValueError, match=r"row 0: startend:quotation takes no argument 'num_bul"):
        make("assay/IFEval-v0", data=str(path))


@pytest.mark.parametrize(
    ("options", "reward"), [({}, 0.0), ({"partial": True}, 0.5), ({"mode": "loose"}, 1.0)]
)
def test_instructions_are_strict_unless_told(build, options, reward) -> None:
    env = build("assay/IFEval-v0", **options)
    env.reset(options={"task": 0})
    assert env.step("Sure, here you are:\n* The sea is wide.\n* It is salt.")[1] == reward


def test_tests_that_cannot_be_used_stop_the_load(tmp_path) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text(json.dumps({**MBPP[0], "test_list": ["assert double(2 == 4"]}))
    with pytest.raises(ValueError, match=r"row 0 \(MBPP/11\)"):
        make("assay/MBPP-v0", data=str(path))


@pytest.mark.parametrize(
    ("id_", "kwargs", "words"),
    [
        ("assay/Arithmetic-v0", {"digits": 0}, "digits must be from 1 to 100, got 0"),
        ("assay/Arithmetic-v0", {"operators": "^"}, "operators must be some of"),
        ("assay/Arithmetic-v0", {"split": "dev"}, "split must be 'train' or 'test', got 'dev'"),
        ("assay/Arithmetic-v0", {"digits": "abc"}, "digits must be a whole number, got 'abc'"),
        ("assay/Arithmetic-v0", {"digits": 1.5}, "digits must be a whole number, got 1.5"),
        ("assay/Arithmetic-v0", {"seed": True}, "seed must be a whole number, got True"),
        ("assay/Arithmetic-v0", {"think": "no"}, "think must be true or false, got 'no'"),
        ("assay/Arithmetic-v0", {"operators": 1}, "operators must be text, got 1"),
        ("assay/Countdown-v0", {"numbers": 1}, "numbers must be from 2 to 8, got 1"),
        ("assay/Countdown-v0", {"largest": 1}, "largest must be at least 2, got 1"),
    ],
)
def test_arguments_out_of_range_are_named(id_, kwargs, words) -> None:
    with pytest.raises(ValueError, match=words):
        make(id_, **kwargs)


def test_groups_of_programs_are_judged_in_one_batch(build) -> None:
    group = make_group("assay/MBPP-v0", prompts=1, group_size=3, data=build("assay/MBPP-v0").data)
    group.reset(seed=0)
    replies = ["def double(n): return n + n", "def double(n): return 4", "def d("]
    _, rewards, *_ = group.step(replies)
    group.close()
    assert list(rewards) == [1.0, 0.0, 0.0]
