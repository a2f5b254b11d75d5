"""One Harbor task through every door: the same turns earn the same reward."""

import contextlib
import json
import sys
from pathlib import Path

import gymnasium as gym
import pytest
from typer.testing import CliRunner

import assay
from assay.cli import app
from assay.envs import EpisodeGroup, FunctionPolicy, rollout
from assay.envs.tools.calls import written_call
from assay.envs.trl import TRLSpec
from assay.grpo import GRPOConfig, training_tasks
from assay.service import RemoteEnv

FOLDER = str(Path(__file__).parents[2] / "examples" / "harbor" / "text-top-words")
SOLVE = "printf 'the 6\\nfox 5\\na 4\\nhen 4\\nand 2\\n' > /app/top.txt"
SUBMIT = written_call("submit", {})
TURNS = {1.0: [written_call("bash", {"command": SOLVE}), SUBMIT], 0.0: [SUBMIT]}


def oracle(messages):
    return TURNS[1.0][sum(m["role"] == "assistant" for m in messages)]


def idle(messages):
    return SUBMIT


POLICIES = {1.0: FunctionPolicy(oracle), 0.0: FunctionPolicy(idle)}


@pytest.fixture(autouse=True)
def docker(monkeypatch, shell_image):
    monkeypatch.setenv("ASSAY_SANDBOX", "docker")


def by_gymnasium(reward, tmp_path):
    with contextlib.closing(gym.make("assay/Harbor-v0", data=FOLDER)) as env:
        env.reset(seed=0)
        *_, (_, found, done, cut, _) = [env.step(turn) for turn in TURNS[reward]]
        assert (done, cut) == (True, False)
    return found


def by_trl(reward, tmp_path):
    spec = TRLSpec("assay/Harbor-v0", size=1, env_kwargs={"data": FOLDER})
    episode = spec.environment_factory()
    episode.reset(assay_task=0, assay_split=None)
    if reward:
        episode.bash(command=SOLVE)
    episode.submit()
    return episode._judged().reward


def by_eval(reward, tmp_path):
    (tmp_path / "turns.py").write_text(
        f"def policy(messages):\n    turns = {TURNS[reward]!r}\n"
        "    return turns[sum(m['role'] == 'assistant' for m in messages)]\n"
    )
    words = ["eval", "assay/Harbor-v0", "-p", "turns:policy", "--data", FOLDER, "--json"]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path)
        patch.syspath_prepend(str(tmp_path))
        sys.modules.pop("turns", None)
        done = CliRunner().invoke(app, [*words, "-o", str(tmp_path / "run")])
    assert done.exit_code == 0, done.output
    (line,) = (tmp_path / "run" / "groups.jsonl").read_text().splitlines()
    return EpisodeGroup.from_json(json.loads(line)).episodes[0].reward


def by_the_learner(reward, tmp_path):
    config = GRPOConfig(steps=1, prompts_per_step=1, group_size=2)
    with contextlib.closing(assay.make("assay/Harbor-v0", data=FOLDER)) as env:
        (group,) = training_tasks(env, config)(POLICIES[reward], 1)
    assert group.episodes[0].reward == group.episodes[1].reward
    return group.episodes[0].reward


@pytest.mark.parametrize("reward", [1.0, pytest.param(0.0, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "door", [by_gymnasium, by_trl, by_eval, by_the_learner], ids=lambda f: f.__name__
)
def test_a_door_gives_the_same_reward(door, reward, tmp_path) -> None:
    assert door(reward, tmp_path) == reward


@pytest.mark.parametrize("reward", [1.0, pytest.param(0.0, marks=pytest.mark.slow)])
def test_the_service_gives_the_same_reward(reward, served_here) -> None:
    with (
        served_here(assay.make("assay/Harbor-v0", data=FOLDER)) as (url, _),
        contextlib.closing(RemoteEnv(url)) as env,
    ):
        (group,) = rollout(env, POLICIES[reward], 1, 1)
    assert group.rewards == (reward,)
