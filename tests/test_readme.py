"""The README shows only code that runs: each block stands in an example."""

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent


def shown_in_examples():
    for path in (ROOT / "examples").glob("*.py"):
        for part in re.findall(r"# --8<-- README\n(.*?)# --8<--", path.read_text(), re.S):
            yield path.name, part.strip()


def test_every_python_block_is_an_example() -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / "README.md").read_text(), re.S | re.M)
    examples = dict(shown_in_examples())
    assert len(blocks) >= 3
    for block in blocks:
        assert block.strip() in examples.values(), f"no example holds:\n{block}"


def test_every_marked_example_is_shown() -> None:
    readme = (ROOT / "README.md").read_text()
    for name, part in shown_in_examples():
        assert part in readme, name


def test_every_link_to_a_file_leads_somewhere() -> None:
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]:
        for link in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
            assert link.startswith("http") or (page.parent / link).exists(), f"{page.name}: {link}"
