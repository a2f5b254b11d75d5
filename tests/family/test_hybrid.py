"""The study of Hybrid GRPO: its grid, its exact return, and that every call is counted."""

from pathlib import Path

import numpy as np
import pytest
import torch

from assay.family import hybrid
from assay.family._grid import HORIZON, MOVES, STATES, Grid, exact_return
from assay.study import Trial

pytestmark = pytest.mark.slow

torch.set_num_threads(1)


def trial(folder: Path) -> Trial:
    return Trial(seed=0, short=True, folder=folder, start=folder)


def test_the_exact_return_is_what_episodes_earn() -> None:
    generator = np.random.default_rng(0)
    chances = generator.dirichlet(np.ones(len(MOVES)), size=STATES)
    env, earned = Grid(), []
    for seed in range(1500):
        cell, _ = env.reset(seed=seed)
        total, done = 0.0, False
        for _ in range(HORIZON):
            action = int(generator.choice(len(MOVES), p=chances[cell]))
            cell, reward, done, _, _ = env.step(action)
            total += reward
            if done:
                break
        earned.append(total)
    error = np.std(earned) / len(earned) ** 0.5
    assert abs(np.mean(earned) - exact_return(chances)) < 4 * error


def test_a_restored_grid_meets_the_same_chance_again() -> None:
    env = Grid()
    env.reset(seed=1)
    env.step(1)
    saved = env.clone()
    paths = []
    for _ in range(2):
        env.restore(saved)
        paths.append([env.step(1)[0] for _ in range(20)])
    assert paths[0] == paths[1]


@pytest.mark.parametrize("arm", hybrid.STUDY.arms)
def test_every_arm_stops_at_its_budget_of_calls(arm: str, tmp_path: Path) -> None:
    outcome = hybrid.STUDY.arms[arm](trial(tmp_path))
    budget = hybrid.CALLS / 20
    most = hybrid.EPISODES * HORIZON  # of a rollout; in each state more, played to the end
    assert budget <= outcome.values["calls"] < budget + most * hybrid.TRIED
    points = outcome.curves["exact return"]
    assert [x for x, _ in points] == pytest.approx(
        [budget * k / 20 for k in range(21)][: len(points)]
    )
    uniform = np.full((STATES, len(MOVES)), 1 / len(MOVES))
    assert points[0][1] == pytest.approx(exact_return(uniform))
    assert points[-1][1] != points[0][1]
