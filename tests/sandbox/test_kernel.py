"""What a program makes the kernel keep: bounded for it, and gone for the next one.

The hostile programs are in the folder ``attacks``; those here are honest, or need limits of their
own.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from assay.sandbox import Limits, RunStatus, Sandbox
from assay.sandbox.backends.bpf import filter_program

pytestmark = pytest.mark.slow

PROGRAMS = tomllib.loads(Path(__file__).with_name("kernel.toml").read_text("utf-8"))
HONEST = re.split(
    r"^### ", Path(__file__).with_name("honest.txt").read_text("utf-8"), flags=re.MULTILINE
)[1:]


@pytest.mark.parametrize("program", HONEST, ids=lambda program: program.partition("\n")[0])
def test_an_honest_program_misses_nothing(box: Sandbox, program: str) -> None:
    result = box.run(program.partition("\n")[2], limits=Limits(cpu_s=10.0, memory_mib=128))
    assert result.status is RunStatus.OK, result
    assert set(result.stdout.split()) == {"True"}


def test_a_port_is_free_for_the_next_program(box: Sandbox) -> None:
    """The side that closes first leaves it taken for a minute."""
    for _ in range(3):
        assert box.run(PROGRAMS["server"]).stdout == "b''\n"


def test_sockets_of_a_program_do_not_count_against_the_next(make_box) -> None:
    """The kernel frees them a moment after the last process has ended."""
    with make_box(slots=1, limits=Limits(memory_mib=256)) as box:
        for _ in range(4):
            assert box.run(PROGRAMS["sockets"]).status is RunStatus.MEMORY
            result = box.run(PROGRAMS["count_sockets"])
            assert (result.status, result.stdout) == (RunStatus.OK, "True\n"), result


def test_names_that_a_program_looked_up_do_not_count_against_the_next(make_box) -> None:
    """The kernel remembers files that do not exist as well, and charges the sandbox for it."""
    with make_box(slots=1, limits=Limits(cpu_s=20.0, memory_mib=128)) as box:
        few, many, after = (
            box.run(PROGRAMS["names"].replace("NUMBER", n)) for n in ("100", "50000", "1")
        )
    assert [r.status for r in (few, many, after)] == [RunStatus.OK] * 3, (few, many, after)
    assert [r.attempts for r in (few, many, after)] == [1, 1, 1]
    assert few.stdout == many.stdout != after.stdout  # when process 1 was started


def test_file_locks_are_memory(box: Sandbox) -> None:
    result = box.run(PROGRAMS["locks"], limits=Limits(cpu_s=60.0, memory_mib=128))
    assert (result.status, result.attempts) == (RunStatus.MEMORY, 1), result
    assert result.reason == "it had more than a thousand file locks"


def test_sockets_are_counted_in_all_processes(box: Sandbox) -> None:
    code = """
import os, socket, time
if os.fork() == 0: os.fork()
held = [socket.socket() for i in range({0})]
time.sleep(0.5)
"""
    limits = Limits(files=64, memory_mib=128)
    few, many = (box.run(code.format(number), limits=limits) for number in (20, 40))
    assert few.status is RunStatus.OK, few
    assert (many.status, many.reason) == (RunStatus.MEMORY, "it had more than 64 sockets")


def run_filter(program: bytes, machine: int, number: int, *arguments: int) -> int:
    """Do what the kernel does with a filter."""
    words = [number, machine, 0, 0]
    for argument in [*arguments, *[0] * 6][:6]:
        words += [argument & 0xFFFFFFFF, argument >> 32]
    steps = [
        (int.from_bytes(step[:2], "little"), step[2], step[3], int.from_bytes(step[4:], "little"))
        for step in (program[at : at + 8] for at in range(0, len(program), 8))
    ]
    at = held = 0
    while True:
        operation, if_true, if_false, value = steps[at]
        at += 1
        if operation == 0x06:
            return value
        if operation == 0x20:
            held = words[value // 4]
        elif operation == 0x54:
            held &= value
        else:
            true = {0x15: held == value, 0x35: held >= value}[operation]
            at += if_true if true else if_false


ALLOWED, DONE, REFUSED, MISSING = 0x7FFF0000, 0x50000, 0x50001, 0x50000 | 38


@pytest.mark.parametrize(
    ("number", "arguments", "answer"),
    [
        (198, (1, 1, 0), ALLOWED),  # a unix socket
        (198, (2, 1 | 0x80800, 6), ALLOWED),  # TCP, with two flags
        (198, (2, 2, 17), ALLOWED),
        (198, (2, 2, 1), REFUSED),  # ping
        (198, (2, 1, 262), REFUSED),  # MPTCP
        (198, (2, 5, 0), REFUSED),  # SCTP
        (198, (16, 3, 0), ALLOWED),
        (198, (16, 3, 2), REFUSED),
        (198, (40, 1, 0), REFUSED),
        (198, ((1 << 32) + 40, 1, 0), REFUSED),
        (208, (3, 1, 2), ALLOWED),  # SO_REUSEADDR
        (208, (3, 1, 8), DONE),  # SO_RCVBUF
        (208, (3, 1, 26), REFUSED),  # SO_ATTACH_FILTER
        (208, (3, (1 << 32) + 1, 8), DONE),
        (208, (3, 6, 1), ALLOWED),  # TCP_NODELAY
        (208, (3, 6, 31), REFUSED),  # TCP_ULP
        (208, (3, 6, 13), ALLOWED),  # TCP_CONGESTION
        (208, (3, 41, 26), ALLOWED),  # IPV6_V6ONLY
        (208, (3, 41, 32), REFUSED),  # IPV6_FLOWLABEL_MGR
        (199, (1, 1, 0), ALLOWED),  # a pair of unix sockets
        (199, (40, 1, 0), REFUSED),
        (261, (0, 3, 1 << 40), ALLOWED),  # RLIMIT_STACK
        (261, (7, 4, 0), ALLOWED),  # reads RLIMIT_CORE
        (261, (0, 4, 1 << 40), DONE),  # writes it
        (164, (4, 1 << 40), DONE),
        (164, (7, 1 << 40), ALLOWED),
        (81, (), DONE),  # sync
        (267, (3,), DONE),
        (167, (15,), ALLOWED),  # PR_SET_NAME
        (167, (22,), REFUSED),  # PR_SET_SECCOMP
        (167, (62,), REFUSED),  # PR_SCHED_CORE
        (167, (21,), ALLOWED),
        (167, (23,), ALLOWED),
        (167, (0x59616D61,), ALLOWED),
        (222, (0, 4096, 3, 0x22), ALLOWED),
        (222, (0, 4096, 3, 0x40022), REFUSED),  # MAP_HUGETLB
        (279, (0, 1), ALLOWED),
        (279, (0, 5), REFUSED),
        (25, (3, 6), ALLOWED),  # F_SETLK
        (25, (3, 1033), ALLOWED),  # F_ADD_SEALS
        (25, (3, 37), REFUSED),  # F_OFD_SETLK
        (220, (17,), ALLOWED),  # fork
        (220, (0x3D0F00,), ALLOWED),  # a thread
        (220, (0x4111,), ALLOWED),  # vfork
        (220, (0x411,), REFUSED),  # shares files
        (220, (0x10000011,), REFUSED),  # a user namespace
        (5, (0, 0, 0, 0), 0x50000 | 95),  # setxattr
        (117, (0,), REFUSED),  # ptrace
        (435, (0,), MISSING),  # clone3
        (434, (1,), ALLOWED),  # pidfd_open
        (63, (0, 0, 1), ALLOWED),  # read
    ],
)
def test_the_filter_of_the_other_machine(
    number: int, arguments: tuple[int, ...], answer: int
) -> None:
    """By its numbers; on this one programs try it for real."""
    program = filter_program("aarch64")
    assert program is not None
    assert run_filter(program, 0xC00000B7, number, *arguments) == answer
    assert run_filter(program, 0x40000028, number, *arguments) == MISSING  # 32-bit ARM
