"""The tutorials show only code that runs: ``python`` is run, ``pycon`` must answer as it says."""

import doctest
import re
import sys
import types
from pathlib import Path

import pytest

DOCS = Path(__file__).parent.parent / "docs"
PAGES = ["tasks.md", "environments.md", "multi_turn.md", "start/verifier.md", "start/grade.md"]
PAGES += ["audit.md"]


@pytest.mark.parametrize("page", PAGES)
def test_what_a_tutorial_shows_is_so(page, monkeypatch, tmp_path) -> None:
    module = types.ModuleType(f"tutorial_{Path(page).stem}")
    monkeypatch.setitem(sys.modules, module.__name__, module)  # so that what it defines pickles
    monkeypatch.chdir(tmp_path)  # for what it writes
    text = (DOCS / page).read_text()
    told: list[str] = []
    for found in re.finditer(r"^```(python|pycon)\n(.*?)^```", text, re.S | re.M):
        kind, block = found.groups()
        line = text[: found.start()].count("\n") + 1
        if kind == "python":
            exec(compile(block, f"{page}, line {line}", "exec"), module.__dict__)  # noqa: S102
            continue
        test = doctest.DocTestParser().get_doctest(block, {}, page, page, line)
        test.globs = module.__dict__
        runner = doctest.DocTestRunner(optionflags=doctest.IGNORE_EXCEPTION_DETAIL)
        runner.run(test, out=told.append, clear_globs=False)
    assert not told, "".join(told)
