"""The study of several rewards: what a change of units does to advantages, exactly."""

from pathlib import Path

import pytest
import torch

from assay.family import multi_objective
from assay.study import Trial

pytestmark = pytest.mark.slow

torch.set_num_threads(1)


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
