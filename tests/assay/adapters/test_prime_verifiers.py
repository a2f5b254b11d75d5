"""PrimeIntellect's ``verifiers``, the real package: in this environment or in one of its own.

It wants openai below 3, which the pins here are not. ``ASSAY_VERIFIERS_PYTHON`` may name the
interpreter of a virtual environment that has it.
"""

import importlib.metadata
import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent / "scripts" / "prime_verifiers.py"


@pytest.fixture(scope="module")
def found():
    """What the script found, run where the package is."""
    python = os.environ.get("ASSAY_VERIFIERS_PYTHON", "")
    if python:
        command = [python, "-W", "ignore", str(SCRIPT), sysconfig.get_paths()["purelib"]]
    elif any(importlib.metadata.distributions(name="verifiers")):
        command = [sys.executable, "-W", "ignore", str(SCRIPT)]
    else:
        pytest.skip("verifiers is not installed, and ASSAY_VERIFIERS_PYTHON names none")
    run = subprocess.run(command, capture_output=True, text=True, timeout=200)  # our own script
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout.splitlines()[-1])


def test_their_tasks_score_here_as_there(found):
    pairs = found["imported"]["pairs"]
    assert len(pairs) == 36
    assert all(ours == theirs for ours, theirs in pairs)
    assert {ours for ours, _ in pairs} == {0.0, 0.25, 1.0}


def test_their_rewards_and_metrics_are_named_parts(found):
    assert found["imported"]["parts"] == {"exact": 1.0, "short": 1.0, "metric/digits": 1.0}
    assert found["imported"]["reward"] == 1.0


def test_only_what_is_asked_is_shown(found):
    assert found["imported"]["prompt"] == [
        {"role": "system", "content": "A number only."},
        {"role": "user", "content": "What is 1 + 1?"},
    ]
    assert found["imported"]["leak"] == "{}"


def test_an_exception_in_a_reward_is_no_score(found):
    status, score, reason = found["imported"]["fault"]
    assert (status, score) == ("verifier_error", None)
    assert "the judge is down" in reason


def test_what_one_reply_does_not_have_is_refused(found):
    assert "without end" in found["imported"]["endless"]
    assert found["imported"]["some"] == 3
    assert "a runtime for the reward in_a_box" in found["imported"]["box"]
    assert "tool servers" in found["imported"]["served"]
    assert "stage_verifier" in found["imported"]["staged"]
    assert (
        "Rewritten needs a model call whose messages soften() rewrites"
        in (found["imported"]["intercepted"])
    )
    assert "Seed needs an Env that scores its traces" in found["imported"]["unrewarded"]
    assert "expected a Taskset" in found["imported"]["no_taskset"]


def test_our_tasks_score_there_as_here(found):
    shown = found["exported"]
    assert shown["right"] == [1.0] * 8
    assert shown["wrong"] == [0.0] * 8
    assert shown["keys"] == 8
    assert not shown["leak"]
    assert shown["name"] == "Arithmetic"


def test_our_parts_are_their_metrics(found):
    shown = found["exported"]
    assert shown["metrics"] == {"right": 1.0, "short": 1.0}
    assert shown["info"] == {"assay": {"status": "correct", "reason": "equal"}}
    assert shown["reward"] == 0.5


def test_a_fault_of_ours_is_an_error_of_their_trace(found):
    assert "no container" in found["exported"]["error"]
    assert found["exported"]["error"].startswith("TaskError")


def test_a_poisoned_reply_spoils_no_neighbour(found):
    shown = found["poisoned"]
    assert shown["errors"] == []
    assert shown["here"] == shown["there"] == [1.0, 0.0, 0.0] * 7
