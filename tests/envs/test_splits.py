"""What is trained on and what evaluates: splits of files and folders, and prompts in both."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from assay import Exact
from assay.envs import (
    DataError,
    Rows,
    Task,
    TextEnv,
    TRLSpec,
    arguments,
    environment,
    levels,
    make,
    register_rows,
    specs,
)
from assay.envs.datasets.errors import SplitError
from assay.envs.datasets.split_files import find_split, is_for_evaluation
from assay.envs.datasets.splits import have_same_prompts, make_for, refuse_training, shared_prompts


def write(path: Path, start: int, count: int = 3, end: str = "") -> Path:
    """Write GSM8K's layout: sums of a number and 1, from a first number on."""
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [
        {"question": f"What is {n} plus 1?{end}", "answer": f"#### {n + 1}"}
        for n in range(start, start + count)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three rows to train on, two to evaluate on."""
    write(tmp_path / "data" / "train.jsonl", 10)
    write(tmp_path / "data" / "test.jsonl", 20, 2)
    return tmp_path / "data"


@pytest.mark.parametrize(
    ("names", "asked", "found"),
    [
        (["train.jsonl", "test.jsonl"], "train", "train"),
        (["train.jsonl", "test.jsonl"], "test", "test"),
        (["test.jsonl"], None, "test"),
        (["sums_train.jsonl", "sums-dev.jsonl"], "train", "train"),
        (["sums_train.jsonl", "sums-dev.jsonl"], "validation", "validation"),
        (["challenge.jsonl", "train.jsonl"], "challenge", "challenge"),
        (["data/train-00000-of-00001.jsonl"], None, "train"),
    ],
)
def test_a_folder_gives_the_split_that_is_asked_for(
    tmp_path: Path, names: list[str], asked: str | None, found: str
) -> None:
    for number, name in enumerate(names):
        write(tmp_path / name, 100 * number)
    assert find_split(tmp_path, asked) == found
    assert make("assay/GSM8K-v1", data=str(tmp_path), split=asked).source.split == found


def test_two_formats_of_one_file_are_refused(tmp_path: Path) -> None:
    for name in ("test.jsonl", "test.json", "train.jsonl"):
        write(tmp_path / name, 1)
    with pytest.raises(DataError, match=r"has test\.json and test\.jsonl, whose rows would count"):
        make("assay/GSM8K-v1", data=str(tmp_path), split="test")
    assert make("assay/GSM8K-v1", data=str(tmp_path), split="train").source.split == "train"


@pytest.mark.parametrize(
    ("names", "asked", "listed"),
    [
        (["train.jsonl", "test.jsonl"], None, "test, train"),
        (["train.jsonl", "test.jsonl"], "validation", "test, train"),
        (["test.jsonl"], "train", "test"),
        (["train.jsonl", "valid.jsonl"], "test", "train, validation"),
    ],
)
def test_a_split_that_is_missing_or_not_named_is_an_error_that_lists_those_there_are(
    tmp_path: Path, names: list[str], asked: str | None, listed: str
) -> None:
    for name in names:
        write(tmp_path / name, 1)
    with pytest.raises(DataError, match=listed):
        make("assay/GSM8K-v1", data=str(tmp_path), split=asked)


@pytest.mark.parametrize(
    "name",
    [
        "test", "sum_test", "valid", "dev-set", "my.eval", "held_out", "heldout", "gsm8ktest",
        "mathtest", "testmini", "gsm8kval", "validation-00000-of-00001", "MATH-500", "math500",
        "aime24", "AIME_2025", "hmmt_feb_2025", "brumo25", "amc23", "gpqa_diamond", "ifbench",
        "benchmark", "evals",
    ],
)  # fmt: skip
def test_nothing_trains_on_a_file_that_its_name_keeps_for_evaluation(
    tmp_path: Path, name: str
) -> None:
    path = str(write(tmp_path / f"{name}.jsonl", 1))
    env, _ = make_for("train", "assay/GSM8K-v1", {"data": path})
    with pytest.raises(ValueError, match="--allow-test-split"):
        refuse_training(env)
    refuse_training(env, allow_test_split=True)
    with pytest.raises(DataError, match="'train' was asked for"):
        make("assay/GSM8K-v1", data=path, split="train")


@pytest.mark.parametrize(
    "name",
    [
        "rows", "train", "contest", "latest", "train_and_test", "devil", "fastest", "retrieval",
        "medieval", "constrain", "gsm8ktrain", "math5000", "math_500k", "math500_train",
        "aime_1983_2023",
    ],
)  # fmt: skip
def test_other_files_may_be_trained_on(tmp_path: Path, name: str) -> None:
    path = str(write(tmp_path / f"{name}.jsonl", 1))
    refuse_training(make_for("train", "assay/GSM8K-v1", {"data": path})[0])


def test_shards_are_of_the_split_that_their_folder_is_named_for(tmp_path: Path) -> None:
    file = write(tmp_path / "test" / "0000.jsonl", 1)
    for data in (file, file.parent):
        env, _ = make_for("train", "assay/GSM8K-v1", {"data": str(data)})
        assert env.source.split == "test"
    file = write(tmp_path / "MATH-500" / "0000.jsonl", 1)
    assert make_for("train", "assay/GSM8K-v1", {"data": str(file)})[0].source.split == "test"
    named = write(tmp_path / "test" / "rows.jsonl", 1)
    assert make("assay/GSM8K-v1", data=str(named)).source.split == ""


def test_saved_data_sets_are_read_by_their_splits(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    rows = [{"question": "1 plus 1?", "answer": "#### 2"}]
    both = {name: datasets.Dataset.from_list(rows) for name in ("train", "test")}
    datasets.DatasetDict(both).save_to_disk(tmp_path / "both")
    both["test"].save_to_disk(tmp_path / "rows")
    assert find_split(tmp_path / "both", "train") == "train"
    assert find_split(tmp_path / "both", "train[:50%]") == "train[:50%]"
    with pytest.raises(DataError, match="train, test"):
        find_split(tmp_path / "both", None)
    assert find_split(tmp_path / "rows", "train") == "train"
    assert is_for_evaluation("train+validation")
    assert not is_for_evaluation("auxiliary_train")


@pytest.mark.parametrize("name", ["HumanEval", "AIME", "AMC", "IFEval", "LiveCodeBench"])
def test_benchmarks_are_for_evaluation_whatever_their_file_is_called(
    tmp_path: Path, name: str
) -> None:
    from assay.envs.datasets.library.data_env import sample_of

    kind = type(make(f"assay/{name}-v1", data="sample"))
    for file in ("train.jsonl", "rows.jsonl"):
        (tmp_path / file).write_bytes(sample_of(kind).read_bytes())
        for role in ("train", "test"):
            env, _ = make_for(role, f"assay/{name}-v1", {"data": str(tmp_path / file)})
            assert env.source.split == "test"
            with pytest.raises(ValueError, match="for evaluation"):
                refuse_training(env)
            env.close()


def test_every_environment_over_data_refuses_to_train_on_its_sample() -> None:
    for spec in specs():
        if spec.id == "assay/Harbor-v0":  # it has no sample
            continue
        if spec.id.startswith("assay/") and "data" in arguments(spec.id):
            data = {} if "CodeRepair" in spec.id else {"data": "sample"}
            env, _ = make_for("train", spec.id, data)
            with pytest.raises(ValueError, match="--allow-sample"):
                refuse_training(env)
            refuse_training(env, allow_sample=True)
            env.close()


def test_a_trl_spec_trains_on_one_split_and_evaluates_on_the_other(folder: Path) -> None:
    spec = TRLSpec("assay/GSM8K-v1", size=3, env_kwargs={"data": str(folder)}, eval_size=9)
    trained = {row["prompt"][0]["content"].split()[2] for row in spec.train_dataset}
    asked = [row["prompt"][0]["content"].split()[2] for row in spec.eval_dataset]
    assert trained == {"10", "11", "12"}
    assert asked == ["20", "21"]
    (reward,) = spec.reward_funcs
    said = ["\\boxed{11}", "\\boxed{21}"]
    assert reward(completions=said, assay_task=[0, 0], assay_split=[None, "test"]) == [1.0, 1.0]


def test_a_trl_spec_takes_other_data_for_evaluation(folder: Path) -> None:
    files = {name: {"data": str(folder / f"{name}.jsonl")} for name in ("train", "test")}
    spec = TRLSpec(
        "assay/GSM8K-v1", env_kwargs=files["train"], eval_kwargs=files["test"], eval_size=2
    )
    assert len(spec.eval_dataset) == 2
    (reward,) = spec.reward_funcs
    assert reward(completions=["\\boxed{22}"], assay_task=[1], assay_split=["test"]) == [1.0]


@pytest.mark.parametrize(
    ("kwargs", "flag"),
    [
        ({"env_kwargs": {"data": "test.jsonl"}}, "allow_test_split"),
        ({"env_kwargs": {"data": ".", "split": "test"}}, "allow_test_split"),
        ({"env_kwargs": {"data": "sample"}}, "allow_sample"),
        ({"env_kwargs": {"data": "train.jsonl"}, "eval_size": 2}, "allow_overlap"),
    ],
)
def test_a_trl_spec_refuses_rows_that_are_not_allowed_by_name(
    folder: Path, monkeypatch: Any, kwargs: dict[str, Any], flag: str
) -> None:
    monkeypatch.chdir(folder)
    with pytest.raises(ValueError, match=flag):
        TRLSpec("assay/GSM8K-v1", **kwargs).kwargs()
    assert "train_dataset" in TRLSpec("assay/GSM8K-v1", **kwargs, **{flag: True}).kwargs()


def test_prompts_are_compared_without_their_white_space(tmp_path: Path) -> None:
    here = make("assay/GSM8K-v1", data=str(write(tmp_path / "a.jsonl", 5)))
    there = make("assay/GSM8K-v1", data=str(write(tmp_path / "b.jsonl", 7, end=" \n ")))
    (shared,) = shared_prompts(here.source, there.source)
    assert "What is 7 plus 1?" in shared
    assert not have_same_prompts(here.source, there.source)
    assert have_same_prompts(here.source, here.source)


def test_generators_share_prompts_unless_the_hash_parts_them() -> None:
    train, test = (make("assay/Arithmetic-v1", split=split) for split in ("train", "test"))
    asked = [test.task(i) for i in range(30)]
    assert shared_prompts(train.source, test.source, asked) == []
    assert shared_prompts(test.source, test.source, asked)
    other = make("assay/Arithmetic-v1", seed=9)
    assert len(shared_prompts(train.source, other.source, [other.task(0)])) == 1
    mixed = levels("assay/Sudoku-v1", level=[1, 2], split="test")
    assert mixed.source.split == "test"
    with pytest.raises(ValueError, match="for evaluation"):
        refuse_training(mixed)


CAPITALS = [{"country": f"land {n}", "capital": f"town {n}"} for n in range(80)]


def test_a_new_version_of_registered_rows_keeps_every_prompt_in_its_split() -> None:
    def prompts(id_: str, split: str, **more: Any) -> set[str]:
        register_rows(
            id_,
            CAPITALS,
            prompt="Capital of {country}?",
            reference="capital",
            rubric=Exact(),
            **more,
        )
        return {task.text for task in make(id_, split=split).source.tasks}  # type: ignore[attr-defined]

    first = prompts("splits/Lands-v0", "test")
    assert 2 < len(first) < 20
    assert prompts("splits/Lands-v1", "test") == first
    assert prompts("splits/Countries-v0", "test") == first
    assert prompts("splits/Salted-v0", "test", split_salt="another") != first
    assert not prompts("splits/Lands-v2", "train") & first


def test_a_new_version_of_a_generator_keeps_every_prompt_in_its_split() -> None:
    for id_ in ("splits/Twice-v0", "splits/Twice-v1"):

        @environment(id_, rubric=Exact())
        def twice(rng: Any) -> Task:
            n = int(rng.integers(300))
            return Task(f"2 * {n} =", str(2 * n))

    def prompts(id_: str, split: str) -> set[str]:
        env = make(id_, split=split)
        return {env.task(i).text for i in range(300)}

    assert not prompts("splits/Twice-v0", "test") & prompts("splits/Twice-v1", "train")
    assert not prompts("splits/Twice-v1", "test") & prompts("splits/Twice-v0", "train")


def test_registered_rows_of_a_file_for_evaluation_are_all_of_it(tmp_path: Path) -> None:
    files = {name: tmp_path / f"{name}.jsonl" for name in ("train", "test")}
    for file in files.values():
        file.write_text("".join(json.dumps(row) + "\n" for row in CAPITALS))
    register_rows(
        "splits/Filed-v0", files["test"], prompt="{country}?", reference="capital", rubric=Exact()
    )
    assert make("splits/Filed-v0", split="test").source.size == 80
    with pytest.raises(DataError, match="holds the split 'test'"):
        make("splits/Filed-v0", split="train")
    by_hash = [
        make("splits/Filed-v0", split=s, data=str(files["train"])) for s in ("train", "test")
    ]
    assert sum(env.source.size or 0 for env in by_hash) == 80


def test_sources_of_ones_own_are_of_no_known_split() -> None:
    refuse_training(TextEnv(Rows([Task("a", "b")]), Exact()))


@pytest.mark.parametrize("split", ["nope", "all"])
def test_a_split_that_no_data_has_is_refused_by_a_sample(split: str) -> None:
    with pytest.raises(SplitError, match=f"no split '{split}'"):
        make("assay/GSM8K-v1", data="sample", split=split)
    assert make("assay/GSM8K-v1", data="sample", split="train_sft").task(0).text
