"""Tell which graders run none of the agent's code, by reading ``test.sh`` and the tests.

What is not understood counts as running it. Nobody writes a ``test.sh`` to deceive this reader:
what counts is each way by which a shell, or a command that it calls, runs what it reads.
"""

from __future__ import annotations

import ast
import itertools
import posixpath
import re
import shlex
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

Grading = Literal["separate", "shared"]

_READERS = """
    [ [[ ] ]] test echo printf cat grep egrep fgrep diff cmp head tail wc uniq cut tr md5sum
    sha256sum ls stat cd pwd exit true false return expr seq basename dirname sleep date bc : read
    if then else elif fi for while do done case esac { } ! in time export local readonly declare
""".split()  # noqa: SIM905
"""Commands of the image, and words of the shell, that run nothing whatever their arguments are."""

_WRITERS = """
    sort mkdir set shift unset chmod rm touch tee mv apt-get apt curl wget wait sed awk jq
""".split()  # noqa: SIM905
"""Likewise, but for arguments that the agent could have written."""

COMMANDS = tuple(name for name in (*_READERS, *_WRITERS) if name[-1].isalnum())
"""Commands that are understood, some of which are the shell's own."""

_PYTHON = ("python", "python3", "pytest", "py.test", "uv", "uvx")
_LEADING = ("if", "then", "else", "elif", "while", "do", "!", "{", "time")
_UNSAFE = re.compile(
    r"\b(exec|eval|runpy|marshal|ctypes|cffi|doctest|sympy|numexpr|jinja2|mako|lxml|dill"
    r"|cloudpickle|jsonpickle|fully_trusted|fully_trusted_filter|(unsafe|full)_load(_all)?"
    r"|fileConfig|dictConfig|Interactive(Interpreter|Console)|timeit|get_type_hints"
    r"|C?(Unsafe)?Loader|Source(less)?FileLoader|ExtensionFileLoader|zipimporter)\b"
)
_NAMES = (
    r"(PATH|HOME|ENV|IFS|PS4|PROMPT_COMMAND|SHELLOPTS|BASH_\w+|LD_\w+|PYTHON\w*|PYTEST_\w+|PIP_\w+"
    r"|UV_\w+|XDG_\w+|GCONV_PATH|LOCPATH|AWK\w*PATH)"
)
_SETTINGS = re.compile(rf"(?<![$\w./-])(?<!\$\{{){_NAMES}(?![\w./-])|\$\{{{_NAMES}\W*[^\w}}]")
"""Settings by which a shell or a command finds the agent's programs or start-up files first."""

_EVALUATED = re.compile(
    r"\$\{[!#]?\w+\[(?![@*]\]|\d+\])"  # a subscript is arithmetic, which runs substitutions
    r"|\$\{!|\$\[|\$\{\w+@"  # names read from variables; prompts
    r"|\$\{\w+:(?![-+=?]|\d+(?::\d+)?\})"
)
_CAPTURED = re.compile(
    r"(?:\$\([^)\n]*|^|[\s;&|(])(?:python3?|pytest|py\.test|uvx?)\b[^\n;&|]*"
    r"(?:(?<!\|)\|(?!\|)|>(?!\s*/dev/null))|\$\([^)\n]*(?:python3?|pytest|uvx?)\b",
    re.MULTILINE,
)
"""Python's output goes on, and the agent's programs may print into it."""

_HEREDOC = re.compile(
    r"(?<!<)<<(?!<)-?[ \t]*(['\"\\]?)(\w+)\1?([^\n]*)\n(?:(.*?)\n)??[ \t]*\2[ \t]*(?=\n|$)",
    re.DOTALL,
)
_EXPANDED = re.compile(r"\$\{?[#!]?(0|[A-Za-z_]\w*|[\d@*]+)|`")
_COMPARED = frozenset(("-eq", "-ne", "-lt", "-le", "-gt", "-ge"))
_SED = re.compile(
    r"(?:(?:\d+|\$)(?:,(?:\d+|\$))?)?(?:[pdq]|([sy])(\W)(?:(?!\2).)*\2(?:(?!\2).)*\2[gpiI\d]*)"
)
_COUNTED = re.compile(r"\s*(?:[^;&|]*\|)+\s*wc -[lwcm]\s*|\s*wc -[lwcm]\s*<\s*\S+\s*")
"""What prints a number, whatever the agent wrote."""

_DECLARING = ("export", "local", "readonly", "declare")
_VARIABLE = re.compile(r"\$(?:\{(\w+)[^}]*\}|(\w+|[@*#?!$-]))")
_JQ_PAIRS = ("--arg", "--argjson", "--slurpfile", "--rawfile")
_SPLIT = "\1"
"""Stands before an expansion outside of quotes."""

_PIP = frozenset(("install", "list", "show", "freeze", "check", "--version"))
_PIP_OPTION = re.compile(
    r"-[qU]+|--(quiet|upgrade|no-cache-dir|break-system-packages|disable-pip-version-check"
    r"|root-user-action=\w+)"
)
_REQUIREMENT = re.compile(
    r"(?!.*\.(?:whl|zip|gz|bz2|xz|tar|tgz)$)\w[\w.-]*(\[[\w,]+\])?([=<>!~]=?[\w.*]+,?)*"
)
_INSTALLS_UV = re.compile(
    r"^[ \t]*(?:curl -\w+ https://astral\.sh/uv/[\w./]+ \| sh"
    r"|(?:source|\.) (\"?)\$HOME/\.local/bin/env\1)(?: \|\| true)?[ \t]*$",
    re.MULTILINE,
)
"""Lines of Terminal-Bench's graders. Nothing of the agent's is there: see ``STARTUP``."""

_OWN_FOLDER = re.compile(
    r"\$\(cd (\"?)\$\(dirname (\"?)\$(?:0|\{BASH_SOURCE(?:\[0\])?\})\2\)\1 "
    r"(?:(?:&>|>) ?/dev/null (?:2>&1 )?)?&& pwd(?: -P)?\)"
)
_LOGGED = re.compile(r"(?:(?:2>&1 *)?\| *tee(?: -a)?|&?>>?) */logs/verifier/(?!reward)[\w.-]+")
_LOGS = re.compile(r"(?<!mkdir -p )/logs\b(?!/verifier/(?:reward\.txt|reward\.json|ctrf\.json)\b)")
_TIMEOUT = re.compile(r"-\w+|--\w[\w-]*(?:=\w+)?|[\d.]+[smhd]?|[A-Z]+")

_ALL_NAMES = re.compile(r"^\s*from\s+(\w[\w.]*)\s+import\s+\(?\s*\*", re.MULTILINE)
UNKNOWN = "\0"
"""Stands in a path for what is not known of a name of a file or folder."""

_MOST_PATHS = 64
_SUBSTITUTED, _COMPUTED = "_SUBSTITUTED_", "_COMPUTED_"


class _Doubt(ValueError):
    """It may run the agent's code."""


def grading_of(
    tests: Mapping[str, Path], *, guarded: bool = True, root: bool = True, has_uv: bool = False
) -> Grading:
    """Return whether no process of a grader runs the agent's code, by reading the grader.

    Args:
        tests: the files of ``/tests`` by their paths below it; ``test.sh`` is one.
        guarded: Python runs under the guard.
        root: the tests run as root, so that they can give up rights for what they start.
        has_uv: lines that install uv take effect: the image has it, or the tests have a network.
    """
    try:
        uses_python = _Script().check(_source(tests, has_uv))
    except ValueError:  # quotes that do not match too: written for a shell, and not for shlex
        return "shared"
    sources = {path: file for path, file in tests.items() if path.endswith(".py")}
    own = {path.partition("/")[0].removesuffix(".py") for path in sources}
    unsafe = any(_runs_source(f) or _takes_all_names(f, own) for f in sources.values())
    return "shared" if uses_python and (unsafe or not (guarded and root)) else "separate"


def _source(tests: Mapping[str, Path], has_uv: bool) -> str:
    text = _OWN_FOLDER.sub("/tests", tests["test.sh"].read_text("utf-8", "replace"))
    others = (f for path, f in tests.items() if path != "test.sh" and f.is_file())
    if len(_LOGS.findall(text)) == 1 and not any(b"/logs" in f.read_bytes() for f in others):
        text = _LOGGED.sub("", text)  # nobody reads it
    return text if has_uv else _INSTALLS_UV.sub("", text)


def written_paths(
    tests: Mapping[str, Path], folder: str, *, has_uv: bool = False
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the paths that a grader writes, as far as it is understood, each with :data:`UNKNOWN`.

    The second are those of files of which it leaves nothing.

    Args:
        tests: as for :func:`grading_of`.
        folder: in which it starts.
        has_uv: as for :func:`grading_of`.
    """
    script = _Script()
    try:
        script.check(_source(tests, has_uv))
    except ValueError:
        return (), ()
    found = dict.fromkeys(script.written(folder))
    return tuple(path for path, _ in found), tuple(path for path, replaced in found if replaced)


@dataclass
class _Command:
    """A simple command: its words, what it assigns, where it writes, and what it reads.

    Attributes:
        split: of its words those that hold an expansion outside of quotes.
        appended: of its targets those that it appends to.
    """

    words: list[str] = field(default_factory=list)
    assigned: list[str] = field(default_factory=list)
    targets: list[str] = field(default_factory=list)
    piped: bool = False
    heredoc: str = ""
    split: set[str] = field(default_factory=set)
    appended: set[str] = field(default_factory=set)


class _Script:
    """A shell script's commands, and the variables that may hold what the agent wrote."""

    def __init__(self) -> None:
        self.agents = {_SUBSTITUTED}
        self.computed: list[str] = []
        self.commands: list[_Command] = []

    def check(self, text: str) -> bool:
        """Return whether the script runs Python.

        Raises:
            ValueError: it may run the agent's code, or cannot be read.
        """
        text = self._without_heredocs(text)
        text = "\n".join("" if line.lstrip().startswith("#") else line for line in text.split("\n"))
        if _SETTINGS.search(text) or _EVALUATED.search(text):
            raise _Doubt("a setting, or a name that is evaluated")
        if _CAPTURED.search(re.sub(r"\d?>&\d|&>\s*/dev/null", "", text)):
            raise _Doubt("the output of Python is used")
        commands = self.commands = list(self._commands(text))
        known = -1
        while known != len(self.agents):
            known = len(self.agents)
            for command in commands:
                self._assign(command)
        for inner in self.computed:
            self._check_number(inner)
        return sum(map(self._runs_python, commands)) > 0  # all are looked at

    def written(self, folder: str) -> Iterator[tuple[str, bool]]:
        """Yield the paths that it writes, and whether as new files."""
        values: dict[str, set[str]] = {}
        for command in self.commands:
            assigned = [*command.assigned]
            if command.words[:1] and command.words[0] in _DECLARING:
                assigned += command.words[1:]
            for word in assigned:
                name, _, value = word.partition("=")
                values.setdefault(name, set()).add(value)

        def paths(word: str, depth: int = 0) -> list[str]:
            """Return what a word may become."""
            made, position = [""], 0
            for found in _VARIABLE.finditer(word):
                known = values.get(found[1] or found[2] or "", set())
                inner = [p for v in sorted(known) for p in paths(v, depth + 1)] if depth < 4 else []
                if not 0 < len(inner) * len(made) <= _MOST_PATHS:
                    inner = [UNKNOWN]
                before = _literal(word[position : found.start()])
                made = [path + before + one for path in made for one in inner]
                position = found.end()
            return [path + _literal(word[position:]) for path in made]

        entered = [c.words[1] for c in self.commands if c.words[:1] == ["cd"] and c.words[1:]]
        folders = [folder.rstrip("/"), *(path for word in entered for path in paths(word))]
        for command in self.commands:
            for word in (*command.targets, *_written_by(command.words)):
                replaced = word in command.targets and word not in command.appended
                for path in paths(posixpath.normpath(word)):
                    for above in ("", *(f"{above}/" for above in folders)):
                        yield above + path, replaced
                        yield (above + path).replace(f"/{UNKNOWN}/", "/"), replaced  # it is unset

    # -- reading -------------------------------------------------------------------------------

    def _without_heredocs(self, text: str) -> str:
        self.bodies: list[str] = []

        def taken(found: re.Match[str]) -> str:
            body = found[4] or ""
            if not found[1]:  # the shell expands it
                if re.search(rf"\b({'|'.join(map(re.escape, _PYTHON))})\b", found[3]):
                    raise _Doubt("Python after a document")
                self.bodies.append(body)
            name = _SUBSTITUTED if not found[1] and re.search(r"[$`]", body) else _COMPUTED
            return f"<< ${name} {found[3]}"

        text = _HEREDOC.sub(taken, text)
        # What a document expands is checked as the words of a command that only prints.
        return "\n".join(
            [text, *(f": {shlex.quote(b)}" for b in self.bodies if "$" in b or "`" in b)]
        )

    def _commands(self, text: str) -> Iterator[_Command]:
        """Yield the simple commands, those of substitutions too."""
        if "`" in text or "<(" in text or ">(" in text:
            raise _Doubt("backticks and process substitutions are not read")
        while (at := text.rfind("$(")) != -1:  # the innermost first
            depth, end = 1, at + 2
            while depth:
                if end >= len(text):
                    raise _Doubt("a substitution does not end")
                depth += {"(": 1, ")": -1}.get(text[end], 0)
                end += 1
            inner, name = text[at + 2 : end - 1], _SUBSTITUTED
            if inner.startswith("("):
                self.computed.append(inner)
                name = _COMPUTED
            else:
                name = _COMPUTED if _COUNTED.fullmatch(inner) else name
                yield from self._commands(inner)
            text = f"{text[:at]}${{{name}}}{text[end:]}"
        text = _marked(text.replace("\\\n", " ").replace("\n", " ; "))
        lexer = shlex.shlex(text, posix=True, punctuation_chars=True)
        lexer.commenters = ""
        lexer.whitespace_split = True
        command, redirected, number = _Command(), "", ""
        for marked in [*lexer, ";"]:
            word = marked.replace(_SPLIT, "")
            # Between double parentheses bash evaluates a number, unless they are subshells.
            number = "0" if word[:2] == "((" else number and number + word
            if number and "))" in word:
                self.computed.append(number)
                number = ""
            if word and set(word) <= set(";&|()"):
                if command.words[:1] == ["timeout"]:
                    command.words = list(itertools.dropwhile(_TIMEOUT.fullmatch, command.words[1:]))
                if command.words or command.assigned or command.targets:
                    yield command
                piped = word in ("|", "|&") or (command.piped and not command.words)
                command, redirected = _Command(piped=piped), ""
            elif word and set(word) <= set("<>&"):
                redirected = word
            elif redirected:
                if ">" in redirected:
                    command.targets.append(word)
                    if ">>" in redirected:
                        command.appended.add(word)
                elif redirected == "<<":
                    command.heredoc = word
                else:
                    command.piped = True
                redirected = ""
            elif not command.words and re.fullmatch(r"\w+\+?=.*", word, re.DOTALL):
                command.assigned.append(word)
            else:
                if command.words and command.words[0] in _LEADING:
                    command.words = []
                command.words.append(word)
                if word != marked:
                    command.split.add(word)

    # -- what the agent could have written -----------------------------------------------------

    def _is_agents(self, word: str) -> bool:
        """Return whether a word may hold the agent's text, or the names of its files."""
        names = (found[1] or "@" for found in _EXPANDED.finditer(word))
        # The script's own arguments are none, or what `set` has made of something.
        return any(n in self.agents or not (n[0].isalpha() or n[0] in "_0") for n in names)

    def _assign(self, command: _Command) -> None:
        words = command.words
        assigned = [*command.assigned]
        if words[:1] == ["for"]:
            if any(self._is_agents(word) or set(word) & set("*?[") for word in words[3:]):
                self.agents.update(words[1:2])
        elif words[:1] == ["read"]:
            self.agents.update(words[1:])
        elif words and words[0] in _DECLARING:
            assigned += words[1:]
        for word in assigned:
            name, _, value = word.partition("=")
            if self._is_agents(value):
                self.agents.add(name.rstrip("+"))

    def _check_number(self, text: str) -> None:
        """Check what bash evaluates as arithmetic: variables hold expressions in their turn."""
        names = set(re.findall(r"[A-Za-z_]\w*", text))
        if (
            "[" in text
            or names & self.agents
            or self._is_agents(text)
            or re.search(r"\w\s+\w", text)
        ):
            raise _Doubt("a number is evaluated")

    # -- commands ------------------------------------------------------------------------------

    def _runs_python(self, command: _Command) -> bool:
        """Return whether a command is Python.

        Raises:
            _Doubt: it may run the agent's code.
        """
        if any(map(self._is_agents, command.targets)):
            raise _Doubt("it is redirected to where the agent says")
        if not command.words:
            return False
        first, *rest = command.words
        name = first.rpartition("/")[2] if first.startswith("/usr/bin/") else first
        # A file may have the name of an option.
        agents = any(self._is_agents(word) or word[:1] in tuple("*?[") for word in rest)
        if name in _PYTHON:
            if first != name or agents or not _is_trusted(name, rest, command):
                raise _Doubt("Python runs what is not of the tests")
            return True
        if name in ("pip", "pip3"):
            if agents or not _only_installs(rest):
                raise _Doubt("a package of the agent's")
        elif name == "jq":  # its programs can read each file whose name ends in .json or .jq
            program = _program_of_jq(rest)
            if self._is_agents(program) or re.search("^$|import|include", program):
                raise _Doubt(name)
        elif name in _WRITERS:
            if agents or not _is_plain(name, rest):
                raise _Doubt(name)
        elif name not in _READERS:
            raise _Doubt(name)
        elif name in (*_DECLARING, "read"):
            if not all(re.fullmatch(r"-[rxp]+|[A-Za-z_]\w*(\+?=[^$]*)?", word) for word in rest):
                raise _Doubt("names or numbers of the agent's")
        elif name == "printf" and ("-v" in rest or any(map(self._is_agents, rest[:1]))):
            raise _Doubt("a name that is evaluated")
        elif name in ("[[", "[", "test"):
            self._check_test(name, rest, command.split)
        return False

    def _check_test(self, name: str, words: list[str], split: set[str]) -> None:
        for at, word in enumerate(words):
            # What a word is split into may be options.
            if word == "-v" or (name != "[[" and word in split and self._is_agents(word)):
                raise _Doubt("a name that is evaluated")
            if name == "[[" and word in _COMPARED:
                for operand in words[max(at - 1, 0) : at + 2 : 2]:
                    self._check_number(operand)


def _is_trusted(name: str, rest: list[str], command: _Command) -> bool:
    if name in ("uv", "uvx"):
        if name == "uv" and "run" not in rest:  # the shim does nothing
            return True
        if "pytest" not in rest:
            return False
        rest = rest[rest.index("pytest") + 1 :]
    elif name in ("python", "python3"):
        while rest and re.fullmatch(r"-[uBq]|-[WX].*", rest[0]):
            rest = rest[2 if rest[0] in ("-W", "-X") else 1 :]
        if rest[:2] == ["-m", "pytest"]:
            rest = rest[2:]
        elif rest[:2] == ["-m", "unittest"]:  # where there are no tests it finds nothing wrong
            return any(re.match(r"(-s=?|--start-directory=)?/tests\b", word) for word in rest)
        elif rest[:2] == ["-m", "pip"]:
            return _only_installs(rest[2:])
        elif not rest or rest[0] == "-":
            return command.heredoc == f"${_COMPUTED}" and not command.piped
        elif rest[0] == "-c":
            return not _UNSAFE.search(" ".join(rest[1:]))
        else:
            return rest[0].startswith("/tests/") and ".." not in rest[0]
    # Of the options of pytest, those that name settings and plug-ins, or files with options.
    settings = re.compile(
        r"(-c|-p|-o|--config-file|--override-ini|--rootdir|--confcutdir)(=?)(.*)|@.*"
    )
    for word, value in zip(rest, [*rest[1:], ""], strict=True):
        found = settings.fullmatch(word)
        if word.startswith("--doctest"):
            return False
        if found and (word[0] == "@" or not (found[3] or value).startswith(("/tests", "no:"))):
            return False
    return True


def _marked(text: str) -> str:
    """Mark the expansions outside of quotes."""
    made, quote, escaped = list[str](), "", False
    for letter in text:
        if escaped:
            escaped = False
        elif letter == "\\" and quote != "'":
            escaped = True
        elif letter in "'\"" and quote in ("", letter):
            quote = "" if quote else letter
        elif letter == "$" and not quote:
            made.append(_SPLIT)
        made.append(letter)
    return "".join(made)


def _literal(text: str) -> str:
    """Return a word's part, in which the shell expands names of files."""
    return re.sub(r"[*?]", UNKNOWN, text)


def _written_by(words: list[str]) -> list[str]:
    """Return the words of a command that name what it writes."""
    name, rest = (words[0].rpartition("/")[2], words[1:]) if words else ("", [])
    plain = [word for word in rest if not word.startswith("-")]
    if name in ("tee", "touch"):
        return plain
    if name == "mv":
        return plain[-1:]
    if name == "uniq":
        return plain[1:]
    if name == "chmod" and any(re.match(r"[0-7]*[2367]$|[ugoa]*[+=].*w", word) for word in plain):
        return plain[1:]
    if name == "sed" and any(re.match(r"-\w*i", word) for word in rest):
        return plain[1:]
    if name in ("sort", "curl", "wget"):
        after = itertools.pairwise(rest)
        joined = [word.partition("=")[2] for word in rest if word.startswith("--output")]
        return [word for option, word in after if re.fullmatch(r"-\w*[oO]", option)] + joined
    return []


def _program_of_jq(rest: list[str]) -> str:
    """Return the program among jq's arguments; empty if a file holds it, or it is not found."""
    rest = list(rest)
    while rest and rest[0][:1] == "-":
        if not re.fullmatch(r"-[rcenjsSRMa]+|--(?!from-f)[a-z-]+", rest[0]):
            return ""
        del rest[: 3 if rest[0] in _JQ_PAIRS else 2 if rest[0] == "--indent" else 1]
    return rest[0] if rest and not any("-f" in w for w in rest if w[:1] == "-") else ""


def _only_installs(rest: list[str]) -> bool:
    """Return whether pip does nothing with files of the container: it runs a package's build."""
    return (
        rest[:1] != []
        and rest[0] in _PIP
        and all(_PIP_OPTION.fullmatch(word) or _REQUIREMENT.fullmatch(word) for word in rest[1:])
    )


def _is_plain(name: str, rest: list[str]) -> bool:
    """Return whether these arguments have a command run nothing."""
    if name == "sort":
        return not any(word.startswith("--comp") for word in rest)
    if name in ("curl", "wget"):
        return not any(re.match(r"-K|--config|--use-askpass|--execute|-e", w) for w in rest)
    options = [word for word in rest if word.startswith("-")]
    scripts = [word for word in rest if not word.startswith("-")][:1]
    if name == "sed":
        known = all(re.fullmatch(r"-[nriEs]+(\.\w+)?", word) for word in options)
        pieces = scripts[0].split(";") if scripts else [""]
        return known and all(_SED.fullmatch(piece.strip()) for piece in pieces)
    if name == "awk":
        if rest[:1] == ["-F"]:
            scripts = rest[2:3]
        known = all(re.fullmatch(r"-F.*", word) for word in options)
        return known and not any(re.search(r"system|[|>@]|getline", word) for word in scripts)
    return True


def _takes_all_names(file: Path, own: set[str]) -> bool:
    """Return whether a test has all names of a module: the agent's may be ``all`` or ``len``."""
    text = file.read_text("utf-8", "replace")
    known = own | sys.stdlib_module_names
    return any(found[1].partition(".")[0] not in known for found in _ALL_NAMES.finditer(text))


def _runs_source(file: Path) -> bool:
    """Return whether a test may run text as code, which no guard can tell from its own."""
    text = file.read_text("utf-8", "replace")
    if not _UNSAFE.search(text):
        return False
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return True
    for node in ast.walk(tree):
        name = getattr(node, "id", None) or getattr(node, "attr", None)
        names: set[Any] = (
            {alias.name for alias in node.names} if isinstance(node, ast.Import) else {name}
        )
        names.add(getattr(node, "module", None))
        if any(isinstance(n, str) and _UNSAFE.fullmatch(n) for n in names):
            return True
    return False
