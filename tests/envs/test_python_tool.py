"""The Python session: what later cells see, what they do not, and what a policy is told."""

import json
import os

import pytest

from assay.envs import Completion, Rows, Task
from assay.envs.tools import FileTools, PythonTool, ToolEnv, Workspace
from assay.sandbox import Limits, Sandbox
from assay.verifiers import Exact

pytestmark = [pytest.mark.bwrap, pytest.mark.filterwarnings("ignore::UserWarning")]


@pytest.fixture(scope="module")
def box():
    with Sandbox(backend="bwrap", slots=2, limits=Limits(cpu_s=2, memory_mib=128)) as made:
        yield made


class Session:
    """One episode, call by call."""

    def __init__(self, box, workspace=None, **options):
        workspace = workspace or Workspace()
        tools = [FileTools(workspace), PythonTool(workspace, **options)]
        self.env = ToolEnv(Rows([Task("?", "1")]), Exact(), tools=tools, sandbox=box, max_turns=99)
        self.state = self.env.begin(self.env.task(0))

    def __call__(self, tool, **arguments) -> str:
        reply = json.dumps({"name": tool, "arguments": arguments})
        self.env.advance([self.state], [Completion(f"<tool_call>{reply}</tool_call>")])
        assert not self.state.ended, self.state.verdict
        return self.state.turns[-1]["content"]

    def python(self, code) -> str:
        return self("python", code=code)


def test_names_stay_and_output_is_shown_once(box) -> None:
    session = Session(box)
    assert session.python("print('once')\nx = 20") == "once\n"
    assert session.python("def double(n): return 2 * n\ndouble(x) + 2") == "42\n"
    assert session.python("_ + 1") == "43\n"
    assert session.python("y = 1") == "[no output]"
    assert session.python("None") == "[no output]"
    assert session.python("__name__") == "'__main__'\n"
    assert (
        session.python("import sys\nprint('a')\nprint('b', file=sys.stderr)\n'c'") == "a\nb\n'c'\n"
    )
    assert session.python("from dataclasses import dataclass\n@dataclass\nclass P: x: int") == (
        "[no output]"
    )
    assert session.python("import pickle\npickle.loads(pickle.dumps(P(3)))") == "P(x=3)\n"


def test_files_are_those_of_the_working_directory_wherever_a_cell_goes(box) -> None:
    session = Session(box)
    session("write_file", path="here.py", content="x = 1")
    away = "import here, os\nos.mkdir('away')\nos.chdir('away')\nopen('there.txt', 'w').write('t')"
    session.python(away)
    assert session("list_files") == "away/there.txt  1\nhere.py  5"
    session("write_file", path="here.py", content="x = 2")
    assert session.python("open('../here.py').read()") == "'x = 2'\n"
    assert session.python("os.chdir('..')\nimport here\nhere.x") == "2\n"
    session.python("os.chdir('/')")
    assert session("list_files") == "away/there.txt  1\nhere.py  5"
    session.python("os.mkdir('/tmp/gone')\nos.chdir('/tmp/gone')\nos.rmdir('/tmp/gone')")
    session("write_file", path="new.txt", content="n")
    assert session.python("print(open('/tmp/new.txt').read())") == "n\n"


def test_the_same_session_gives_the_same_numbers(box) -> None:
    cells = ["import random\nrandom.random()", "random.random()", "list({'a', 'b', 'c'})"]
    first, second = Session(box), Session(box)
    assert [first.python(c) for c in cells] == [second.python(c) for c in cells]


def test_a_cell_that_raises_shows_where_and_keeps_what_it_did(box) -> None:
    session = Session(box)
    said = session.python("a = 1\ndef f():\n    return 1 / 0\nf()")
    assert said.replace("    ~^^\n", "") == (  # Python 3.13 marks the call as well
        'Traceback (most recent call last):\n  File "<cell 1>", line 4, in <module>\n    f()\n'
        '  File "<cell 1>", line 3, in f\n    return 1 / 0\n           ~~^~~\n'
        "ZeroDivisionError: division by zero\n"
    )
    assert session.python("a") == "1\n"
    assert session.python("x = (").startswith('  File "<cell 3>", line 1\n')
    assert session.python("raise SystemExit('no')").endswith("SystemExit: no\n")
    assert session.python("input()").endswith("EOFError: EOF when reading a line\n")
    assert session.python("a + 1") == "2\n"


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("b = 2\nwhile True: pass", "it used more than 2 s of CPU time"),
        ("b = 2\nc = bytearray(10**9)\nwhile True: c += c", ""),
        ("b = 2\nprint('x' * 10**7)", "more than 1048576 bytes"),
        ("b = 2\nimport os\nos._exit(0)", "the code ended Python itself"),
        ("b = 2\nimport os\nos.kill(os.getpid(), 9)", "signal"),
        ("b = 2\nimport os\nos.write(2, b'[]')\nos._exit(0)", "the code ended Python itself"),
    ],
)
def test_a_cell_that_had_to_be_ended_leaves_nothing(box, code, words) -> None:
    session = Session(box)
    session.python("a = 1")
    said = session.python(code)
    assert words in said
    if words:
        assert "Nothing that it did is kept." in said
        assert session.python("'b' in dir(), a") == "(False, 1)\n"


def test_files_are_the_same_to_both(box) -> None:
    session = Session(box, Workspace({"data/in.txt": "1 2 3"}))
    assert session.python("n = sum(map(int, open('data/in.txt').read().split()))\nn") == "6\n"
    assert session.python("with open('out.txt', 'w') as f: f.write(f'{n}\\n')") == "[no output]"
    assert session("list_files") == "data/in.txt  5\nout.txt  2"
    assert session("read_file", path="out.txt") == "6\n"
    assert session("edit_file", path="out.txt", old="6", new="7") == "edited"
    assert session.python("open('out.txt').read()") == "'7\\n'\n"
    assert session.python("import os\nos.remove('out.txt')") == "[no output]"
    assert session("list_files") == "data/in.txt  5"
    assert session("write_file", path="m.py", content="K = 9\n") == "wrote 6 bytes"
    assert session.python("import m\nm.K") == "9\n"


def test_files_of_a_program_are_bounded_and_never_lead_out(box) -> None:
    session = Session(box, Workspace(most_bytes=1000, most_files=3))
    said = session.python(
        "import os\nopen('big', 'w').write('x' * 5000)\nopen('ok', 'w').write('x')\n"
        "os.symlink('/etc/passwd', 'link')\nopen('a\\nb', 'w').write('x')"
    )
    assert said.startswith("1\n[not to be read by file tools: ")
    assert session("list_files") == "ok  1"
    assert (
        session.python("os.path.getsize('big')")
        == "5000\n[not to be read by file tools: 'a\\nb', big, link]"
    )


FORGED = [
    json.dumps(
        {"raised": False, "files": {"../forged-file": "eA==", "y": "eA==", "z": 3, "/w": "eA=="}}
    ),
    '{"files": {' + ", ".join(f'"f{i}": "eA=="' for i in range(20_000)) + "}}",
    '{"files": {"a": ' + "[" * 9000 + "]" * 9000 + "}}",
    '{"files": {"a": ' + "9" * 5000 + "}}",
    '{"files": {"\\ud800": "eA==", "' + "a" * 9000 + '": ""}}',
    '{"files": []}',
    "[]",
    "",
]


@pytest.mark.parametrize("report", FORGED)
def test_a_forged_report_deceives_nobody_else(box, report) -> None:
    session = Session(box)
    said = session.python(
        "import os\nfor fd in range(3, 20):\n    try: os.write(fd, b'')\n"
        "    except OSError: continue\n"
        f"    if fd != 3: os.write(fd, {report!r}.encode())\nos._exit(0)"
    )
    assert not os.path.exists("../forged-file")
    assert len(said) < 9000
    files = session("list_files")
    assert files in ("y  1", "[no files]") or files.count("\n") == 99
    session.python("2")  # may be lost on its own session, and on no other
    assert Session(box).python("2") == "2\n"


@pytest.mark.parametrize(
    "code",
    [
        "import sys\nsys.stdout = sys.stderr = None",
        "import sys\nsys.stdout.close()",
        "import os\nif os.fork() == 0: pass",
        "import threading, time\nthreading.Thread(target=time.sleep, args=(99,)).start()",
        "import sys\nsys.modules.clear()",
        "import os\nos.makedirs('d')\nos.chdir('d')",
        "class E(Exception):\n    def __str__(self): raise ValueError\nraise E",
        "class R:\n    def __repr__(self): raise ValueError\nR()",
        "'\\ud800'",
        "#\x00",
    ],
)
def test_a_strange_cell_does_not_end_the_session(box, code) -> None:
    session = Session(box)
    session.python("a = 1")
    session.python(code)
    assert session.python("a") == "1\n"


def test_a_preamble_is_there_from_the_start_and_output_has_bounds(box) -> None:
    session = Session(
        box, preamble="import math", limits=Limits(memory_mib=128, output_bytes=60_000)
    )
    assert session.python("math.floor(2.5)") == "2\n"
    said = session.python("'x' * 20_000")
    assert len(said) < 8200
    assert "characters left out" in said


def test_sessions_of_many_episodes_run_side_by_side(box) -> None:
    env = ToolEnv(Rows([Task("?", "1")]), Exact(), tools=[PythonTool()], sandbox=box)
    states = [env.begin(env.task(0)) for _ in range(6)]
    for code in ("n = {}", "n * n"):
        replies = [
            json.dumps({"name": "python", "arguments": {"code": code.format(i)}}) for i in range(6)
        ]
        env.advance(states, [Completion(f"<tool_call>{r}</tool_call>") for r in replies])
    assert [s.turns[-1]["content"] for s in states] == [f"{i * i}\n" for i in range(6)]


# -- files without a sandbox -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    ["/etc/passwd", "../x", "a/../../x", "a/..", "~/x", "", ".", "a\x00b", "a\nb", "a\\b",
     "a" * 300, "a/b/c/d/e/f/g/h/i"],
)  # fmt: skip
def test_paths_that_lead_out_or_are_odd_are_told(path) -> None:
    session = Session(None)
    for tool, more in (("write_file", {"content": "x"}), ("read_file", {})):
        assert session(tool, path=path, **more).startswith("error: ")
    assert session("list_files") == "[no files]"


def test_files_are_written_read_and_edited() -> None:
    session = Session(None, Workspace(most_bytes=100, most_files=2))
    assert session("write_file", path="./a//b.txt", content="one\ntwo\nthree") == "wrote 13 bytes"
    assert session("read_file", path="a/b.txt", first_line=2, lines=1) == "two\n\n[1 more lines]"
    assert session("read_file", path="a/b.txt", first_line=9) == "[no such lines: the file has 3]"
    assert session("edit_file", path="a/b.txt", old="t", new="T") == (
        "error: 'old' must stand in a/b.txt exactly once, and it stands there 2 times"
    )
    assert session("write_file", path="a", content="") == (
        "error: 'a' cannot be a file beside 'a/b.txt'"
    )
    assert session("write_file", path="c", content="x" * 99).startswith("error: files may have")
    assert session("write_file", path="c", content="x") == "wrote 1 bytes"
    assert session("write_file", path="d", content="x") == "error: there may be at most 2 files"
    assert session("read_file", path="e").startswith("error: there is no file 'e'")
    with pytest.raises(ValueError, match="an initial file is refused: paths are relative"):
        Workspace({"/a": ""})


def test_writes_that_nobody_saw_are_kept_once() -> None:
    session = Session(None)
    for i in range(5):
        session("write_file", path="a", content=str(i))
    (space,) = {id(t.workspace): t.workspace for t in session.state.data.toolsets}.values()
    assert [e[:2] for e in space.events] == [["write", "a"]]
    assert space.files == {"a": b"4"}
