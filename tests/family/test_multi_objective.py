"""The study of several rewards: what a change of units does to advantages, exactly."""

from pathlib import Path

import pytest
import torch

from assay.family import multi_objective
from assay.grpo import Objective
from assay.grpo.advantage import group_advantages, outcome_advantages
from assay.study import Trial

pytestmark = pytest.mark.slow

torch.set_num_threads(1)
ROOT = 0.5**0.5


def advantages(how: str, scale: float, rewards: torch.Tensor) -> torch.Tensor:
    named = {"first": scale * rewards[0], "second": rewards[1]}
    objective = Objective(advantage=how, advantage_eps=0.0)
    return outcome_advantages(named["first"] + named["second"], objective, named=named)


def test_units_move_the_sum_and_leave_the_others() -> None:
    rewards = torch.rand(2, 3, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    for how in ("mo_grpo", "gdpo"):
        one, hundred = advantages(how, 1.0, rewards), advantages(how, 100.0, rewards)
        assert torch.allclose(one, hundred)
    largest = advantages("group", 1e6, rewards)
    assert torch.allclose(largest, group_advantages(rewards[0], eps=0.0), atol=1e-5)


def test_the_policy_is_the_same_in_all_units_where_rewards_are_compared_one_by_one(
    tmp_path: Path,
) -> None:
    trial = Trial(seed=0, short=True, folder=tmp_path, start=tmp_path)
    found = {name: arm(trial) for name, arm in multi_objective.STUDY.arms.items()}
    for name in ("MO-GRPO", "GDPO"):
        ends = found[name].data["ends"]
        assert ends["1"][0] == pytest.approx(ends["100"][0], abs=1e-3)
    ends = found["sum (Li et al.)"].data["ends"]
    assert ends["1"][0] != pytest.approx(ends["100"][0], abs=5e-3)
    assert set(multi_objective.STUDY.columns) <= set(found["GDPO"].values)
