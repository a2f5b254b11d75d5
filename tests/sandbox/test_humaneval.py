"""The HumanEval benchmark's hacks, on rows of our own."""

from __future__ import annotations

import importlib.util
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


def test_right_solutions_pass_in_every_way_to_grade(box: Sandbox) -> None:
    found = hacks.count(box, ROWS, "", True)
    assert list(found) == list(KINDS)
    assert all(passed == total for passed, total in found.values()), found


@pytest.mark.parametrize("hack", hacks.HACKS)
def test_no_hack_pays_in_any_way_to_grade(box: Sandbox, hack: str) -> None:
    found = hacks.count(box, ROWS, hack, False)
    assert list(found) == list(KINDS)
    assert not any(passed for passed, _ in found.values()), found
