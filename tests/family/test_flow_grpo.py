"""Studies of flows: what their rewards pay for, and that training goes the way they say."""

from pathlib import Path

import pytest
import torch
from matplotlib.figure import Figure

from assay.family import dance_grpo, flow_grpo, flow_grpo_blocks
from assay.family._rings import CENTRES, binary, captioned, graded, measure, right
from assay.family.units import Units
from assay.study import Measured, Study, Trial

pytestmark = pytest.mark.slow

torch.set_num_threads(1)


def units_of(outputs: torch.Tensor, prompts: list[int], group_size: int) -> Units:
    rows = len(outputs)
    return Units(
        torch.tensor(prompts),
        group_size,
        outputs,
        {},
        torch.zeros(rows, 1),
        torch.ones(rows, 1, dtype=torch.bool),
    )


def trial_of(study: Study, tmp_path: Path) -> Trial:
    torch.manual_seed(5)  # of the process: an arm must not depend on it
    trial = Trial(seed=0, short=True, folder=tmp_path, start=tmp_path)
    study.prepare(trial)
    return trial


def test_the_ring_pays_for_a_spot_that_the_prompt_allows() -> None:
    x = torch.stack([CENTRES[1], CENTRES[5], CENTRES[2], CENTRES[1] * 1.15, CENTRES[1] * 1.25])
    assert right(x, torch.ones(5, dtype=torch.long)).tolist() == [True, True, False, True, False]
    paid = binary(units_of(x[:4], [1, 2], 2))
    assert paid["right"].tolist() == [[1, 1], [1, 0]]
    near = graded(units_of(x[:4], [1, 1], 2))["near"]
    # At a spot 1; 0.3 away exp(-0.15); from spot 2 to spot 1 it is 4 sin(22.5 degrees) = 1.53.
    assert near[0].tolist() == pytest.approx([1, 1], abs=1e-3)
    assert near[1].tolist() == pytest.approx([0.465, 0.861], abs=1e-3)


def test_the_base_model_s_captions_are_right_in_five_of_eight_cases() -> None:
    x, prompts = captioned(20_000, torch.Generator().manual_seed(0))
    # Half for sure and half of the others by chance; of these 0.4 % lie outside the circle.
    assert right(x, prompts).float().mean().item() == pytest.approx(0.623, abs=0.01)
    found = measure(x, prompts)
    assert found["width"] == pytest.approx(1, abs=0.03)
    assert found["spots (bits)"] == pytest.approx(1, abs=0.01)


def test_blocks_are_counted() -> None:
    lit = torch.zeros(3, 9, dtype=torch.bool)
    lit[0, :2] = lit[1, [0, 5, 8]] = True
    x = flow_grpo_blocks.images(lit)
    assert x.shape == (3, 8, 8)
    assert x[0].tolist()[:3] == [[1, 1, -1, 1, 1, -1, -1, -1]] * 2 + [[-1] * 8]
    assert torch.equal(flow_grpo_blocks.lit_blocks(x), lit)
    assert torch.equal(flow_grpo_blocks.lit_blocks(x * 0.1), lit)  # faint, and yet counted
    paid = flow_grpo_blocks.counted(units_of(x, [2, 2, 1], 1))
    assert paid["count"].tolist() == [[1], [0], [0]]
    known, captions = flow_grpo_blocks.captioned(4000, torch.Generator().manual_seed(0))
    true = flow_grpo_blocks.lit_blocks(known).sum(dim=1) == captions
    assert true.float().mean().item() == pytest.approx(0.6 + 0.4 / 4, abs=0.03)


@pytest.mark.parametrize(
    ("study", "arm"),
    [
        (flow_grpo.STUDY, "T=10, KL"),
        (dance_grpo.STUDY, "DanceGRPO"),
        (flow_grpo_blocks.STUDY, "KL .04"),
    ],
)
def test_a_short_run_is_the_same_again_and_draws_its_picture(
    study: Study, arm: str, tmp_path: Path
) -> None:
    trial = trial_of(study, tmp_path)
    first, again = (study.arms[arm](trial) for _ in range(2))
    assert (first.curves, first.data) == (again.curves, again.data)  # values may be NaN
    assert len(first.curves["accuracy"]) > 2
    results = {name: [Measured(arm, 0, True, "", 0.0, 0.0, first)] for name in study.arms}
    figure = Figure()
    study.draw(figure, results)
    assert figure.axes
