"""Attacks on the grading of Harbor tasks, under each backend: none is paid, none is a fault."""

import os
import sys
import sysconfig
import tomllib
from pathlib import Path

import pytest

from assay.envs.harbor import CommandAgent, HarborTask, nop, run_trial
from assay.sandbox import Sandbox, build_image, describe
from assay.sandbox.backends.bwrap import bwrap_fault
from assay.sandbox.backends.docker import daemon_fault
from assay.sandbox.sessions.groups import groups_fault

TABLE = tomllib.loads(Path(__file__).with_name("harbor_attacks.toml").read_text("utf-8"))
COMPARE = """#!/bin/bash
if diff -q /app/answer /tests/expected.txt; then echo 1; else echo 0; fi > /logs/verifier/reward.txt
"""
PYTEST = """#!/bin/bash
python3 -m pytest -q /tests/test_outputs.py
if [ $? -eq 0 ]; then echo 1; else echo 0; fi > /logs/verifier/reward.txt
"""


@pytest.fixture(
    scope="module",
    params=[
        pytest.param("docker", marks=[pytest.mark.docker, pytest.mark.slow]),
        pytest.param("bwrap", marks=pytest.mark.bwrap),
    ],
)
def box(request):
    """A sandbox of each backend; Docker builds the images of both."""
    fault = daemon_fault()
    if fault is not None:
        if os.environ.get("ASSAY_REQUIRE_DOCKER") == "1":
            pytest.fail(fault)
        pytest.skip(fault)
    fault = bwrap_fault() or groups_fault() or (os.geteuid() and "it needs root")
    if request.param == "bwrap" and fault:
        pytest.skip(str(fault))
    build_image(description=describe("shell"))
    with Sandbox(backend=request.param) as made:
        yield made


@pytest.fixture
def task(tmp_path):
    """A function that writes a task folder and loads it."""

    def make(tests=None, docker="", toml="") -> HarborTask:
        files = {"expected.txt": "zq17\n", **(tests or {})}
        files.setdefault("test.sh", PYTEST if "test_outputs.py" in files else COMPARE)
        (tmp_path / "environment").mkdir()
        (tmp_path / "tests").mkdir()
        (tmp_path / "task.toml").write_text(
            toml.replace("PURELIB", sysconfig.get_path("purelib", vars={"base": sys.base_prefix}))
        )
        (tmp_path / "instruction.md").write_text("Write `/app/answer`.")
        dockerfile = f"FROM assay-shell:latest\nWORKDIR /app\n{docker}\n"
        (tmp_path / "environment" / "Dockerfile").write_text(dockerfile)
        for name, text in files.items():
            text = text.strip().replace("LONG", f"# {'x' * 70_000}")
            (tmp_path / "tests" / name).write_text(f"{text}\n")
        return HarborTask.load(tmp_path)

    return make


@pytest.mark.parametrize("row", TABLE["attack"], ids=lambda row: row["name"])
def test_no_attack_is_paid(box, task, row) -> None:
    made = task(row.get("tests"), row.get("docker", ""), row.get("toml", ""))
    trial = run_trial(made, CommandAgent(TABLE["common"] + row["agent"]), box)
    assert (trial.reward, trial.graded.grading) == (0.0, "separate"), trial


HONEST = [
    ("true", {}, "echo zq17 > /app/answer"),
    ("a link with a way back", {}, "mkdir a b; echo zq17 > a/x; ln -s b/../a/x /app/answer"),
    (
        "modules and programs of the agent's, where the image looks for them",
        {
            "tests": {
                "test_outputs.py": """
import subprocess, sys, tempfile
def test_answer(tmp_path):
    import found
    assert found.find() == "zq17"
    line = "import found; print(found.find())"
    for command in ([sys.executable, "-c", line], ["sh", "-c", f"python3 -c '{line}'"]):
        assert subprocess.check_output(command, cwd="/").strip() == b"zq17"
    with tempfile.NamedTemporaryFile("w") as file:
        print("in", file=file, flush=True)
        assert subprocess.check_output(["cat", file.name]) == b"in\\n"
    (tmp_path / "in").write_text("1")
    subprocess.run(["sh", "-c", "echo 2 > in; mkdir out"], cwd=tmp_path, check=True)
    assert (tmp_path / "in").read_text() == "2\\n"
"""
            },
            "docker": "ENV PYTHONPATH=/app/src",
        },
        "mkdir src; echo 'def find(): return \"zq17\"' > src/found.py",
    ),
    (
        "a package that is an artifact",
        {key: value for row in TABLE["attack"] if row["name"] == "an artifact that is a package"
         for key, value in row.items() if key in ("tests", "docker", "toml")},
        "echo 'def find(): return \"zq17\"' > /small/__init__.py",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("name", "made", "work"), HONEST, ids=lambda value: str(value)[:40])
def test_honest_work_is_paid(box, task, name, made, work) -> None:
    built = task(**made)
    trial = run_trial(built, CommandAgent(work), box)
    assert trial.reward == 1.0, trial.graded.log
    assert run_trial(built, nop, box).reward == 0.0
