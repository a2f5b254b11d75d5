"""Studies: arms in processes of their own, resumed, and shown with their seeds' range."""

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from assay.family_cli import family_page, load, measured_before, studies
from assay.study import Claim, Measured, Outcome, Study, band, every, means
from assay.study.claims import agreed, decide, interval, verdicts
from assay.study.measured import by_arm, read_measured, write_measured
from assay.study.page import rows_of, section
from assay.study.picture import draw_overview, draw_study
from assay.study.run import ArmFailed, run_study
from assay.study.study import is_decided

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

STUDY = Study(title="t", source="s", says="c", equation="x", load="p", tried="q", remark="v",
    claims=(), arms={"flat": arm(0), "steep": arm(2)},
    prepare=lambda trial: (trial.start / "ready").write_text(str(trial.seed)))
"""


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "toy_study.py").write_text(TOY)
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path / "toy_study.py"


def run(toy: Path, **kwargs):
    arms = {"flat": 0, "steep": 1}
    return run_study(
        "toy_study", toy, arms, toy.parent / "out", seeds=range(1), prepared=True, **kwargs
    )


def test_what_was_run_is_not_run_again_until_the_file_changes(toy: Path) -> None:
    first = run(toy)
    assert [(m.arm, m.outcome.values["height"]) for m in first] == [("flat", 0), ("steep", 4)]
    assert all(m.cpu_s > 0 and m.peak_mib > 10 for m in first)
    pids = {p: p.read_text() for p in (toy.parent / "out").rglob("pid")}
    assert len(pids) == 2

    (toy.parent / "out/runs/full-1-0.json").unlink()  # as if it had been interrupted
    again = run(toy)
    assert [m.outcome for m in again] == [m.outcome for m in first]
    assert sum(p.read_text() != before for p, before in pids.items()) == 1

    toy.write_text(TOY.replace("arm(2)", "arm(3)"))
    assert run(toy)[1].outcome.values["height"] == 6


def test_a_failing_arm_says_why_and_the_others_are_kept(toy: Path) -> None:
    toy.write_text(TOY.replace("trial.seed == 13", "slope == 2"))
    with pytest.raises(ArmFailed, match=r"(?s)arm 'steep' with seed 0.*unlucky"):
        run(toy, jobs=1)
    assert (toy.parent / "out/runs/full-0-0.json").exists()


def test_many_short_arms_at_once_all_end_well(toy: Path) -> None:
    """A child whose end two threads read had ended with code 255 for one of them."""
    out = toy.parent / "out"
    seeds = range(20, 80)
    found = run_study("toy_study", toy, {"flat": 0}, out, seeds=seeds, prepared=True, jobs=8)
    assert [m.outcome.values["height"] for m in found] == list(seeds)


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


CLAIM = Claim(text="B ends above A.", value="end", arm="b", than="a")


def study(*claims: Claim, **kwargs: Any) -> Study:
    text = {"title": "T", "source": "S", "says": "C.", "load": "P.", "tried": "Q."}
    arms = {"a": None, "b": None}  # never run
    return Study(**text, equation="x^2", remark="R.", claims=claims, arms=arms, **kwargs)


def ends(a: list[float], b: list[float]) -> dict[str, list[Measured]]:
    def one(arm: str, seed: int, end: float) -> Measured:
        return Measured(
            arm, seed, False, "x", 2.0, 300.0, Outcome({"end": end}, {"end": [(0, 1.0)]})
        )

    return by_arm(
        [*(one("a", i, x) for i, x in enumerate(a)), *(one("b", i, x) for i, x in enumerate(b))]
    )


NOISE = [0.3, -0.2, 0.1, -0.4, 0.2, 0.0, -0.1, 0.1]


@pytest.mark.parametrize(
    ("claim", "shift", "word"),
    [
        (CLAIM, 1.0, "shown"),
        (CLAIM, -1.0, "shown against"),
        (CLAIM, 0.02, "too small to tell"),
        (replace(CLAIM, higher=False), 1.0, "shown against"),
        (replace(CLAIM, margin=2.0), 1.0, "shown against"),
        (replace(CLAIM, margin=-0.5), -0.02, "shown"),
        (replace(CLAIM, ratio=True, margin=1.05), 1.0, "shown"),
        (replace(CLAIM, than=None), 1.0, "shown"),  # against its own first point, 1
        (replace(CLAIM, than=20.0), 1.0, "shown against"),
        (replace(CLAIM, value="CPU s"), 1.0, "too small to tell"),
    ],
)
def test_a_claim_is_decided_by_the_seeds_that_both_arms_have(
    claim: Claim, shift: float, word: str
) -> None:
    a = [10.0 + i for i in range(8)]  # the seeds differ far more than the arms
    results = ends([*a, 99.0], [x + shift + e for x, e in zip(a, NOISE, strict=True)])
    verdict = decide(claim, results)
    assert verdict.word == word
    assert len(verdict.gains) == 8
    assert verdict.low <= verdict.mean <= verdict.high


def test_a_margin_is_reached_by_what_is_as_large_and_any_gain_is_above_none() -> None:
    half = replace(CLAIM, ratio=True, margin=2.0)
    assert decide(half, ends([1.0, 2.0], [2.0, 4.0])).word == "shown"
    assert decide(CLAIM, ends([1.0, 2.0], [1.0, 2.0])).word == "too small to tell"
    same = replace(CLAIM, ratio=True, margin=1.0)
    assert decide(same, ends([1.0, 2.0], [1.0, 2.0])).word == "too small to tell"


def test_claims_name_what_was_not_measured() -> None:
    with pytest.raises(ValueError, match=r"'end' of 'c' was not measured, for: B ends above A\."):
        decide(replace(CLAIM, arm="c"), ends([1.0], [2.0]))
    with pytest.raises(ValueError, match="margin of a ratio is a factor above 0, got 0"):
        replace(CLAIM, ratio=True)


def test_the_interval_covers_the_mean_of_eight_normal_values_in_95_of_100_cases() -> None:
    rng = np.random.default_rng(3)
    hits = 0
    for _ in range(400):
        low, high = interval(rng.normal(size=8))
        hits += low <= 0 <= high
    assert 0.92 <= hits / 400 <= 0.98


def test_a_section_has_ranges_costs_and_verdicts() -> None:
    results = ends([10.0, 11.0], [12.0, 13.0])
    head, rows = rows_of(study(), results)
    assert head == ["arm", "end", "seeds", "CPU s", "peak MiB"]
    assert rows[0] == ["a", "10.5 [10, 11]", "2", "2", "300"]
    text = section("toy", study(CLAIM, presets=("grpo",), seeds=2), results, "toy.png")
    assert "**Source.** S: C." in text
    assert "```math\nx^2\n```" in text
    assert "| B ends above A. | +2 [2, 2] | **shown** |" in text
    assert "assay family run toy" in text
    assert "`grpo`" in text


def test_an_open_claim_says_what_the_seeds_rule_out() -> None:
    text = section("toy", study(CLAIM, seeds=2), ends([1.0, 2.0], [2.0, 1.0]), None)
    assert "too small to tell (below 1)" in text


def test_fewer_seeds_than_asked_for_decide_nothing() -> None:
    text = section("toy", study(CLAIM), ends([1.0], [2.0]), None)
    assert "open until 8 seeds are run: B ends above A." in text
    assert "shown" not in text


def test_a_run_with_other_seeds_stands_beside_the_first() -> None:
    repeated = ends([10.0, 11.0], [10.5, 10.5])
    text = section("toy", study(CLAIM, seeds=2), ends([1.0, 2.0], [3.0, 4.0]), None, repeated)
    row = next(line for line in text.splitlines() if line.startswith("| B ends above A."))
    assert "| +2 [2, 2] | +0 [" in row
    assert row.endswith("| shown, and not repeated |")
    text = section("toy", study(CLAIM, seeds=2), repeated, None, ends([1.0, 2.0], [3.0, 4.0]))
    assert "| +2 [2, 2] | too small to tell (below 0.5) |" in text
    both = [verdicts(study(CLAIM), ends([1.0, 2.0], high)) for high in ([3.0, 4.0], [4.0, 6.0])]
    assert [v.word for v in agreed(*both)] == ["shown"]
    assert [v.word for v in agreed(both[0], verdicts(study(CLAIM), repeated))] == [
        "too small to tell"
    ]


def test_pictures_show_every_curve_and_every_claim(tmp_path: Path) -> None:
    png = draw_study(study(), by_arm(some()), tmp_path / "pictures/toy.png")
    assert png.read_bytes().startswith(b"\x89PNG")
    decided = [("T", verdict) for verdict in verdicts(study(CLAIM), ends([1.0], [2.0]))]
    overview = draw_overview(decided, tmp_path / "pictures/overview.png")
    assert overview.read_bytes().startswith(b"\x89PNG")
    assert sorted(p.name for p in png.parent.iterdir()) == ["overview.png", "toy.png"]


@pytest.mark.parametrize("name", studies())
def test_every_study_is_drawn_of_other_seeds_than_the_first(name: str, tmp_path: Path) -> None:
    found = [m for m in measured_before(name) if m.seed % 1000 > 5]
    assert draw_study(load(name), by_arm(found), tmp_path / "figure.png").exists()


def test_the_last_step_is_looked_at() -> None:
    assert [s for s in range(1, 24) if every(23, 4)(s)] == [5, 10, 15, 20, 23]


@pytest.mark.parametrize("name", studies())
def test_every_study_names_its_source_and_decides_its_claims(name: str) -> None:
    study = load(name)
    assert re.search(r"arXiv|no paper", study.source), "name the source"
    assert study.seeds >= 8
    assert study.claims
    for claim in study.claims:
        assert {claim.arm, claim.than if isinstance(claim.than, str) else claim.arm} <= set(
            study.arms
        )
    results = by_arm(measured_before(name))
    assert list(results) == list(study.arms), "measure again what has changed"
    assert all(len(found) >= 3 for found in results.values())
    assert not any(m.short for found in results.values() for m in found)
    if is_decided(study, results):
        assert len(verdicts(study, results)) == len(study.claims)


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
    assert "**Load.**" in (tmp_path / "section.md").read_text()
