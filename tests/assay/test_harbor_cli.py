"""``assay harbor``: agents on task folders, from the command line."""

import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from assay.cli import app

EXAMPLES = Path(__file__).parents[2] / "examples" / "harbor"


@pytest.fixture
def docker(monkeypatch, shell_image):
    monkeypatch.setenv("ASSAY_SANDBOX", "docker")


def run(*words):
    return CliRunner().invoke(app, ["harbor", *words])


def test_a_command_works_on_a_task_and_is_graded(docker, tmp_path) -> None:
    answer = "printf 'the 6\\nfox 5\\na 4\\nhen 4\\nand 2\\n' > /app/top.txt"
    out = tmp_path / "new" / "trials.jsonl"
    words = ["run", str(EXAMPLES), "--task", "text-top-words", "-o", str(out)]
    done = run(*words, "--agent", answer, "--json")
    assert done.exit_code == 0, done.output
    (trial,) = json.loads(done.stdout)
    assert (trial["task"], trial["reward"]) == ("assay/text-top-words", 1.0)
    assert trial["grading"] == "separate"
    assert json.loads(out.read_text()) == trial


def test_tasks_that_cannot_be_read_are_findings(docker, tmp_path) -> None:
    for name, image in (("here", "assay-shell:latest"), ("gone", "no-such:1"), ("compose", "x")):
        shutil.copytree(EXAMPLES / "text-top-words", tmp_path / name)
        (tmp_path / name / "environment/Dockerfile").write_text(f"FROM {image}\n")
        toml = tmp_path / name / "task.toml"
        toml.write_text(toml.read_text().replace("text-top-words", name))
    (tmp_path / "compose/environment/docker-compose.yaml").touch()
    done = run("check", str(tmp_path), "--static", "--json")
    assert done.exit_code == 1
    compose, gone, here = json.loads(done.stdout)
    assert "side services" in compose["findings"][0]
    assert "line 1: FROM no-such:1: Docker has no image" in gone["findings"][0]
    assert (here["findings"], here["rewards"]) == ([], {})
