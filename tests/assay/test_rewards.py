"""Rewards over a data set's own columns, as TRL calls them."""

from __future__ import annotations

import json
import pickle
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay import Format
from assay.rewards import accuracy_reward, code_reward, think_format_reward

SOLUTIONS = {
    r"\frac{3}{4}": ("0.75", "0.7"),
    "$x^2 + 1$": (r"1 + x^2", "x^2"),
    r"We add, so the sum is $\boxed{17}$.": ("17", "18"),
    r"First \boxed{2}, and twice that is \boxed{4}.": ("4", "2"),
    "Half of 48 is 24.\n#### 1,072": ("1072", "24"),
    "Therefore the final answer is $96$. I hope it is correct.": ("96", "69"),
    "No parity argument helps.\n\nThe answer is 5.": ("5", "6"),
    "Helsinki": ("Helsinki", "Oslo"),
    "<think>It may be 3.</think> <answer>8</answer>": ("8", "3"),
}


@pytest.mark.parametrize("solution", SOLUTIONS)
def test_the_answer_of_a_solution_is_what_is_paid(solution) -> None:
    right, wrong = (rf"Thus \boxed{{{text}}}." for text in SOLUTIONS[solution])
    assert accuracy_reward([right, wrong], [solution] * 2) == [1.0, 0.0]
    assert accuracy_reward(completions=[right], answer=[solution], prompts=["?"]) == [1.0]
    assert accuracy_reward([right] * 2, [None, solution], answer=[solution, None]) == [1.0, 1.0]


@pytest.mark.parametrize(
    "solution",
    [
        "", None, float("nan"), {"answer": "1"}, r"\boxed{}", "By induction.\nSo it holds.",
        "word " * 60, r"\frac{",
    ],
)  # fmt: skip
def test_a_solution_without_an_answer_is_no_score(solution) -> None:
    assert accuracy_reward([r"\boxed{1}", "nan"], [solution] * 2) == [None, None]


def test_any_of_several_answers_wins_and_a_row_may_have_a_tolerance() -> None:
    replies = [r"\boxed{6}", r"\boxed{7}", r"\boxed{8}"]
    assert accuracy_reward(replies, [["6", r"so \boxed{7}"]] * 3) == [1.0, 1.0, 0.0]
    tolerances = [0.01, 0.001, None, float("nan")]
    found = accuracy_reward([r"\boxed{2.72}"] * 4, ["2.718"] * 4, tolerance=tolerances)
    assert found == [1.0, 0.0, 0.0, 0.0]


@pytest.mark.bwrap
def test_columns_of_datasets_are_read_as_trl_gives_them() -> None:
    """It gives a float32 of 0.1 as 0.10000000149011612, which no reply equals."""
    datasets = pytest.importorskip("datasets")
    types = datasets.Features(
        {"answer": datasets.Value("float32"), "tests": datasets.Value("string")}
    )
    rows = {"answer": [0.1, 33.3], "tests": ["assert f() == 1", "assert f() == 2"]}
    rows = datasets.Dataset.from_dict(rows, features=types)
    assert accuracy_reward([r"\boxed{0.1}"] * 2, answer=rows["answer"]) == [1.0, 0.0]
    program = "```python\ndef f(): return 2\n```"
    assert code_reward([program] * 2, tests=rows["tests"]) == [0.0, 1.0]


def test_messages_are_judged_by_the_last_turn_of_the_policy() -> None:
    turns = [
        {"role": "assistant", "content": r"\boxed{3}"},
        {"role": "user", "content": r"Sure? \boxed{4}"},
        {"role": "assistant", "content": [{"type": "text", "text": r"No: \boxed{5}"}]},
    ]
    assert accuracy_reward([turns, turns], [5, 4]) == [1.0, 0.0]


def test_statuses_go_to_the_log_of_the_trainer() -> None:
    extra, metrics = {}, {}
    accuracy_reward(
        [r"\boxed{1}"] * 4,
        ["1", "2", "", "2"],
        log_extra=extra.__setitem__,
        log_metric=metrics.__setitem__,
    )
    assert extra["status"] == ["correct", "incorrect", "bad_gold", "incorrect"]
    assert len(extra["reason"]) == 4
    assert metrics["status/incorrect"] == 0.5


def test_a_data_set_without_a_known_answer_is_an_error() -> None:
    with pytest.raises(ValueError, match="'solution' or 'answer'"):
        accuracy_reward(["1"], question=["?"])


@pytest.mark.bwrap
def test_programs_are_judged_by_the_tests_of_their_row() -> None:
    rows = [
        {"verification_info": json.dumps({"test_cases": [{"input": "3", "output": "9"}]})},
        {"test_list": ["assert square(5) == 25"]},
        {"verification_info": "{"},
    ]
    columns = {name: [row.get(name) for row in rows] for row in rows for name in row}
    programs = ["print(int(input()) ** 2)", "def square(n): return n * 5", "print()"]
    completions = [f"```python\n{program}\n```" for program in programs]
    extra = {}
    given_ = {**columns, "prompts": ["?"] * 3, "completion_ids": [[1]] * 3, "trainer_state": None}
    assert code_reward(completions, log_extra=extra.__setitem__, **given_) == [1.0, 1.0, None]
    assert "'verification_info'" in extra["reason"][2]
    wrong = ["print(3)", "def square(n): return 24", "print()"]
    assert code_reward(wrong, **given_) == [0.0, 0.0, None]


VALID = [
    "<think>This is my reasoning.</think>This is my answer.",
    "<think>\nThis is\nmy reasoning.\n</think>\nThis is my answer.",
    "<think>\nThis is <some tag> my reasoning.</think>\nThis is my answer.",
    "<think></think>\nThis is my answer.",
]
PIECES = st.sampled_from(["<think>", "</think>", "<answer>", "a", "\n", " ", "</think", "<Think>"])


@pytest.mark.parametrize("reply", VALID)
def test_a_thought_that_is_closed_is_paid_for_its_form(reply) -> None:
    assert think_format_reward([reply, " " + reply, reply[7:], reply + "<think>"]) == [1, 0, 0, 0]


@given(st.lists(st.lists(PIECES, max_size=8).map("".join), min_size=1, max_size=8))
@settings(max_examples=200, deadline=None, derandomize=True)
def test_the_form_is_judged_as_trl_judges_it(replies) -> None:
    rewards = pytest.importorskip("trl.rewards")
    messages = [[{"role": "assistant", "content": reply}] for reply in replies]
    assert think_format_reward(messages) == rewards.think_format_reward(messages)


def test_format_of_one_tag_is_stricter_than_the_form() -> None:
    form = Format(tags=("think",))
    assert [form.verify(reply, None).score for reply in VALID] == [1.0, 1.0, 1.0, 0.0]


@pytest.mark.parametrize("reward", [accuracy_reward, code_reward, think_format_reward])
def test_rewards_move_to_other_processes(reward) -> None:
    assert pickle.loads(pickle.dumps(reward)) is reward


@pytest.mark.filterwarnings("ignore")
def test_the_script_of_trl_trains_on_the_rewards_by_import_path(
    tmp_path, monkeypatch, capfd
) -> None:
    script = pytest.importorskip("trl.scripts.grpo")
    from assay.grpo import tiny_model

    model = tiny_model(tmp_path / "model", hidden_size=16, layers=1, heads=1, intermediate_size=16)
    data = tmp_path / "data"
    data.mkdir()
    rows = [{"prompt": f"{n} + 1 =", "solution": rf"\boxed{{{n + 1}}}"} for n in range(4)]
    (data / "train.jsonl").write_text("\n".join(map(json.dumps, rows)))
    names = ["accuracy_reward", "think_format_reward"]
    flags = f"""--model_name_or_path {model} --dataset_name {data} --output_dir {tmp_path / "out"}
        --reward_funcs {" ".join(f"assay.rewards.{name}" for name in names)}
        --max_steps 1 --per_device_train_batch_size 2 --num_generations 2 --max_completion_length 2
        --use_cpu true --bf16 false --dtype float32 --report_to none --save_strategy no
        --logging_steps 1"""
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path / "cache"))
    script.main(*script.make_parser().parse_args_and_config(flags.split()))
    printed = capfd.readouterr().out
    for name in names:
        assert f"rewards/{name}/mean" in printed


@pytest.mark.parametrize("solution", [["5"], "55"])
def test_one_answer_is_required_for_each_completion(solution) -> None:
    with pytest.raises(ValueError, match="references"):
        accuracy_reward([r"\boxed{5}", r"\boxed{5}"], solution)
