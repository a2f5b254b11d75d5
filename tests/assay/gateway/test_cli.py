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

from assay.cli import main

ASSAY = [sys.executable, "-m", "assay"]
PROGRAM = """
import json, os, sys, urllib.request
body = {"messages": [{"role": "user", "content": sys.stdin.read()}]}
request = urllib.request.Request(
    os.environ["OPENAI_BASE_URL"] + "/chat/completions", json.dumps(body).encode(),
    {"Authorization": "Bearer " + os.environ["OPENAI_API_KEY"]},
)
with urllib.request.urlopen(request) as found:
    json.load(found)
"""


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
            headers = {"Authorization": f"Bearer {opened['key']}"}
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


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--engine", "proxy"], "needs --server"),
        ([], "needs --model"),
        (["--model", "x", "--server", "http://127.0.0.1:1"], "goes with --engine vllm"),
        (["--engine", "proxy", "--server", "http://127.0.0.1:1"], "serves no model"),
    ],
)
def test_what_a_gateway_cannot_serve_is_an_error(words, said, monkeypatch, capsys) -> None:
    monkeypatch.setattr(sys, "argv", ["assay", "gateway", "--port", "0", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


def test_a_program_is_evaluated(model_dir, tmp_path, monkeypatch, capsys) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    words = ["assay", "eval", "assay/Arithmetic-v1", "-p", str(model_dir), "--limit", "3"]
    words += ["-n", "2", "--batch", "2", "--max-tokens", "4", "-o", str(tmp_path / "run"), "--json"]
    words += ["--agent", f"{sys.executable} {program}"]
    for more, code in (([], 2), (["--unsafe-agent"], 0)):
        monkeypatch.setattr(sys, "argv", [*words, *more])
        with pytest.raises(SystemExit) as ended:
            main()
        shown = capsys.readouterr()
        assert ended.value.code == code, shown.err
        assert code == 0 or "unsafe=True" in shown.err
    summary = json.loads(shown.out)
    assert (summary["replies"], summary["without_score"]) == (6, 0)
    plan = json.loads((tmp_path / "run" / "run.json").read_text())
    assert plan["policy"]["kind"] == "agent"
    words = ["rescore", str(tmp_path / "run"), "-o", str(tmp_path / "again")]
    monkeypatch.setattr(sys, "argv", ["assay", *words, "--rubric", '{"name": "Exact"}'])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert "played by a program" in capsys.readouterr().err
