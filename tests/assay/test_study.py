"""Studies: arms in processes of their own, resumed, and shown with their seeds' range."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from assay.family_cli import family_page, load, measured_before, studies
from assay.study import Measured, Outcome, Study, band, every, means
from assay.study.measured import by_arm, read_measured, write_measured
from assay.study.page import rows_of, section
from assay.study.picture import draw_study
from assay.study.run import ArmFailed, run_study

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
TOY = """
import os
from assay.study import Outcome, Study

def arm(slope):
    def run(trial):
        assert (trial.start / "ready").read_text() == str(trial.seed)
        if trial.seed == 13:
            raise ZeroDivisionError("unlucky")
        (trial.folder / "pid").write_text(str(os.getpid()))
        line = [(x, slope * x + trial.seed) for x in range(3)]
        return Outcome({"height": line[-1][1]}, {"line": line})
    return run

STUDY = Study(title="t", source="s", claim="c", protocol="p", verdict="v",
    arms={"flat": arm(0), "steep": arm(2)},
    prepare=lambda trial: (trial.start / "ready").write_text(str(trial.seed)))
"""


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "toy_study.py").write_text(TOY)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return tmp_path / "toy_study.py"


def run(toy: Path, **kwargs):
    arms = {"flat": 0, "steep": 1}
    return run_study("toy_study", toy, arms, toy.parent / "out", prepared=True, **kwargs)


def test_what_was_run_is_not_run_again_until_the_file_changes(toy: Path) -> None:
    first = run(toy, seeds=1)
    assert [(m.arm, m.outcome.values["height"]) for m in first] == [("flat", 0), ("steep", 4)]
    assert all(m.cpu_s > 0 and m.peak_mib > 10 for m in first)
    pids = {p: p.read_text() for p in (toy.parent / "out").rglob("pid")}
    assert len(pids) == 2

    (toy.parent / "out/runs/full-1-0.json").unlink()  # as if it had been interrupted
    again = run(toy, seeds=1)
    assert [m.outcome for m in again] == [m.outcome for m in first]
    assert sum(p.read_text() != before for p, before in pids.items()) == 1

    toy.write_text(TOY.replace("arm(2)", "arm(3)"))
    assert run(toy, seeds=1)[1].outcome.values["height"] == 6


def test_a_failing_arm_says_why_and_the_others_are_kept(toy: Path) -> None:
    toy.write_text(TOY.replace("trial.seed == 13", "slope == 2"))
    with pytest.raises(ArmFailed, match=r"(?s)arm 'steep' with seed 0.*unlucky"):
        run(toy, seeds=1, jobs=1)
    assert (toy.parent / "out/runs/full-0-0.json").exists()


def some() -> list[Measured]:
    def one(arm: str, seed: int, line: list[tuple[float, float]]) -> Measured:
        return Measured(
            arm, seed, False, "x", 2.0, 300.0, Outcome({"end": line[-1][1]}, {"y": line})
        )

    return [
        one("a", 0, [(0, 1.0), (1, 2.0)]),
        one("a", 1, [(0, 3.0), (1, 6.0)]),
        one("b", 0, [(0, 0.0), (1, float("nan"))]),
    ]


def test_means_and_bands_go_over_the_seeds_that_have_a_number() -> None:
    a, b = by_arm(some()).values()
    assert means(a) == {"end": (4.0, 2.0, 6.0)}
    assert means(b) == {}
    assert band(a, "y") == [(0, 2.0, 1.0, 3.0), (1, 4.0, 2.0, 6.0)]
    assert band(b, "y") == [(0, 0.0, 0.0, 0.0)]


def test_results_are_read_as_they_were_written(tmp_path: Path) -> None:
    write_measured(tmp_path / "r.json", some())
    back = read_measured(tmp_path / "r.json")
    assert band(back, "y") == band(some(), "y")
    assert back[2].outcome.values == {"end": None}  # JSON has no NaN
    assert means(back[2:]) == {}
    (tmp_path / "r.json").write_text('[{"arm": "a"}]')
    with pytest.raises(ValueError, match="holds no results of a study"):
        read_measured(tmp_path / "r.json")


def test_the_table_has_the_range_and_the_cost() -> None:
    study = Study(
        title="T", source="S", claim="C.", protocol="P.", verdict="V.", arms={}, presets=("grpo",)
    )
    head, rows = rows_of(study, by_arm(some()))
    assert head == ["arm", "end", "seeds", "CPU s", "peak MiB"]
    assert rows == [["a", "4 [2, 6]", "2", "2", "300"], ["b", "", "1", "2", "300"]]
    text = section("toy", study, by_arm(some()), "toy.png")
    assert "**Claim** (S). C." in text
    assert "| a | 4 [2, 6] | 2 | 2 | 300 |" in text
    assert "assay family run toy" in text
    assert "`grpo`" in text


def test_the_picture_shows_every_curve(tmp_path: Path) -> None:
    study = Study(title="T", source="", claim="", protocol="", verdict="", arms={})
    png = draw_study(study, by_arm(some()), tmp_path / "pictures/toy.png")
    assert png.read_bytes().startswith(b"\x89PNG")
    assert [p.name for p in png.parent.iterdir()] == ["toy.png"]


def test_the_last_step_is_looked_at() -> None:
    assert [s for s in range(1, 24) if every(23, 4)(s)] == [5, 10, 15, 20, 23]


@pytest.mark.parametrize("name", studies())
def test_every_study_says_what_it_claims_and_found(name: str) -> None:
    study = load(name)
    assert study.claim
    assert study.protocol.endswith(".")
    assert re.search(r"arXiv|no paper", study.source), "name the source"
    results = by_arm(measured_before(name))
    if results:
        assert list(results) == list(study.arms), "measure again what has changed"
        assert study.verdict.endswith(".")
        assert all(len(found) >= 3 for found in results.values())
        assert not any(m.short for found in results.values() for m in found)


def test_the_page_is_what_was_measured() -> None:
    page = (ROOT / "docs/family.md").read_text()
    assert page == family_page(), "run: assay family page docs/family.md"
    for picture in re.findall(r"!\[.*?\]\((.*?)\)", page):
        assert (ROOT / "docs" / picture).exists()


def test_a_script_runs_its_study_and_the_command_line_knows_it(tmp_path: Path) -> None:
    name = "multi_objective"
    script = ROOT / "examples/family" / f"{name}.py"
    done = subprocess.run(
        [sys.executable, script, "--short", "--out", tmp_path], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "results.json").read_text())
    assert [one["arm"] for one in found] == list(load(name).arms)
    assert (tmp_path / "figure.png").exists()
    assert "Claim" in (tmp_path / "table.md").read_text()


def test_unknown_names_are_refused() -> None:
    with pytest.raises(ValueError, match=r"no study is named 'dapoo'\. Did you mean dapo\?"):
        load("dapoo")
