"""The catalogue says what the code says."""

import re
from pathlib import Path

from typer.testing import CliRunner

from assay.catalogue import entries, page
from assay.cli import app

PAGE = Path(__file__).parents[2] / "docs" / "catalogue.md"


def without_costs(text: str) -> list[str]:
    return [re.sub(r"[^|]*\|$", "", line) for line in text.splitlines()]


def test_the_page_of_the_docs_is_what_the_command_prints() -> None:
    expected = without_costs(page(entries(), costs=False))
    assert without_costs(PAGE.read_text()) == expected, (
        "run: assay verifiers --markdown > docs/catalogue.md; for one row: "
        "assay verifiers NAME --markdown"
    )


def test_every_verifier_shows_what_wins_what_loses_and_its_options() -> None:
    for entry in entries():
        assert entry.summary, entry.name
        if entry.folder == "judges" or entry.name in {"RayVerifier", "Rubric"}:
            continue  # they need a server, a cluster, parts
        assert any(example.wins for example in entry.examples), entry.name
        assert any(example.loses for example in entry.examples), entry.name


def test_one_verifier_is_shown_by_its_name() -> None:
    shown = CliRunner().invoke(app, ["verifiers", "Exact"])
    assert shown.exit_code == 0
    assert "| `case` | `True` |" in shown.stdout
    assert "a small letter" in shown.stdout
    assert "Paris⏎" in shown.stdout  # the second reply of its first example
    row = CliRunner().invoke(app, ["verifiers", "Exact", "--markdown"]).stdout
    assert without_costs(row)[0] in without_costs(PAGE.read_text())
    listed = CliRunner().invoke(app, ["verifiers"])
    assert "MultipleChoice" in listed.stdout
