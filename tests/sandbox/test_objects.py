"""Programs whose tests use objects: right ones win, and no object talks its way to a pass.

The programs are in objects/, between lines of ``====``: a program, and each test file that it is
held against, between lines of ``----``. In wrong.txt ``#LIAR base`` stands for the class of
liar.txt, as a subclass of base. claims.txt holds tests alone, which liar.txt would like to pass.
"""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import pytest

from assay.sandbox import Check, Limits, Sandbox

BACKENDS = ("bwrap",)  # the guest's code is the same under every backend
pytestmark = pytest.mark.slow

LIMITS = Limits(cpu_s=2.0, wall_s=10.0, memory_mib=128)
FOLDER = Path(__file__).with_name("objects")
LIAR = (FOLDER / "liar.txt").read_text()
ASSERTIONS = [
    "assertEqual(f(3), 7)",
    "assertAlmostEqual(f(3), 7)",
    "assertCountEqual(f(3), [7])",
    "assertIn(7, f(3))",
    "assertIn(f(3), [7])",
    "assertLess(f(3), 7)",
    "assertGreaterEqual(f(3), 7)",
    "assertListEqual(f(3), [7])",
    "assertDictEqual(f(3), {7: 7})",
    "assertSetEqual(f(3), {7})",
    "assertSequenceEqual(f(3), [7])",
    "assertIs(f(3), True)",
    "assertIsInstance(f(3), int)",
    "assertRegex(f(3), '7')",
    "assertFalse(f(3))",
    "assertIsNone(f(3))",
]


def blocks(name: str) -> list[str]:
    return (FOLDER / name).read_text().removesuffix("\n").split("\n====\n")


def pairs(name: str) -> list[tuple[str, str]]:
    found = []
    for block in blocks(name):
        program, *tests = block.split("\n----\n")
        found += [(program, each) for each in tests or ["assert f([1, 2]) == 3"]]
    return found


def checked(box: Sandbox, program: str, tests: str) -> Check:
    entry_point = "Solution" if "Solution" in program else "f" if "candidate" in tests else None
    return box.check_tests(program, tests, entry_point=entry_point, limits=LIMITS)


@pytest.mark.parametrize(("program", "tests"), pairs("right.txt"), ids=lambda text: text[:30])
def test_right_programs_pass_tests_that_use_their_objects(
    box: Sandbox, program: str, tests: str
) -> None:
    check = checked(box, program, tests)
    assert check.solved, check


@pytest.mark.parametrize(
    "function", ["def f(x): return Liar()", "f = Liar", "def f(x): raise StopIteration(7)"]
)
def test_an_object_that_says_yes_passes_no_claim_about_it(box: Sandbox, function: str) -> None:
    """The last test, which passes, says that all those before it were run."""
    program = f"{LIAR}{function}\n"
    statements = []
    for claim in blocks("claims.txt"):
        if "def test" in claim or "def check" in claim:  # a whole test file
            check = checked(box, program, claim)
            assert (check.passed, check.solved) == (0, False), (claim, check)
        else:
            statements.append(textwrap.indent(claim, "    "))
    tests = [f"def test_{number}():\n{claim}" for number, claim in enumerate(statements)]
    tests.append("import unittest\nclass T(unittest.TestCase):")
    tests += [f"    def test_{n}(self): self.{each}" for n, each in enumerate(ASSERTIONS)]
    tests.append("    def test_z(self): self.assertEqual(7, 7)")
    check = box.check_tests(program, "\n".join(tests), limits=Limits(cpu_s=30.0, memory_mib=128))
    assert (check.passed, check.total) == (1, len(statements) + len(ASSERTIONS) + 1), check


def test_programs_that_lie_pass_nothing_and_buy_no_fault(box: Sandbox) -> None:
    def liar(base: re.Match[str]) -> str:
        return LIAR.replace("class Liar:", f"class Liar({base[1]}):")

    for program, tests in pairs("wrong.txt"):
        check = checked(box, re.sub(r"#LIAR ?(\w*)", liar, program), tests)
        assert not check.solved, (program, tests, check)
