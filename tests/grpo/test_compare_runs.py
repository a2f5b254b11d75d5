"""Runs beside each other: what belongs together, what they came to, and when."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from assay.grpo import GRPOConfig, compare_runs, read_history, write_comparison
from assay.grpo.watch.about import write_about
from assay.grpo.watch.compare import by_setting, first_reached, short_names
from assay.grpo.watch.history import Series
from assay.grpo.watch.overlay import band


@pytest.fixture
def make_run(tmp_path: Path) -> Any:
    """Makes a run whose reward is ``slope`` a step, evaluated every tenth step."""

    def make(name: str, slope: float, steps: int = 40, **config: Any) -> Path:
        home = tmp_path / name
        write_about(home, GRPOConfig(**config).to_json(), {"env": "E"})
        rows = []
        for step in range(steps + 1):
            row = {"step": step, "reward": slope * step, "tokens/s": 10.0, "seconds/update": 2.0}
            rows.append(row if step % 10 else {**row, "held_out/pass_at_1": slope * step})
        (home / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        return home

    return make


def test_seeds_of_a_setting_stand_together(make_run: Any) -> None:
    runs = [
        make_run("a1", 0.01, seed=1),
        make_run("b", 0.02, beta=0.25, seed=1),
        make_run("a2", 0.02, seed=2, save_every=7),
    ]
    found = compare_runs(runs, levels=[0.2, 0.6])
    assert [(s.label, len(s.runs)) for s in found.settings] == [("beta=0.0", 2), ("beta=0.25", 1)]
    table = {name: values for name, *values in found.rows}
    assert table == {
        "beta": ["0.0", "0.25"],
        "runs": ["2", "1"],
        "steps": ["40", "40"],
        "time": ["1 min 22 s", "1 min 22 s"],  # 41 rows of 2 s
        "held_out/pass_at_1, last": ["0.600 (0.400 to 0.800)", "0.800"],
        "held_out/pass_at_1, best": ["0.600 (0.400 to 0.800)", "0.800"],
        # Steps 31 to 40, on average 35.5, at 0.01 and 0.02: 0.5325.
        "reward, last 10": ["0.533 (0.355 to 0.710)", "0.710"],
        "tokens/s": ["10", "10"],
        "steps to 0.2": ["15 (10 to 20)", "10"],
        "time to 0.2": ["32 s (22 s to 42 s)", "22 s"],
        "steps to 0.6": ["30, 1 of 2 runs", "30"],
        "time to 0.6": ["1 min 2 s, 1 of 2 runs", "1 min 2 s"],
    }


def test_levels_are_those_that_some_run_rises_to(make_run: Any) -> None:
    rows = compare_runs([make_run("a", 0.01), make_run("b", 0.02, clip=0.1)]).rows
    assert [row[0] for row in rows if row[0].startswith("steps to")] == [
        "steps to 0.25",
        "steps to 0.5",
        "steps to 0.75",
    ]


def test_a_noisy_number_reaches_a_level_with_its_average(make_run: Any, tmp_path: Path) -> None:
    values = [1.0] + [0.0] * 14 + [1.0] * 15
    path = tmp_path / "noisy.jsonl"
    lines = [json.dumps({"step": i, "reward": v}) for i, v in enumerate(values, start=1)]
    path.write_text("\n".join(lines) + "\n")
    # Of ten steps up to the 20th five are 1; the lucky first step alone does not count.
    assert first_reached(read_history(path), "reward", 0.5) == 20
    assert first_reached(read_history(path), "reward", 1.1) is None


def test_runs_of_others_and_of_other_lengths(make_run: Any, tmp_path: Path) -> None:
    other = tmp_path / "trl.jsonl"
    rows = [{"step": step, "reward": 0.5, "new": "text"} for step in range(5)]
    other.write_text("".join(json.dumps(row) + "\n" for row in rows))
    runs = [make_run("s1", 0.01, seed=1), make_run("s2", 0.01, steps=12, seed=2), other]
    found = compare_runs(runs)
    assert [s.label for s in found.settings] == ["s1", "trl.jsonl"]
    table = {name: values for name, *values in found.rows}
    assert table["time"][1] == table["tokens/s"][1] == "-"
    page = write_comparison(found, tmp_path / "new" / "compare.html").read_text()
    assert "s1 (2 seeds)" in page
    assert "trl.jsonl" in page
    png = write_comparison(found, tmp_path / "new" / "compare.png")
    assert png.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    with pytest.raises(ValueError, match=r"a \.html or a \.png file, got '.*x\.svg'"):
        write_comparison(found, tmp_path / "x.svg")


def test_a_setting_that_an_older_run_does_not_know_is_todays_default(make_run: Any) -> None:
    old, new = make_run("old", 0.01), make_run("new", 0.01)
    about = json.loads((old / "run.json").read_text())
    del about["config"]["beta"]
    (old / "run.json").write_text(json.dumps(about))
    (only,), differences = by_setting([read_history(old), read_history(new)])
    assert len(only.runs) == 2
    assert differences == {}


def test_bands_cover_the_steps_that_all_have() -> None:
    means, (low, high) = band([Series([1, 2, 3], [1.0, 2.0, 3.0]), Series([2, 3, 4], [4.0] * 3)])
    assert means == Series([2, 3], [3.0, 3.5])
    assert (low, high) == ([2.0, 3.0], [4.0, 4.0])


def test_names_are_as_short_as_they_can_be() -> None:
    assert short_names(["/x/a/run", "/x/b/run", "/x/c"]) == ["a/run", "b/run", "x/c"]
    assert short_names(["/x/a", "/x/a"]) == ["/x/a #1", "/x/a #2"]


def test_what_cannot_be_compared_is_refused(make_run: Any, tmp_path: Path) -> None:
    run = make_run("a", 0.01)
    with pytest.raises(ValueError, match="at least two runs, got 1"):
        compare_runs([run])
    with pytest.raises(ValueError, match="is no run"):
        compare_runs([run, tmp_path / "none"])
    with pytest.raises(ValueError, match="no run has 'rewrd'; there are held_out/pass_at_1, rew"):
        compare_runs([run, run], metric="rewrd")
