"""Progress of long commands, with and without a terminal."""

import io

import pytest
from rich.console import Console

from assay import console


def test_progress_is_lines_without_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    log, screen = io.StringIO(), io.StringIO()
    monkeypatch.setattr(console, "LINE_EVERY_S", 0.0)
    for file, terminal in ((log, False), (screen, True)):
        monkeypatch.setattr(console, "err", Console(file=file, force_terminal=terminal))
        with console.progress() as bar:
            line = bar.add_task("tasks", total=3)
            bar.advance(line)
            bar.update(line, advance=1)
    assert log.getvalue().split("\n")[:2] == ["tasks: 1 of 3", "tasks: 2 of 3"]
    assert "tasks: 1 of 3" not in screen.getvalue()
