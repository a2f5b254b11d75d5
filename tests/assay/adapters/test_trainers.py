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
    """What the script found."""
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
