"""Languages: how a program in each is compiled and run."""

from __future__ import annotations

import difflib
from dataclasses import dataclass

from ..limits import Limits

COMPILE_LIMITS = Limits(
    cpu_s=30.0, wall_s=120.0, memory_mib=1024, output_bytes=32 << 20, tmp_mib=256
)
"""What a compiler may use. ``output_bytes`` bounds what it makes, and what it says."""


@dataclass(frozen=True, slots=True)
class ProgrammingLanguage:
    """How programs in one language are run. The table is :data:`LANGUAGES`; others may be made.

    Commands run in the folder of the source file, without a shell. ``{memory_mib}`` in an
    argument stands for the run's memory limit.

    Attributes:
        name: what it is called.
        source: the file that the program is written to.
        command: what runs it; empty where what the compiler makes is run itself.
        compile: what makes ``program`` of ``source``; empty where nothing does.
        program: the file that the compiler makes.
        compile_limits: bounds on the compiler.
        reserves: its programs reserve address space that they do not use. Where no cgroup bounds
            their memory (under bubblewrap) RLIMIT_DATA does then, in place of RLIMIT_AS.
        fences: other names of it, as after the fence of a code block.
        suffixes: endings of its files.

    Raises:
        ValueError: there is nothing to run, or a file name is none.

    Example:
        >>> ProgrammingLanguage("awk", "main.awk", command=("awk", "-f", "main.awk")).needs
        'awk'
    """

    name: str
    source: str
    command: tuple[str, ...] = ()
    compile: tuple[str, ...] = ()
    program: str = "program"
    compile_limits: Limits = COMPILE_LIMITS
    reserves: bool = False
    fences: tuple[str, ...] = ()
    suffixes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.command and not self.compile:
            raise ValueError(f"the language {self.name!r} needs a command, or one that compiles")
        for field in ("source", "program"):
            file = getattr(self, field)
            if not file or "/" in file or "\0" in file or file in (".", ".."):
                raise ValueError(f"{field} must be the name of a file, got {file!r}")
        if self.source == self.program:
            raise ValueError(f"source and program must be two files, both are {self.source!r}")

    @property
    def needs(self) -> str:
        """The executable that an image must hold."""
        return (self.compile or self.command)[0]


PYTHON = ProgrammingLanguage(
    "python",
    "main.py",
    command=("python3", "main.py"),
    fences=("py", "python3", "py3"),
    suffixes=(".py",),
)
"""Runs in a fork of the warm interpreter, so its command is never used."""

# -w: nobody reads warnings. -lm comes last: a library is searched for what stands before it.
_GCC = ("-O2", "-w", "-fmax-errors=20", "-fdiagnostics-color=never", "-o", "program")

_TABLE = (
    PYTHON,
    ProgrammingLanguage(
        "c", "main.c", compile=("gcc", "-std=gnu17", *_GCC, "main.c", "-lm"), suffixes=(".c",)
    ),
    ProgrammingLanguage(
        "cpp",
        "main.cpp",
        compile=("g++", "-std=gnu++20", *_GCC, "main.cpp"),
        fences=("c++", "cc", "cxx"),
        suffixes=(".cpp", ".cc", ".cxx"),
    ),
    ProgrammingLanguage(
        "javascript",
        "main.js",
        # Left to itself it takes a quarter of the machine's memory for its heap.
        command=("node", "--max-old-space-size={memory_mib}", "main.js"),
        reserves=True,
        fences=("js", "node", "nodejs"),
        suffixes=(".js",),
    ),
    ProgrammingLanguage(
        "bash",
        "main.sh",
        command=("bash", "main.sh"),
        fences=("sh", "shell"),
        suffixes=(".sh", ".bash"),
    ),
    ProgrammingLanguage(
        "go",
        "main.go",
        compile=("go", "build", "-o", "program", "main.go"),
        reserves=True,
        fences=("golang",),
        suffixes=(".go",),
    ),
    ProgrammingLanguage(
        "rust",
        "main.rs",
        compile=("rustc", "--edition=2021", "-O", "--cap-lints=allow", "-o", "program", "main.rs"),
        fences=("rs",),
        suffixes=(".rs",),
    ),
)

LANGUAGES = {language.name: language for language in _TABLE}
"""The languages that there are, by name."""

_BY_NAME = {name: language for language in _TABLE for name in (language.name, *language.fences)}


def find_language(name: str | ProgrammingLanguage) -> ProgrammingLanguage:
    """Return the language of this name; a ProgrammingLanguage is returned as it is.

    Raises:
        ValueError: there is none of this name. The message names those nearest to it.

    Example:
        >>> find_language("C++").name
        'cpp'
    """
    if isinstance(name, ProgrammingLanguage):
        return name
    found = _BY_NAME.get(name.lower()) if isinstance(name, str) else None
    if found is None:
        near = difflib.get_close_matches(str(name).lower(), _BY_NAME, cutoff=0.5)
        known = f"did you mean {' or '.join(map(repr, near))}?" if near else "there are"
        known += "" if near else " " + ", ".join(LANGUAGES)
        raise ValueError(
            f"unknown language {name!r}: {known} (or give a ProgrammingLanguage of your own)"
        )
    return found


def language_of_file(file: str) -> ProgrammingLanguage:
    """Return the language of a file, by its ending.

    Raises:
        ValueError: it tells none.
    """
    for language in _TABLE:
        if file.endswith(language.suffixes):
            return language
    endings = ", ".join(suffix for language in _TABLE for suffix in language.suffixes)
    raise ValueError(f"{file} ends in none of {endings}: name its language")
