"""The study of GRPO-LEAD: its arms train, and a penalty alone changes nothing."""

from pathlib import Path

import pytest
import torch

from assay.envs import LeadLength
from assay.family import lead
from assay.study import Outcome, Trial

pytestmark = pytest.mark.slow

torch.set_num_threads(1)


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("start")
    lead.STUDY.prepare(Trial(seed=0, short=True, folder=folder, start=folder))
    return folder


def run(arm: str, start: Path, folder: Path) -> Outcome:
    return lead.STUDY.arms[arm](Trial(seed=0, short=True, folder=folder, start=start))


def test_a_penalty_alone_trains_to_the_same_policy(start: Path, tmp_path: Path) -> None:
    plain = run("GRPO, 1 or 0", start, tmp_path / "a")
    fined = run("penalty alone", start, tmp_path / "b")
    assert plain == fined
    assert {len(points) for points in plain.curves.values()} == {3}


def test_lead_trains(start: Path, tmp_path: Path) -> None:
    found = run("all of LEAD", start, tmp_path / "c")
    assert 0.0 <= found.values["pass@1"] <= 1.0
    assert found.values["tokens of all replies"] <= lead.LONGEST


def test_solutions_are_right_behind_any_number_of_dots() -> None:
    env = lead.problems(LeadLength())
    lengths = set()
    for i in range(2 * lead.FILLER):
        wordy = lead.wordy(env.task(i), i)
        env.reset(options={"task": i})
        assert env.step(wordy.solution)[1] == 1.0
        lengths.add(wordy.solution.count("."))
    assert lengths == set(range(lead.FILLER + 1))
