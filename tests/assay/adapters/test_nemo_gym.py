"""NeMo Gym: the rows that are written, the fields of a verdict, and the real package's server.

``ASSAY_NEMO_GYM_PYTHON`` names the interpreter of an environment (Python 3.12 or newer) with Assay
and nemo-gym.
"""

import json
import os
import subprocess
from pathlib import Path

import pytest

from assay import Verdict, make
from assay.adapters import to_nemo_gym
from assay.adapters.nemo_gym import fields_of
from assay.verifiers import Status

SCRIPT = Path(__file__).parent / "scripts" / "nemo_gym_server.py"
PYTHON = os.environ.get("ASSAY_NEMO_GYM_PYTHON")


def test_no_score_is_a_mask_and_a_zero_is_none() -> None:
    lost = fields_of(Verdict.fault(Status.SANDBOX_ERROR, "no daemon"))
    assert lost == {"reward": 0.0, "mask_sample": True, "status": "sandbox_error"}
    wrong = fields_of(Verdict.wrong("not 5"))
    assert wrong == {"reward": 0.0, "mask_sample": False, "status": "incorrect"}


def test_rows_have_the_prompt_and_the_reference(tmp_path) -> None:
    env = make("assay/Arithmetic-v1")
    assert to_nemo_gym(env, tmp_path / "rows.jsonl", size=3) == 3
    rows = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()]
    task = env.task(env.source.schedule(0, 0))
    assert rows[0] == {
        "responses_create_params": {"input": [dict(m) for m in task.messages]},
        "data_source": "assay/Arithmetic-v1",
        "ground_truth": json.dumps(task.reference),
        "task": task.id,
    }


def test_rows_for_evaluation_are_not_written_to_train_on(tmp_path) -> None:
    with pytest.raises(ValueError, match="test"):
        to_nemo_gym(make("assay/Arithmetic-v1", split="test"), tmp_path / "rows.jsonl", size=3)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(PYTHON is None, reason="ASSAY_NEMO_GYM_PYTHON names no interpreter")
def test_the_real_server_masks_a_reply_without_a_score() -> None:
    run = subprocess.run(
        [str(PYTHON), "-W", "ignore", str(SCRIPT)], capture_output=True, text=True, timeout=250
    )
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout.splitlines()[-1]) == {
        "rows": 1,
        "prompt": {"input": [{"role": "user", "content": "Capital of France?"}]},
        "found": [
            [1.0, False, "correct"],
            [0.0, False, "incorrect"],  # the last message counts
            [0.0, False, "unparseable"],
            [0.0, True, "verifier_error"],
        ],
    }
