"""The study of iterative GRPO: what is true by hand, and rounds that change the reward model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from assay.family.iterative_grpo import PROXY, ROUNDS, STUDY, TRUE, names, start, worth
from assay.family.trainers import TrainableRewardModel
from assay.study import Trial

pytestmark = pytest.mark.slow

torch.set_num_threads(1)


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("start")
    start(Trial(seed=0, short=True, folder=folder, start=folder))
    return folder


@pytest.mark.parametrize(
    ("reply", "score"),
    [
        ("oiea", 1.0),
        ("aeib", 0.75),
        ("aaaa", 0.25),
        ("ae", 0.5),
        ("aeiob", 0.8),  # four of five characters
        ("bcdf", 0.0),
        ("", 0.0),
    ],
)
def test_different_vowels_count_by_length(reply, score) -> None:
    assert worth(reply, "") == score


def test_no_name_is_in_both_splits() -> None:
    seen = [{names(split).task(i).text for i in range(300)} for split in ("train", "test")]
    assert not seen[0] & seen[1]


@pytest.mark.filterwarnings("ignore::assay.grpo.guards.TrainingAlarm")
def test_only_the_iterative_arms_change_their_reward_model(begun, tmp_path) -> None:
    def played(arm: str) -> tuple[Path, list[int]]:
        folder = tmp_path / arm
        folder.mkdir()
        outcome = STUDY.arms[arm](Trial(seed=0, short=True, folder=folder, start=begun))
        assert [x for x, _ in outcome.curves[TRUE]] == [0, *range(1, 2 * ROUNDS + 1)]
        assert all(0 <= y <= 1 for name in (TRUE, PROXY) for _, y in outcome.curves[name])
        rounds = sorted((folder / "rounds").iterdir())
        return folder, [json.loads((r / "round.json").read_text())["judged_by"] for r in rounds]

    frozen, versions = played("frozen, as many labels")
    assert versions == [1, 1, 1, 1]
    assert TrainableRewardModel(frozen / "version-1").about["new"] == ROUNDS * 20
    iterative, versions = played("iterative, 10% replay")
    assert versions == [1, 2, 3, 4]
    assert TrainableRewardModel(iterative / "version-1").about["new"] == 20
    last = TrainableRewardModel(iterative / "rounds/round-4/reward_model").about
    assert (last["version"], last["new"], last["replayed"]) == (5, 20, 2)
