"""Which rows ``assay train`` and ``assay eval`` take, and what they refuse."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

torch.set_num_threads(1)


@pytest.fixture
def train(run: Any, model: Path, tmp_path: Path, monkeypatch: Any) -> Any:
    """Run ``assay train assay/GSM8K-v1``; gives stderr, and ``run.json`` of a run that ended."""
    monkeypatch.chdir(tmp_path)
    for name, first in (
        ("both/train", 1),
        ("both/test", 7),
        ("leaky/train", 1),
        ("leaky/test", 5),
        ("loud/test", 1),
    ):
        path = tmp_path / f"{name}.jsonl"
        path.parent.mkdir(exist_ok=True)
        asked = str.upper if name.startswith("loud") else str
        rows = [
            {"question": asked(f"Give {n}+1"), "answer": f"#### {n + 1}"}
            for n in range(first, first + 6)
        ]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    few = ["--steps", "1", "--prompts", "2", "--group-size", "2", "--max-new-tokens", "1"]
    few += ["--model", str(model), "--tracker", "none", "--out", "out"]

    def train_on(*flags: str) -> tuple[str, dict[str, Any]]:
        code, _, err = run("train", "assay/GSM8K-v1", *flags, *few)
        about = tmp_path / "out" / "run.json"
        assert about.is_file() == (code == 0), err
        return " ".join(err.split()), json.loads(about.read_text()) if about.is_file() else {}

    return train_on


@pytest.mark.parametrize("more", [[], ["--held-out-data", "./both"]])
def test_a_folder_trains_on_one_file_and_evaluates_on_the_other(train: Any, more: Any) -> None:
    _, about = train("--data", "both", *more)
    assert about["about"]["splits"] == {"train": "train", "held_out": "test", "overlap": 0}


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--data", "sample"], "allow_sample (--allow-sample)"),
        (["--data", "both/test.jsonl"], "allow_test_split (--allow-test-split)"),
        (["--data", "both", "--set", "split=test"], "allow_test_split (--allow-test-split)"),
        (["--data", "leaky"], "2 of the held-out prompts are trained on"),
        (["--data", "both/train.jsonl", "--held-out-data", "leaky/train.jsonl"], "--allow-overlap"),
        (["--data", "both", "--held-out-data", "loud"], "of the held-out prompts are trained on"),
        (["--data", "both", "--set", "split=dev"], "has no split 'dev'; it has test, train"),
    ],
)
def test_other_rows_are_refused_with_the_remedy(train: Any, flags: list[str], words: str) -> None:
    assert words in train(*flags)[0]


def test_what_was_allowed_by_name_is_in_the_record(train: Any) -> None:
    _, about = train("--data", "leaky", "--allow-overlap")
    assert about["about"]["splits"]["overlap"] == 2
    assert about["config"]["allow_overlap"] is True
    assert about["config"]["allow_test_split"] is False


def test_a_test_file_can_be_trained_on_by_name(train: Any) -> None:
    _, about = train("--data", "both/test.jsonl", "--allow-test-split")
    assert about["about"]["splits"] == {"train": "test"}
