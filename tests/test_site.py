"""The documentation site, as far as its sources show it: `make site` builds it without warnings."""

import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
PACKAGES = ["assay.envs", "assay.verifiers", "assay.sandbox", "assay.grpo", "assay.evaluation"]
PACKAGES += ["assay.service"]


def test_every_page_is_in_one_toctree() -> None:
    index = (DOCS / "index.md").read_text()
    toctrees = re.findall(r"^```{toctree}\n(?::[^\n]*\n)*\n(.*?)^```", index, re.S | re.M)
    entries = "".join(toctrees).split()
    listed = [page for entry in entries for page in DOCS.glob(f"{entry}.md")]
    assert sorted([*listed, DOCS / "index.md"]) == PAGES


@pytest.mark.parametrize(
    "page",
    [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *PAGES],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_every_link_leads_to_a_file(page) -> None:
    links = re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text())
    assert [x for x in links if not x.startswith("http") and not (page.parent / x).exists()] == []


def test_every_file_that_readme_names_exists() -> None:
    named = re.findall(r"\b((?:docs|examples|tests)/[\w/]+\.\w+)", (ROOT / "README.md").read_text())
    assert len(named) > 10
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_the_layout_names_every_folder() -> None:
    layout = (DOCS / "architecture.md").read_text()
    rooms = [ROOT / room for room in ("sandbox", "verifiers", "envs", "grpo", "assay")]
    folders = {path.parent.name for room in rooms for path in room.glob("*/*") if path.is_file()}
    assert {name for name in folders - {"__pycache__"} if f"{name}/" not in layout} == set()


@pytest.mark.parametrize("name", ["assay", *PACKAGES])
def test_every_public_name_has_a_page(name) -> None:
    """A page of reference/ is filled by its package; `assay` links to the packages below it."""
    package = importlib.import_module(name)
    page = DOCS / "reference" / f"{name.rpartition('.')[2]}.md"
    assert page.read_text() == f"# {name}\n"
    homes = [importlib.import_module(home) for home in PACKAGES]
    for public in package.__all__:
        value = getattr(package, public)
        assert any(public in h.__all__ and getattr(h, public) is value for h in homes), public


@pytest.mark.parametrize("page", sorted((DOCS / "start").glob("*.md")), ids=lambda page: page.stem)
def test_a_start_page_is_short(page) -> None:
    assert len(page.read_text().splitlines()) <= 60


@pytest.mark.parametrize(
    ("page", "example"), [("trl", "train_trl.py"), ("sandbox", "code_rewards.py")]
)
def test_a_start_page_shows_an_example_that_runs(page, example) -> None:
    (block,) = re.findall(
        r"^```python\n(.*?)^```", (DOCS / f"start/{page}.md").read_text(), re.S | re.M
    )
    assert block in (ROOT / "examples" / example).read_text()
