from pathlib import Path

WANTED = {
    "report_2025-03-14.txt": "pi\n",
    "report_2024-12-01.txt": "advent\n",
    "report_2023-07-04.txt": "fireworks\n",
    "notes.txt": "keep me\n",
}


def test_names_and_contents():
    found = {p.name: p.read_text() for p in Path("/app/reports").iterdir()}
    assert found == WANTED
