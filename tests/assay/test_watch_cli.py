"""``assay report`` on the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def test_report_writes_a_page(run: Any, tmp_path: Path) -> None:
    rows = [{"step": step, "reward": 0.5} for step in range(3)]
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    code, shown, _ = run("report", tmp_path)
    assert code == 0
    assert f"Report: {tmp_path / 'report.html'}" in shown
    assert str(tmp_path / "x.html") in run("report", tmp_path, "-o", tmp_path / "x.html")[1]
    code, _, complaint = run("report", tmp_path / "none")
    assert (code, "is no run" in complaint) == (2, True)
