"""The gallery says what the code says."""

import re
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from assay.cli import app
from assay.envs import UnknownEnvironment, specs
from assay.gallery import page

PAGE = Path(__file__).parents[2] / "docs" / "gallery.md"


def test_the_page_of_the_docs_is_what_the_command_prints() -> None:
    found = page()
    assert PAGE.read_text() == found, "run: assay list --markdown > docs/gallery.md"
    listed = re.findall(r"^\| (assay/\S+) \|", found, re.M)
    own = {s.id for s in specs() if s.id.startswith("assay/")}
    assert sorted(listed) == sorted(own - {"assay/Harbor-v0"})  # it has no sample


@pytest.mark.slow
def test_every_environment_shows_its_needs_a_prompt_and_its_options() -> None:
    for spec in specs():
        if spec.id.startswith("assay/") and spec.id != "assay/Harbor-v0":  # it has no sample
            section = CliRunner().invoke(app, ["list", spec.id]).stdout
            assert "\nNeeds: " in section, spec.id
            assert "\nPrompt" in section, spec.id
            rows = [line for line in section.splitlines() if line.startswith("| `")]
            assert all(row.split(" | ")[-1].strip(" |") for row in rows), f"{spec.id}: {rows}"


def test_one_environment_is_shown_by_its_id() -> None:
    shown = CliRunner().invoke(app, ["list", "assay/AIME-v1"])
    assert shown.exit_code == 0
    assert "A reply that earns full marks:" in shown.stdout
    assert "| `think` | `False` |" in shown.stdout
    missed = CliRunner().invoke(app, ["list", "assay/AIMEE-v1"])
    assert isinstance(missed.exception, UnknownEnvironment)
    assert "Did you mean assay/AIME-v1" in str(missed.exception)


def test_an_environment_of_a_module_in_this_folder_is_shown(tmp_path, monkeypatch) -> None:
    (tmp_path / "shown_here.py").write_text(
        "from assay import register_rows\n"
        "register_rows('shown/Here-v0', [{'q': f'{n}?', 'a': 'b'} for n in range(40)], "
        "prompt='{q}', reference='a', rubric='Exact', solution='{a}')\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", sys.path[:])
    shown = CliRunner().invoke(app, ["list", "shown_here:shown/Here-v0"])
    assert shown.exit_code == 0, shown.exception
    assert "### shown/Here-v0" in shown.stdout
