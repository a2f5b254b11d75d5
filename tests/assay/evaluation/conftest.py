"""What the tests of evaluation share: a browser, and a run to browse."""

import importlib.util
import os
from pathlib import Path

import pytest


def _load(path: Path):
    spec = importlib.util.spec_from_file_location(path.stem + "_for_tests", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def demo():
    """Makes runs with long replies: what the benchmark browses."""
    return _load(Path(__file__).parents[3] / "benchmarks" / "view.py")


@pytest.fixture(scope="module")
def page():
    """A headless browser; skipped where there is none, unless ASSAY_REQUIRE_CHROMIUM is 1."""
    pytest.importorskip("websockets")
    headless = _load(Path(__file__).parent / "headless.py")
    if headless.browser_path() is None:
        if os.environ.get("ASSAY_REQUIRE_CHROMIUM") == "1":
            pytest.fail("no Chromium is installed")
        pytest.skip("no Chromium is installed")
    browser = headless.Headless()
    yield browser
    browser.close()
