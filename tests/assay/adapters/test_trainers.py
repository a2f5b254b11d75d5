"""verl's reward managers and OpenRLHF's executor: the real packages, in their own environment.

``ASSAY_TRAINERS_PYTHON`` names its interpreter: a virtual environment with what
``scripts/trainers.txt`` lists.
"""

import json
import os
import subprocess
import sysconfig
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent / "scripts" / "trainers.py"
PYTHON = os.environ.get("ASSAY_TRAINERS_PYTHON")
PAID = [1.0, 0.0, 0.0, 1.0, 0.0, 0.0]
"""Right, wrong and no answer, twice."""

pytestmark = pytest.mark.skipif(PYTHON is None, reason="ASSAY_TRAINERS_PYTHON names no interpreter")


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    home = {**os.environ, "HOME": str(tmp_path_factory.mktemp("home"))}  # their caches
    command = [PYTHON, "-W", "ignore", str(SCRIPT), sysconfig.get_paths()["purelib"]]
    run = subprocess.run(command, capture_output=True, text=True, timeout=250, env=home)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout.splitlines()[-1])


@pytest.mark.parametrize("manager", ["naive", "dapo", "batch"])
def test_verl_pays_what_the_environment_pays(found, manager):
    assert found["verl"][manager] == PAID


def test_verl_logs_the_status(found):
    assert found["verl"]["status"] == ["correct", "incorrect", "unparseable"] * 2


def test_verl_pays_at_the_last_token_of_the_reply(found):
    lengths = found["verl"]["lengths"]
    assert found["verl"]["last token"] == [lengths[0] - 1, lengths[3] - 1]


def test_openrlhf_pays_what_the_environment_pays(found):
    assert found["openrlhf"]["reward"] == PAID
    assert found["openrlhf"]["scores"] == PAID


def test_openrlhf_logs_what_could_not_be_read(found):
    assert found["openrlhf"]["unparseable"] == [0.0, 0.0, 1.0] * 2


def test_verls_agent_loop_masks_a_reply_without_a_score(found):
    """Two of the six replies find no sandbox: the third, and one of the last group's two."""
    agent = found["agent"]
    assert [place for place, status in enumerate(agent["status"]) if "error" in status] == [2, 5]
    for rows in agent["gradients"].values():
        assert rows[2] == rows[5] == rows[4] == 0.0
        assert all(rows[place] > 0 for place in (0, 1, 3))


def test_the_group_of_a_masked_reply_has_the_advantages_of_the_others(found):
    agent = found["agent"]
    assert [agent["ours"][place] for place in (0, 1, 3)] == agent["theirs without it"]
    assert [agent["ours"][place] for place in (2, 4, 5)] == [0.0, 0.0, 0.0]
