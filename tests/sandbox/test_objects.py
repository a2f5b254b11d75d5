"""Programs whose tests use objects: right ones win, and no object talks its way to a pass.

The programs are in objects/: pairs of a program and its tests, between lines of ``====`` and
``----``. claims.txt holds tests alone, which liar.txt would like to pass.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from assay.sandbox import Check, Limits, Sandbox

pytestmark = pytest.mark.slow

LIMITS = Limits(cpu_s=2.0, wall_s=10.0, memory_mib=128)
FOLDER = Path(__file__).with_name("objects")
LIAR = (FOLDER / "liar.txt").read_text()


def blocks(name: str) -> list[str]:
    return (FOLDER / name).read_text().removesuffix("\n").split("\n====\n")


def checked(box: Sandbox, program: str, tests: str) -> Check:
    entry_point = "Solution" if "Solution" in program else "f" if "candidate" in tests else None
    return box.check_tests(program, tests, entry_point=entry_point, limits=LIMITS)


@pytest.mark.parametrize("pair", blocks("right.txt"), ids=lambda pair: pair[:30])
def test_right_programs_pass_tests_that_use_their_objects(box: Sandbox, pair: str) -> None:
    check = checked(box, *pair.split("\n----\n"))
    assert check.solved, check


@pytest.mark.parametrize("function", ["def f(x): return Liar()", "f = Liar"])
def test_an_object_that_says_yes_passes_no_claim_about_it(box: Sandbox, function: str) -> None:
    for tests in blocks("claims.txt"):
        check = checked(box, f"{LIAR}{function}\n", tests)
        assert not check.solved, (tests, check)


def test_programs_that_lie_pass_nothing_and_buy_no_fault(box: Sandbox) -> None:
    for pair in blocks("wrong.txt"):
        program, tests = pair.split("\n----\n")
        check = checked(box, program.replace("#LIAR", LIAR), tests)
        assert not check.solved, (pair, check)
