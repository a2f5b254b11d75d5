"""Hostile programs: each must end as a program's failure or success, and leave nothing.

The programs are in the folder ``attacks``, several to a file. Each begins with ``### its name``;
comments under that say how it may end (``# ends:``, ok by default) and how many processes it
leaves (``# orphans:``). A program prints ``GOT`` before whatever it was able to get. All begin
with the lines of ``prelude.txt``.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from assay.sandbox import Limits, RunStatus, Sandbox

pytestmark = pytest.mark.slow

FOLDER = Path(__file__).parent / "attacks"
ENDLESS = Limits(cpu_s=0.3, wall_s=1.0, memory_mib=128)
# On a busy machine the same work takes five times the CPU time: no reason for a timeout.
OTHERS = Limits(cpu_s=10.0, wall_s=60.0, memory_mib=128)
PRELUDE = (FOLDER / "prelude.txt").read_text("utf-8")


@dataclass(frozen=True)
class Attack:
    """One hostile program.

    Attributes:
        name: what it does.
        code: the program.
        ends: statuses it may have.
        orphans: processes it leaves, where that is known.
    """

    name: str
    code: str
    ends: frozenset[str]
    orphans: int | None


def read_attacks() -> Iterator[Attack]:
    """Read every attack of the folder."""
    for path in sorted(FOLDER.glob("*.txt")):
        for text in re.split(r"^### ", path.read_text("utf-8"), flags=re.MULTILINE)[1:]:
            name, _, code = text.partition("\n")
            marks = dict(re.findall(r"^# (ends|orphans): (.*)$", code, re.MULTILINE))
            orphans = int(marks["orphans"]) if "orphans" in marks else None
            ends = frozenset(marks.get("ends", "ok").split())
            yield Attack(f"{path.stem}: {name}", code, ends, orphans)


ATTACKS = list(read_attacks())

# Prints everything that a program could have changed for the next one. The first number is the
# time at which process 1 was started: the same slot, not a new one, prints the same line.
LOOK = (FOLDER / "look.txt").read_text("utf-8")


@pytest.fixture(scope="module")
def box(make_box) -> Iterator[Sandbox]:
    """A box of its own: a slot that others have used may be replaced for its age."""
    with make_box(slots=1, limits=OTHERS) as found:
        yield found


def look(box: Sandbox) -> dict[str, object]:
    """What a program finds in the slot."""
    result = box.run(LOOK)
    assert result.status is RunStatus.OK, result
    found: dict[str, object] = json.loads(result.stdout)
    assert (found["files"], found["others"]) == ([], [])
    return found


def withstand(box: Sandbox, attack: Attack) -> None:
    """Run an attack. It must get nothing, be blamed for its end, and leave the slot as it was."""
    before = look(box)
    limits = ENDLESS if "timeout" in attack.ends else OTHERS
    result = box.run(PRELUDE + attack.code, limits=limits)
    assert "GOT" not in result.stdout, result.stdout
    assert result.status.value in attack.ends, result
    if attack.orphans is not None:
        assert result.orphans >= attack.orphans  # one more may be about to leave
    after = look(box)
    if result.status is RunStatus.MEMORY:
        # The kernel may take process 1 as well, or keep what it has not freed yet: a new slot.
        after["slot"] = before["slot"]
    else:
        assert result.attempts == 1
    assert after == before


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_attack(box: Sandbox, attack: Attack) -> None:
    withstand(box, attack)


@pytest.mark.docker
def test_children_that_nobody_waits_for_are_charged_for(make_docker) -> None:
    """The kernel keeps no time of theirs, but for the control group."""
    code = next(attack.code for attack in ATTACKS if "nobody waits for" in attack.name)
    with make_docker(slots=1) as own:
        result = own.run(PRELUDE + code, limits=Limits(cpu_s=0.5, wall_s=20.0))
    assert (result.status, "CPU" in result.reason) == (RunStatus.TIMEOUT, True), result
    assert result.cpu_s > 0.4


# Against the other process of the run, which knows what is expected.
AGAINST_TESTS = (FOLDER / "against_tests.txt").read_text("utf-8")


def test_the_process_of_the_tests_is_out_of_reach(box: Sandbox) -> None:
    if box.backend == "bwrap" and os.geteuid() != 0:
        pytest.skip("only root may give candidate and tests a user each")
    before = look(box)
    tests = "assert solve(1) == 'tried'\nassert solve(1) == 'the answer is 7'"
    check = box.check_tests(PRELUDE + AGAINST_TESTS, tests, limits=OTHERS)
    assert "GOT" not in check.stdout, check.stdout
    assert check.stdout.count("refused") > 50
    assert (check.status, check.passed, check.total) == (RunStatus.OK, 1, 2), check
    assert look(box) == before


def test_attacks_by_candidates_are_their_failures(box: Sandbox) -> None:
    """Attacks that end by themselves, as programs whose function is wanted.

    Those on files, the kernel and what can be seen have no other rights or limits there.
    """
    before = look(box)
    for attack in ATTACKS:
        other = attack.name.startswith(("interpreter", "known", "processes"))
        if {"timeout", "memory"} & attack.ends or not other:
            continue
        code = PRELUDE + attack.code
        check = box.check_tests(code, "assert f(1) == 'the answer'", limits=ENDLESS)
        assert (check.passed, check.solved) == (0, False), attack.name
        assert check.status not in (RunStatus.SANDBOX_ERROR, RunStatus.BROKE_SANDBOX), attack.name
        assert "GOT" not in check.stdout, (attack.name, check.stdout)
    # A slot is replaced if the kernel keeps something of a program's.
    assert look(box) | {"slot": before["slot"]} == before
