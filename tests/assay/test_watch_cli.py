"""``assay report`` on the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

COLUMNS = 160


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A short run, whose model writes to the terminal that reads it."""
    home = tmp_path / "run"
    home.mkdir()
    rows = [{"step": step, "reward": 0.5} for step in range(3)]
    (home / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    reply = {
        "text": "[bold]\x1b[2J",
        "reward": None,
        "rewards": {},
        "status": "sandbox_error",
        "reason": "gone",
        "advantage": None,
        "tokens": 2,
        "truncated": True,
    }
    rows = [
        {"step": s, "groups": [{"kept_as": "best", "task": "t", "prompt": f"p{s}?", "size": 1}]}
        for s in range(3)
    ]
    for row in rows:
        row["groups"][0]["replies"] = [reply]  # type: ignore[index]  # a list, as built above
    (home / "samples.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return home


def test_report_writes_a_page_and_prints_samples(run: Any, home: Path) -> None:
    code, shown, _ = run("report", home, "--samples", 1)
    assert code == 0
    assert f"Report: {home / 'report.html'}" in shown
    assert "p2?" in shown
    assert "p1?" not in shown
    assert r"[bold]\x1b[2J" in shown
    assert "\x1b[2J" not in shown
    assert "p1?" in run("report", home, "--step", 1, "-o", home / "x.html")[1]
    code, _, complaint = run("report", home, "--step", -1)
    assert (code, "kept no samples up to step -1" in complaint) == (2, True)
    code, _, complaint = run("report", home / "none")
    assert (code, "is no run" in complaint) == (2, True)
