"""Programs in other languages: how they run, how they end, and what they leave behind."""

from __future__ import annotations

import asyncio
import shutil
import tomllib
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from assay.sandbox import (
    LANGUAGES,
    LanguageUnavailable,
    Limits,
    ProgrammingLanguage,
    RunStatus,
    Sandbox,
    find_language,
    language_of_file,
)

pytestmark = pytest.mark.slow

LIMITS = Limits(cpu_s=1.0, wall_s=60.0, memory_mib=128, output_bytes=1 << 16)

PROGRAMS = tomllib.loads(Path(__file__).with_name("languages.toml").read_text("utf-8"))
DOUBLE = PROGRAMS["double"]

# Two lines of bash stand for a compiler that a candidate has taken over.
MADE = ProgrammingLanguage(
    "made", "main.sh", command=("cat", "program"), compile=("bash", "main.sh"), fences=("x",)
)
SCRIPT = ProgrammingLanguage("script", "main.py", command=("python3", "main.py"))
SHELL = replace(MADE, name="shell", command=("bash", "program"))
RANDOM = "head -c 16 /dev/urandom | od -An -tx1 > program"


@pytest.fixture(
    scope="module",
    params=[
        pytest.param("docker", marks=pytest.mark.docker),
        pytest.param("bwrap", marks=pytest.mark.bwrap),
    ],
)
def box(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    """A box of one slot, beside one for compilers: what a program leaves, the next would find."""
    if request.param == "docker":
        tag = request.getfixturevalue("toolchains")
        with Sandbox(tag, slots=1, limits=LIMITS) as found:
            yield found
    else:
        with request.getfixturevalue("make_bwrap")(slots=1, limits=LIMITS) as found:
            yield found


def need(box: Sandbox, name: str) -> None:
    """Skip where bubblewrap would show a machine that lacks a language."""
    if box.backend == "bwrap" and shutil.which(LANGUAGES[name].needs, path="/usr/bin") is None:
        pytest.skip(f"this machine has no {LANGUAGES[name].needs}")


@pytest.fixture(autouse=True)
def _clean_afterwards(request: pytest.FixtureRequest) -> Iterator[None]:
    """After every test the same slot runs a program that finds nothing of the last one."""
    yield
    if "box" in request.fixturenames:
        box = request.getfixturevalue("box")
        found = box.run(
            "import os\n"
            "print(len([p for p in os.listdir('/proc') if p.isdigit()]), os.listdir('/tmp'),"
            " os.listdir('/dev/shm'), sorted(os.listdir('/proc/self/fd')))",
            language=SCRIPT,  # of the slots that other languages have
        )
        assert (found.stdout, found.attempts) == ("2 ['main.py'] [] ['0', '1', '2', '3']\n", 1), (
            found
        )


# -- running -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["c", "cpp", "javascript", "bash"])
def test_a_program_reads_its_input_and_prints(box: Sandbox, name: str) -> None:
    need(box, name)
    result = box.run(DOUBLE[name], "21\n", language=name)
    assert (result.status, result.stdout, result.exit_code) == (RunStatus.OK, "42\n", 0), result
    assert result.backend == box.backend


@pytest.mark.parametrize("name", ["go", "rust"])
def test_a_language_whose_tools_are_missing_is_no_verdict(box: Sandbox, name: str) -> None:
    if box.backend == "bwrap" and shutil.which(LANGUAGES[name].needs, path="/usr/bin"):
        assert box.run(DOUBLE[name], "21\n", language=name).stdout == "42\n"
        return
    with pytest.raises(LanguageUnavailable, match=f"{name} needs '{LANGUAGES[name].needs}'") as e:
        box.run(DOUBLE[name], language=name)
    assert "No program was judged" in str(e.value)
    with pytest.raises(LanguageUnavailable):
        box.run_many([DOUBLE[name]] * 2, language=name)


@pytest.mark.docker
def test_the_error_names_the_image_and_the_command_that_makes_one(image: str) -> None:
    with (
        Sandbox(image, slots=1) as box,
        pytest.raises(LanguageUnavailable, match="javascript needs 'node'") as error,
    ):
        box.run("1", language="js")
    assert "assay sandbox build toolchains" in str(error.value)
    assert "sha256:" in str(error.value)


def test_many_cases_of_one_program(box: Sandbox) -> None:
    need(box, "c")
    cases = [(f"{n}\n", str(2 * n)) for n in range(20)]
    check = box.check_stdio(DOUBLE["c"], cases, language="c")
    assert (check.solved, check.passed) == (True, 20)
    check = box.check_stdio(DOUBLE["c"], [("1", "2"), ("2", "5")], language="C")
    assert (check.passed, check.total) == (1, 2)
    check = box.check_stdio("int main(void) { retrun 0; }", [("1", "2")] * 9, language="c")
    assert (check.status, check.passed) == (RunStatus.COMPILE_ERROR, 0)
    assert "main.c:1:18: error:" in check.reason


def test_a_language_of_ones_own(box: Sandbox) -> None:
    sorted_ = ProgrammingLanguage("sort", "main.txt", command=("sort", "-n", "main.txt"))
    assert box.run("10\n9\n8\n", language=sorted_).stdout == "8\n9\n10\n"
    memory = ProgrammingLanguage("echo", "x", command=("echo", "{memory_mib}"))
    assert box.run("", language=memory).stdout == "128\n"


def test_only_python_has_functions_to_call(box: Sandbox) -> None:
    with pytest.raises(ValueError, match="only Python's functions can be called, not those of c"):
        box.check_calls("int f(void);", "f", [((), 1)], language="c")
    with pytest.raises(ValueError, match="check_stdio"):
        box.check_tests("int f(void);", "assert f() == 1", language="c")
    assert box.check_calls("def f(): return 1", "f", [((), 1)], language="py").solved


@pytest.mark.parametrize(
    ("name", "near"),
    [("javscript", "'javascript'"), ("c#", "'c"), ("rst", "'rust'"), ("", "python, c, cpp")],
)
def test_an_unknown_language_names_those_near_to_it(name: str, near: str) -> None:
    with pytest.raises(ValueError, match=f"unknown language '{name}'.*{near}"):
        find_language(name)


def test_names_and_endings_lead_to_one_language() -> None:
    names = [name for known in LANGUAGES.values() for name in (known.name, *known.fences)]
    endings = [ending for known in LANGUAGES.values() for ending in known.suffixes]
    assert len(set(names)) == len(names)
    assert len(set(endings)) == len(endings)
    assert language_of_file("a.b.cc").name == "cpp"
    with pytest.raises(ValueError, match=r"x\.java ends in none of \.py, \.c"):
        language_of_file("x.java")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"source": "m"}, "needs a command, or one that compiles"),
        ({"source": "../m", "command": ("x",)}, "source must be the name of a file"),
        ({"source": "", "command": ("x",)}, "source must be"),
        ({"source": "m", "program": "/bin/sh", "compile": ("x",)}, "program must be"),
        ({"source": "m", "program": "m", "compile": ("x",)}, "must be two files"),
    ],
)
def test_a_language_that_is_none_is_refused(arguments: dict, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        ProgrammingLanguage("x", **arguments)


# -- how programs end --------------------------------------------------------------------------


@pytest.mark.parametrize("program", PROGRAMS["endings"], ids=lambda p: p["code"][:30])
def test_how_programs_end(box: Sandbox, program: dict[str, str]) -> None:
    name, code, status = program["language"], program["code"], program["ends"]
    need(box, name)
    limits = replace(LIMITS, wall_s=1.0) if code.startswith("sleep") else LIMITS
    if status == "memory":  # on a busy machine the same work takes five times the CPU time
        limits = replace(LIMITS, cpu_s=10.0)
    result = box.run(code, language=name, limits=limits)
    assert result.status.value in status.split("|"), result
    assert program["reason"] in result.reason.replace("‘", "'").replace("’", "'")
    assert result.attempts == 1


@pytest.mark.docker
def test_memory_that_malloc_gives_is_bounded(toolchains: str) -> None:
    """Under bubblewrap malloc returns NULL, and what then happens is the program's affair."""
    code = (
        "#include <stdlib.h>\n#include <string.h>\n"
        "int main(void) { for (;;) { char *p = malloc(1 << 20);"
        " if (p) memset(p, 1, 1 << 20); } }"
    )
    with Sandbox(toolchains, slots=1, limits=LIMITS) as box:
        result = box.run(code, language="c")
        assert result.status is RunStatus.MEMORY, result
        deep = "int f(int n) { volatile char b[99]; b[0] = n; return n ? f(n - 1) + b[0] - n : 0; }"
        deep += "int main(void) { f(400000); return 0; }"  # 50 MB of stack
        assert box.run(deep, language="c").status is RunStatus.OK


def test_many_threads_and_a_deep_heap_run_under_the_limits(box: Sandbox) -> None:
    need(box, "cpp")
    code = (
        "#include <thread>\n#include <vector>\n#include <atomic>\n#include <iostream>\n"
        "int main() { std::atomic<int> n{0}; std::vector<std::thread> all;"
        " for (int i = 0; i < 8; i++) all.emplace_back([&] { std::vector<int> v(1 << 18, 1);"
        " n += v[5]; }); for (auto &t : all) t.join(); std::cout << n << std::endl; }"
    )
    assert box.run(code, language="cpp").stdout == "8\n"


# -- what a program is given -------------------------------------------------------------------


def test_signals_descriptors_and_environment_are_those_of_a_fresh_program(box: Sandbox) -> None:
    code = (
        "grep -E 'SigIgn|SigBlk' /proc/self/status | tr -d '\\t'\n"
        "for fd in /proc/$$/fd/*; do echo ${fd##*/}; done | sort -n | head -3 | tr '\\n' ' '\n"
        "test -e /proc/$$/fd/3 && echo leaked\n"
        "pwd; echo $HOME $TMPDIR $LANG; ls -A; id -u\n"
        "yes | head -1; echo ${PIPESTATUS[0]}"
    )
    result = box.run(code, language="bash")
    lines = result.stdout.splitlines()
    assert [line.partition(":")[0] for line in lines[:2]] == ["SigBlk", "SigIgn"]
    of_libc = 3 << 31  # signals 32 and 33, which no program can set
    assert [int(line.partition(":")[2], 16) & ~of_libc for line in lines[:2]] == [0, 0]
    assert lines[2:5] == ["0 1 2 /tmp", "/tmp /tmp C.UTF-8", "main.sh"]
    assert int(lines[5]) >= 20_000
    assert lines[6:] == ["y", "141"]  # 128 + SIGPIPE


def test_a_compiled_program_cannot_be_changed_while_it_runs(box: Sandbox) -> None:
    need(box, "c")
    code = (
        "#include <fcntl.h>\n#include <stdio.h>\n#include <unistd.h>\n"
        'int main(void) { printf("%d %d\\n", open("/proc/self/exe", O_RDWR),'
        ' truncate("/proc/self/exe", 0)); }'
    )
    for _ in range(2):
        assert box.run(code, language="c").stdout == "-1 -1\n"


# -- attacks by programs -----------------------------------------------------------------------


@pytest.mark.parametrize("attack", PROGRAMS["attacks"])
def test_nothing_of_an_attack_is_left(box: Sandbox, attack: str) -> None:
    """What it leaves is looked for after each test."""
    program = PROGRAMS["attacks"][attack]
    need(box, program["language"])
    limits = replace(LIMITS, wall_s=10.0)
    result = box.run(program["code"], language=program["language"], limits=limits)
    assert result.status.value in program["ends"], result
    if "left" in attack:
        assert result.status is RunStatus.OK
        assert result.orphans == (2 if "children" in attack else 0)


def test_the_guest_cannot_be_read_stopped_or_spoken_for(box: Sandbox) -> None:
    code = (
        "for f in environ mem maps fd/0 fd/1 root cwd; do\n"
        "  head -c 1 /proc/1/$f > /dev/null 2>&1 && echo read $f\n"
        "done\n"
        "kill -STOP 1 2>/dev/null && echo stopped\n"
        'for fd in $(seq 3 200); do { printf \'{"end": "exit"}\' >&$fd; } 2>/dev/null; done\n'
        "echo done"
    )
    assert box.run(code, language="bash").stdout == "done\n"


def test_there_is_no_network(box: Sandbox) -> None:
    code = "require('net').connect(53, '1.1.1.1').on('error', e => console.log(e.code))"
    need(box, "javascript")
    assert box.run(code, language="js").stdout == "ENETUNREACH\n"


# -- compiling ---------------------------------------------------------------------------------


def test_a_program_is_compiled_once(box: Sandbox) -> None:
    first = box.run(RANDOM, language=MADE).stdout
    assert len(first.split()) == 16
    assert box.run(RANDOM, language=MADE).stdout == first
    assert {r.stdout for r in box.run_many([RANDOM] * 4, language=MADE)} == {first}
    # Another source, another name and other limits are other programs.
    assert box.run(RANDOM + " ", language=MADE).stdout != first
    assert box.run(RANDOM, language=replace(MADE, name="other")).stdout != first


def test_programs_wanted_at_once_are_compiled_once(make_bwrap) -> None:
    with make_bwrap(slots=4) as box:
        found = box.run_many([f"sleep 0.2; {RANDOM}"] * 8, language=MADE)
    assert len({r.stdout for r in found}) == 1


def test_what_was_not_used_for_longest_is_compiled_again(make_bwrap) -> None:
    with make_bwrap(slots=1) as box:
        box._compiler._most = 1200  # two programs of 49 bytes, and what each entry costs

        def made(comment: str) -> str:
            return box.run(f"{RANDOM} #{comment}", language=MADE).stdout

        first, second = made("1"), made("2")
        assert made("1") == first
        third = made("3")  # puts out the second
        assert (made("1"), made("3")) == (first, third)
        assert made("2") != second


COMPILER_ATTACKS = {
    **PROGRAMS["compiler"],
    "messages": {
        "code": f'#pragma message "{"m" * 4000}"\n' * 1500 + "int main(void) {}",
        "reason": "the compiler was stopped: it wrote more than",
    },
}
SMALL = Limits(cpu_s=3.0, wall_s=60.0, memory_mib=160, output_bytes=2 << 20, tmp_mib=16)


@pytest.mark.parametrize("attack", COMPILER_ATTACKS)
def test_an_attack_on_the_compiler_is_a_compile_error(box: Sandbox, attack: str) -> None:
    name = "cpp" if attack == "templates" else "c"
    need(box, name)
    program = COMPILER_ATTACKS[attack]
    result = box.run(program["code"], language=replace(LANGUAGES[name], compile_limits=SMALL))
    assert result.status is RunStatus.COMPILE_ERROR, result
    assert program["reason"].lower() in result.reason.lower()
    assert len(result.stderr) <= LIMITS.output_bytes
    assert result.attempts == 1


def test_a_compilers_standard_input_is_empty(box: Sandbox) -> None:
    need(box, "c")
    code = "#include </dev/stdin>\nint main(void) { return 0; }"
    assert box.run(code, "#error the run's input\n", language="c").status is RunStatus.OK


@pytest.mark.parametrize("attack", PROGRAMS["taken_over"])
def test_a_compiler_that_is_taken_over_is_a_compile_error(box: Sandbox, attack: str) -> None:
    """Never a sandbox_error, and never a language that is said to be missing."""
    program = PROGRAMS["taken_over"][attack]
    limits = replace(SMALL, wall_s=1.0) if "waiting" in attack else SMALL
    result = box.run(program["code"], language=replace(MADE, compile_limits=limits))
    assert result.status is RunStatus.COMPILE_ERROR, result
    assert program["reason"] in result.reason
    assert result.attempts == 1


def test_a_compiler_leaves_nothing_to_the_next_one(box: Sandbox) -> None:
    """Only its program leaves its slot, and that under the hash of its own source."""
    # The shell itself counts the processes: of a pipe's two ends either may start first.
    look = "set -- /proc/[0-9]*; (id -u; ls -A /tmp /dev/shm; echo $#) > program"
    before = box.run(look, language=MADE).stdout.split()
    mean = (
        "echo x > /tmp/gcc; echo x > /dev/shm/y; (sleep 9; echo bad > /tmp/program) &\n"
        "(sleep 99 &); echo mine > program"
    )
    assert box.run(mean, language=MADE).stdout == "mine\n"
    after = box.run(look + " ", language=MADE).stdout.split()
    assert after[0] != before[0]
    assert after[1:] == before[1:]
    assert "main.sh" in after
    assert not {"gcc", "y"} & set(after)
    assert box.run(mean, language=MADE).stdout == "mine\n"


def test_a_program_that_is_no_executable_is_its_own_fault(box: Sandbox) -> None:
    alone = replace(MADE, command=())
    for source in ("echo '#!/bin/sh' > program", "printf missing > program"):
        result = box.run(source, language=alone)
        assert result.status is RunStatus.RUNTIME_ERROR
        assert "cannot be executed" in result.reason


# -- with the rest of a box --------------------------------------------------------------------


def test_a_problem_names_its_language(box: Sandbox) -> None:
    problem = {"stdio": [["1\n", "2"], ["2\n", "4"]], "language": "bash"}
    assert box.check_problem(DOUBLE["bash"], problem).solved
    with pytest.raises(ValueError, match="unknown language 'basch'"):
        box.check_problem("", {**problem, "language": "basch"})


def test_streams_and_awaited_runs_take_a_language(box: Sandbox) -> None:
    programs = ((f"echo {n}", "") for n in range(5))
    found = box.run_many(programs, language="bash", stream=True)
    assert [r.stdout for r in found] == [f"{n}\n" for n in range(5)]
    assert asyncio.run(box.arun("echo $((6 * 7))", language="sh")).stdout == "42\n"


def test_a_compiler_runs_as_unsafely_as_its_box() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with Sandbox(backend="process", unsafe=True, slots=1) as box:
            result = box.run("echo 'echo $((6 * 7))' > program", language=SHELL)
            assert (result.stdout, result.backend) == ("42\n", "process (UNSAFE)"), result
            with pytest.raises(LanguageUnavailable, match="no-such-tool"):
                box.run("", language=ProgrammingLanguage("x", "x", command=("no-such-tool",)))
    assert all("UNSAFE" in str(warning.message) for warning in caught)


@pytest.mark.docker
def test_a_program_is_compiled_on_one_host_and_runs_on_all(image: str, second) -> None:
    """Every image has Python, which compiles and runs here as another language would."""
    made = replace(MADE, compile=("python3", "main.sh"), command=("python3", "program"))
    source = (
        "import os\n"
        "text = f'import time; time.sleep(0.5); print({os.urandom(8)!r})'\n"
        "open('program', 'w').write(text)\n"
    )
    hosts = ["unix:///var/run/docker.sock", second.url]
    with Sandbox(image, hosts=hosts, slots=2, limits=LIMITS) as box:
        found = box.run_many([source] * 8, language=made)
    assert len({r.stdout for r in found}) == 1, found
    assert {r.host for r in found} == set(hosts)
