"""The notebooks run from the first cell to the last, each in a kernel of its own."""

from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")

FOLDER = Path(__file__).parent.parent / "examples" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def test_there_are_three() -> None:
    assert [path.stem for path in NOTEBOOKS] == ["evaluation", "trl", "verifier"]


@pytest.mark.filterwarnings("ignore")  # of Jupyter's own packages
@pytest.mark.parametrize(
    "path",
    [pytest.param(p, marks=pytest.mark.slow if p.stem == "trl" else ()) for p in NOTEBOOKS],
    ids=lambda path: path.stem,
)
def test_a_notebook_runs(path, tmp_path, monkeypatch) -> None:
    if path.stem == "trl":
        pytest.importorskip("trl")
    monkeypatch.setenv("PYTHONWARNINGS", "ignore")
    book = nbformat.read(path, as_version=4)
    for cell in book.cells:  # a third of the steps shows that it runs and learns
        cell.source = cell.source.replace('3e-3, "max_steps": 15', '1e-2, "max_steps": 5')
        cell.source = cell.source.replace('"logging_steps": 5', '"logging_steps": 1')
    there = {"metadata": {"path": str(tmp_path)}}
    done = nbclient.NotebookClient(book, timeout=280, resources=there).execute()
    printed = [cell.outputs for cell in done.cells if cell.cell_type == "code"]
    assert any(printed)
    assert path.stat().st_size < 50_000


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_stored_notebook_shows_what_it_prints(path) -> None:
    book = nbformat.read(path, as_version=4)
    code = [cell for cell in book.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    assert not [o for cell in code for o in cell.outputs if o.output_type == "error"]
