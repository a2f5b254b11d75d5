"""The record of a run tells environments, verifiers, data and policies apart, in every process."""

import json
import subprocess
import sys

import pytest

from assay.evaluation import Plan
from assay.evaluation.digest import code_digest

pytestmark = pytest.mark.slow

MODULE = """
from assay import Math, Task, register
from assay.envs import GroupRubric, Rows, TextEnv
from assay.verifiers import FunctionVerifier, Verdict, Verifier

def equal(reply, reference):
    return float(reply == reference)

class Part:
    def rewards(self, task, episodes):
        return [1.0] * len(episodes)

    def close(self):
        pass

def plain():
    return TextEnv(Rows([Task("1+1=", "2")]), FunctionVerifier(equal))

def grouped():
    env = TextEnv(Rows([Task("1+1=", "2")]), Math())
    env.group_rubric = GroupRubric({"part": Part()})
    return env

register("mine/Plain-v0", plain)
register("mine/Grouped-v0", grouped)

def two(messages):
    return "2"
"""


def evaluated(folder, env, *more):
    """The exit code of an evaluation, what it complained of, and its record."""
    command = ["eval", f"hashed:{env}", "-p", "hashed:two", "-o", "run", *more]
    done = subprocess.run(
        [sys.executable, "-m", "assay", *command], cwd=folder, capture_output=True, text=True
    )
    record = folder / "run" / "run.json"
    return done.returncode, done.stderr, json.loads(record.read_text()) if record.exists() else {}


def test_a_changed_function_is_another_verifier(tmp_path) -> None:
    (tmp_path / "hashed.py").write_text(MODULE)
    code, err, before = evaluated(tmp_path, "mine/Plain-v0")
    assert code == 0, err
    (tmp_path / "hashed.py").write_text(MODULE.replace("reply == reference", "reply > reference"))
    code, err, after = evaluated(tmp_path, "mine/Plain-v0", "--resume")
    assert code == 2
    for part in ("environment", "verifier", "policy"):
        assert f"{part}.code: {before[part]['code']} against " in err
    assert after == before


def test_what_json_cannot_hold_is_the_same_in_the_next_process(tmp_path) -> None:
    """A part without a repr of its own shows its address, which no other process has."""
    (tmp_path / "hashed.py").write_text(MODULE)
    assert evaluated(tmp_path, "mine/Grouped-v0")[0] == 0
    code, err, record = evaluated(tmp_path, "mine/Grouped-v0", "--resume")
    assert code == 0, err
    assert "0x" not in json.dumps(record["verifier"])


def test_a_package_is_hashed_whole_and_nothing_but_its_source(tmp_path, monkeypatch) -> None:
    package = tmp_path / "hashed_package"
    package.mkdir()
    (package / "__init__.py").write_text("from .inner import f\n")
    (package / "inner.py").write_text("def f(): return 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    module = pytest.importorskip("hashed_package")
    before = code_digest([module.f])
    (package / "data.bin").write_bytes(b"1")
    assert code_digest([module.f]) == code_digest(["hashed_package"]) == before
    (package / "other.py").write_text("x = 1\n")
    assert code_digest([module.f]) != before
    assert code_digest([len, int, "json"]) == code_digest([])


def test_a_difference_deep_in_a_long_record_is_named() -> None:
    def plan(percent):
        rubric = {"name": "Rubric", "parts": {f"part {i}": {"name": "Math"} for i in range(30)}}
        rubric["parts"]["part 29"]["percent"] = percent
        return Plan({}, {"rubric": rubric}, {}, {}, 1, 0, 1, {})

    assert plan("value").differences(plan("unit")) == [
        "verifier.rubric.parts.part 29.percent: value against unit"
    ]
