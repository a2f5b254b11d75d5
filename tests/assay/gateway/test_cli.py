"""``assay gateway`` and ``assay eval --agent`` as processes."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

pytest.importorskip("torch")
pytest.importorskip("fastapi")

ASSAY = [sys.executable, "-m", "assay"]


@pytest.mark.slow
def test_a_gateway_gives_episodes_and_their_tokens(model_dir: Path) -> None:
    command = [*ASSAY, "gateway", "--model", str(model_dir), "--port", "0", "--max-tokens", "4"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            found = re.match(r"Serving \S+ at (\S+); token: (\S+)", process.stderr.readline())
            url, token = found.groups()
            admin = {"Authorization": f"Bearer {token}"}
            assert httpx.post(f"{url}/episodes").status_code == 401
            opened = httpx.post(f"{url}/episodes", headers=admin).json()
            body = {"messages": [{"role": "user", "content": "1+1="}]}
            said = httpx.post(f"{opened['own_url']}/v1/chat/completions", json=body)
            assert said.status_code == 200, said.text
            headers = {"Authorization": f"bearer {opened['key']}"}  # in any case: RFC 9110
            models = httpx.get(f"{opened['base_url']}/models", headers=headers)
            assert models.json()["data"][0]["id"] == model_dir.name
            record = httpx.delete(f"{url}/episodes/{opened['key']}", headers=admin).json()
            (branch,) = record["branches"]
            assert 1 <= sum(branch["mask"]) <= 4
            assert len(branch["ids"]) == len(branch["mask"]) == len(branch["logprobs"])
            again = httpx.get(f"{url}/episodes/{opened['key']}", headers=admin)
            assert again.status_code == 410
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(30)


@pytest.fixture
def evaluate(run, model_dir, written, tmp_path):
    """Evaluate a program that asks once, by the command that it gets."""
    written("ask([{'role': 'user', 'content': sys.stdin.read()}])")
    words = ["eval", "assay/Arithmetic-v1", "-p", model_dir, "--limit", 3, "-n", 2, "--json"]
    words += ["--batch", 2, "--max-tokens", 4, "-o", tmp_path / "run"]
    return lambda *more: run(*words, *more)


def test_a_program_is_evaluated(evaluate, run, tmp_path) -> None:
    program = f"{sys.executable} {tmp_path / 'program.py'}"
    code, out, err = evaluate("--agent", program, "--unsafe-agent")
    assert code == 0, err
    summary = json.loads(out)
    assert (summary["replies"], summary["without_score"]) == (6, 0)
    plan = json.loads((tmp_path / "run" / "run.json").read_text())
    assert plan["policy"]["kind"] == "agent"
    again = ["-o", tmp_path / "again", "--rubric", '{"name": "Exact"}']
    code, _, err = run("rescore", tmp_path / "run", *again)
    assert code == 2
    assert "played by a program" in err


@pytest.mark.slow
def test_a_program_is_evaluated_in_the_sandbox(evaluate, box, tmp_path) -> None:
    words = ["--agent", "python3 program.py", "--agent-file", tmp_path / "program.py"]
    if box.backend == "docker":
        words += ["--agent-image", box._options.image]
    code, out, err = evaluate(*words, "--agent-backend", box.backend, "--limit", 1)
    assert code == 0, err
    summary = json.loads(out)
    assert (summary["replies"], summary["without_score"]) == (2, 0)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--agent-image", "x"], "go with --agent"),
        (["--agent", "x", "--unsafe-agent", "--agent-image", "y"], "no effect with unsafe_agent"),
        (["--agent", "x", "--agent-file", "/there/is/none"], "there is no /there/is/none"),
    ],
)
def test_options_of_a_program_that_make_no_sense_are_refused(evaluate, words, said) -> None:
    code, _, err = evaluate(*words)
    assert code == 2
    assert said in err
