"""The measuring core: what it counts, and that a wrong output is never timed as a right one."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from assay.cli import app
from assay.sandbox import SandboxError
from assay.sandbox.diagnostics.bench import (
    BARE,
    OUTPUT,
    Design,
    Figure,
    bare,
    measure,
)


def test_a_figure_counts_programs_and_times() -> None:
    figure = Figure("x", 2, seconds=2.0, times=[0.001 * n for n in range(1, 102)])
    assert figure.per_s == 50.5
    assert figure.median_ms == pytest.approx(51.0)
    assert figure.p99_ms == pytest.approx(100.0)


def test_a_wrong_output_ends_the_measurement() -> None:
    with pytest.raises(SandboxError, match="liar printed 'fast'"):
        measure([Design("liar", lambda: "fast")], 1, seconds=0.01, rounds=1)


def test_designs_take_turns_and_small_ones_are_left_out() -> None:
    turns: list[str] = []
    designs = [Design("a", lambda: OUTPUT), Design("b", lambda: OUTPUT, 1)]
    both = measure(designs, 1, seconds=0.01, rounds=2, on_turn=turns.append)
    assert turns == ["a", "b", "a", "b"]
    assert [figure.name for figure in both] == ["a", "b"]
    assert [f.name for f in measure(designs, 2, seconds=0.01, rounds=1)] == ["a"]


def test_the_baseline_runs_no_pth_files() -> None:
    """They take longer than the program, and would flatter every sandbox."""
    with bare() as interpreters:
        found = measure(interpreters, 1, seconds=0.01, rounds=1)
    assert [figure.name for figure in found] == [BARE, f"{BARE} -S"]


@pytest.mark.bwrap
def test_the_command_prints_a_table(make_bwrap) -> None:
    asked = ["--backend", "bwrap", "--concurrency", "2", "--seconds", "0.1", "--rounds", "1"]
    result = CliRunner().invoke(app, ["sandbox", "bench", *asked])
    assert result.exit_code == 0, result.output
    assert "two-party" in result.output
    assert BARE in result.output
