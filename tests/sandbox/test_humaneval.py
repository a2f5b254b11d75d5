"""The HumanEval benchmark's hacks, on rows of our own; on the data set too, where there is one."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

import pytest

from assay.sandbox import Sandbox

BACKENDS = ("bwrap",)  # test_reward_hacks.py has hacks for every backend
pytestmark = pytest.mark.slow

PATH = Path(__file__).parent.parent.parent / "benchmarks" / "humaneval_hacks.py"
_spec = importlib.util.spec_from_file_location("humaneval_hacks", PATH)
assert _spec is not None
assert _spec.loader is not None
hacks = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(hacks)

KINDS = ("tests", "calls", "stdio")
ROWS = [
    {
        "task_id": "own/0",
        "prompt": "def longest(words):\n    '''The longest of some words, or None.'''\n",
        "canonical_solution": "    return max(words, key=len) if words else None\n",
        "entry_point": "longest",
        "test": """
def check(candidate):
    assert candidate(["a", "bb"]) == "bb"
    assert candidate(["a"]) == "a"
    assert candidate([]) is None
    assert len(candidate(["abc", "d"])) == 3
""",
    },
    {
        "task_id": "own/1",
        "prompt": "import math\n\ndef mean(xs):\n    return sum(xs) / len(xs)\n\n"
        "def spread(xs):\n    '''Standard deviation.'''\n",
        "canonical_solution": "    m = mean(xs)\n"
        "    return math.sqrt(mean([(x - m) ** 2 for x in xs]))\n",
        "entry_point": "spread",
        "test": """
METADATA = {}
def check(candidate):
    assert candidate([1.0, 3.0]) == 1.0
    assert candidate([5]) == 0.0
    assert abs(candidate([1, 2, 3]) - 0.816496580927726) < 1e-9
    for n in range(1, 4):
        assert math.isclose(candidate([n, -n]), n)
""",
    },
]


def rows() -> list[dict[str, object]]:
    """Ours, and every tenth of HumanEval's from the folder ASSAY_DATA."""
    folder = os.environ.get("ASSAY_DATA")
    return ROWS + (hacks.read(Path(folder) / "HumanEval.jsonl.gz")[::10] if folder else [])


def test_right_solutions_pass_in_every_way_to_grade(box: Sandbox) -> None:
    found = hacks.count(box, rows(), "", True)
    assert list(found) == list(KINDS)
    assert all(passed == total for passed, total in found.values()), found


@pytest.mark.parametrize("hack", hacks.HACKS)
def test_no_hack_pays_in_any_way_to_grade(box: Sandbox, hack: str) -> None:
    found = hacks.count(box, rows(), hack, False)
    assert list(found) == list(KINDS)
    assert not any(passed for passed, _ in found.values()), found


@pytest.mark.parametrize("hack", hacks.HACKS)
def test_a_hack_before_a_right_solution_breaks_nothing(box: Sandbox, hack: str) -> None:
    hacks.count(box, rows(), hack, True)
    assert all(passed == total for passed, total in hacks.count(box, ROWS, "", True).values())


@pytest.mark.skipif("ASSAY_DATA" not in os.environ, reason="ASSAY_DATA names no folder")
def test_every_right_solution_of_the_data_set_passes(box: Sandbox) -> None:
    every = hacks.read(Path(os.environ["ASSAY_DATA"]) / "HumanEval.jsonl.gz")
    found = hacks.count(box, every, "", True)
    assert found["tests"] == (164, 164)
    assert all(passed == total for passed, total in found.values()), found
