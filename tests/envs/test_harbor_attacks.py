"""Attacks on the grading of Harbor tasks, and honest work, under each backend."""

import os
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


@pytest.fixture(scope="module")
def purelib(box):
    """The folder of packages in the image, whose Python may be another than ours."""
    with box.session("assay-shell:latest") as session:
        line = "import sysconfig; print(sysconfig.get_paths()['purelib'], end='')"
        return session.exec(["python3", "-c", line]).text


@pytest.fixture
def task(tmp_path, purelib):
    """A function that writes a task folder and loads it."""

    def make(tests=None, docker="", toml="") -> HarborTask:
        files = {"expected.txt": "zq17\n", **(tests or {})}
        files.setdefault("test.sh", PYTEST if "test_outputs.py" in files else COMPARE)
        (tmp_path / "environment").mkdir()
        (tmp_path / "tests").mkdir()
        (tmp_path / "task.toml").write_text(toml.replace("PURELIB", purelib))
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
    if row.get("shared"):  # it cannot be held off, and is named
        assert trial.graded.grading == "shared", trial
    else:
        assert (trial.reward, trial.graded.grading) == (0.0, "separate"), trial.to_json()


@pytest.mark.parametrize("row", TABLE["honest"], ids=lambda row: row["name"])
def test_honest_work_is_paid(box, task, row) -> None:
    made = next((r for r in TABLE["attack"] if r["name"] == row.get("same_as")), row)
    built = task(made.get("tests"), made.get("docker", ""), made.get("toml", ""))
    trial = run_trial(built, CommandAgent(row["agent"]), box)
    assert trial.reward == 1.0, trial.graded.log
    assert run_trial(built, nop, box).reward == 0.0
