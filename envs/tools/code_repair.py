"""Code repair: find the bug of a Python function, with tests to run on the way."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from ...sandbox import Check, Limits, RunStatus, Sandbox, SandboxError, problem_fault
from ...verifiers import Code, Rubric, Verdict
from ...verifiers.form.call import Call
from ...verifiers.form.json_text import NotJson
from ..datasets.reading import DataError, read_rows
from ..datasets.source import Rows, Split
from ..datasets.split_files import find_split
from ..datasets.splits import SAMPLE
from ..state import State, Turn
from ..task import Task
from .calls import read_calls, written_call
from .file_tools import FileTools
from .python_tool import PythonTool
from .tool import Toolset, Work
from .tool_env import ToolEnv
from .workspace import Workspace

_FIELDS = dict.fromkeys(("description", "buggy_code", "tests", "hidden_tests", "entry_point"), str)
_SAMPLE = Path(__file__).with_name("code_repair.toml")
_FILE = "solution.py"
_PROMPT = """\
The file {file} defines {name}, which does not do what it should:

{description}

```python
{code}
```

Find the bug and mend it. These tests must pass, and others that you do not see:

```python
{tests}
```

Make exactly one tool call in each turn, and no more than {turns} in all; a turn without one, or \
with one that cannot be read, ends the episode. run_tests runs the tests above on the file as it \
is. When you are done, call submit."""


class CodeRepair(ToolEnv):
    """Mend a function, as Code World Model's agents do (Meta 2025, arXiv:2510.02387).

    Observation: what the function should do, its source and some tests; then what tools answered.
    Action: a reply with exactly one tool call: to read and edit files, to run Python or the visible
    tests, or to submit.
    Reward: 1.0 if the submitted program passes every hidden test.
    End: with ``submit``; with a turn that does not make exactly one proper call, which earns 0.0;
    after ``max_turns`` turns ``truncated``, the file being judged as it is then.

    Hidden tests are in the task's reference only. They run once, at the end, in a process of their
    own beside the program's.

    Args:
        data: a JSONL file, a folder saved by ``datasets`` or a hub name, with rows that have
            ``description``, ``buggy_code``, ``tests``, ``hidden_tests`` and ``entry_point``, and
            may have ``id`` and ``solution``; empty for a small sample that is shipped.
        split: the split to read if the data has several; the sample has both.
        max_turns: of the policy's, in one episode.
        tell: how the tools are described, as for a ToolEnv; ``"template"`` for trainers
            that give them to the chat template, as TRL does.
        limits: bounds on each program; ``None`` for the sandbox's own.
        sandbox: where programs run; ``None`` opens one on first use.
        render_mode: ``"ansi"`` or ``None``.

    Raises:
        DataError: the data cannot be read, or a row's tests cannot be used.
    """

    def __init__(
        self,
        data: str | Path = "",
        split: Split = "train",
        max_turns: int = 8,
        *,
        tell: Literal["system", "template"] = "system",
        limits: Limits | None = None,
        sandbox: Sandbox | None = None,
        render_mode: str | None = None,
    ) -> None:
        self.data = data
        read = find_split(data, split) if str(data) else SAMPLE
        rows = read_rows(data, fields=_FIELDS, split=read) if str(data) else sample(split)
        tasks = [
            _task(row, i, f"{data or 'the sample'}, row {i}", max_turns)
            for i, row in enumerate(rows)
        ]
        space = Workspace()
        # Rubric and tools share one sandbox, so that its slots are warm for both.
        box = sandbox or (Sandbox() if limits is None else Sandbox(limits=limits))
        super().__init__(
            Rows(tasks, read),
            Rubric({"accuracy": Submission(box, limits)}),
            tools=[FileTools(space), PythonTool(space, limits=limits), RepairTools(space, limits)],
            max_turns=max_turns,
            max_calls=1,
            tell=tell,
            sandbox=box,
            render_mode=render_mode,
        )
        self._own = None if sandbox is not None else box

    def answer(self, state: State) -> str:
        """Return what the rubric judges: a submission of the current file."""
        tools = next(t for t in state.data.toolsets if isinstance(t, RepairTools))
        return submission(tools.program)

    def answered(self, state: State, reply: str) -> Turn:
        """End the episode: a turn without a call is an error."""
        return _format_error("the turn makes no call")

    def misread(self, state: State, fault: str) -> Turn:
        """End the episode: a call cannot be parsed, or there are several."""
        return _format_error(fault)

    def misfit(self, state: State, call: Call, fault: str) -> str | Turn:
        """End the episode: a call has an unknown tool or wrong arguments."""
        return _format_error(fault)


class RepairTools(Toolset):
    """``run_tests`` and ``submit``, for the file that is to be mended."""

    def __init__(self, workspace: Workspace, limits: Limits | None = None) -> None:
        self.workspace, self.limits = workspace, limits
        self._tests: dict[str, Any] = {}

    def begin(self, task: Task) -> None:
        """Put the buggy program into its file."""
        self.workspace.write(_FILE, task.metadata["buggy_code"].encode())
        self._tests = {"tests": task.metadata["tests"], "entry_point": task.metadata["entry_point"]}

    @property
    def program(self) -> str:
        """The current file, empty if it was deleted."""
        return self.workspace.files.get(_FILE, b"").decode(errors="replace")

    def run_tests(self) -> Work:
        """Run the visible tests on solution.py as it is, and show what they and it print."""
        program, tests, limits = self.program, self._tests, self.limits
        return Work(lambda box: box.check_problem(program, tests, limits=limits), _report)

    def submit(self, code: str = "") -> Turn:
        """Submit the program. This ends the task: hidden tests decide.

        Args:
            code: The whole program; leave it out to submit solution.py as it is.
        """
        if code:
            self.workspace.write(_FILE, code.encode(errors="replace"))
        return Turn.end()


class Submission(Code):
    """Run the program that a reply submits: the ``code`` of its one ``submit`` call.

    Everything else is as for :class:`~assay.verifiers.Code`.

    Example:
        >>> Submission().program(submission("x = 1"), {"tests": "assert x"})
        ('x = 1', '')
    """

    def program(self, reply: str, reference: dict[str, Any]) -> tuple[str | None, str]:
        """Return the program that a reply submits, or ``None`` with the reason."""
        try:
            calls = read_calls(reply, {"submit"}, ("tags",))
        except NotJson as fault:
            return None, f"the call cannot be read: {fault}"
        if len(calls) != 1 or calls[0].name != "submit":
            return None, "the reply does not submit a program"
        code = calls[0].arguments.get("code")
        if not isinstance(code, str) or not code.strip():
            return None, "the program is empty"
        return code, ""

    @staticmethod
    def reply_of(program: str) -> str:
        """Return a reply that submits a program."""
        return submission(program)


def submission(program: str) -> str:
    """Return a reply that submits a program."""
    return written_call("submit", {"code": program})


def sample(split: Split) -> list[Mapping[str, Any]]:
    """Return the shipped rows: small functions, each with one bug.

    Raises:
        ValueError: the split is neither ``train`` nor ``test``.
    """
    if split not in ("train", "test"):
        raise ValueError(f"split must be 'train' or 'test', got {split!r}")
    with _SAMPLE.open("rb") as file:
        rows = tomllib.load(file)["task"]
    return [row for row in rows if row.get("split", "train") == split]


def _task(row: Mapping[str, Any], number: int, place: str, max_turns: int) -> Task:
    name = row["entry_point"]
    seen, hidden = ({"tests": row[key], "entry_point": name} for key in ("tests", "hidden_tests"))
    for key, problem in (("tests", seen), ("hidden_tests", hidden)):
        fault = problem_fault(problem)
        if fault:
            raise DataError(f"{place}: {key} cannot be used: {fault}")
    prompt = _PROMPT.format(
        file=_FILE,
        name=name,
        description=row["description"].strip(),
        code=row["buggy_code"].strip(),
        tests=row["tests"].strip(),
        turns=max_turns,
    )
    solution = row.get("solution")
    return Task(
        prompt=prompt,
        reference=hidden,
        id=str(row.get("id", number)),
        metadata={"buggy_code": row["buggy_code"], **seen},
        solution=None if solution is None else submission(solution),
    )


def _report(check: Check) -> str:
    """Report the results of the visible tests."""
    if check.status is RunStatus.SANDBOX_ERROR:
        raise SandboxError(check.reason or "the sandbox failed")
    parts = [f"{check.passed} of {check.total} tests passed", check.reason]
    parts += [
        f"{name}:\n{text}"
        for name, text in (("stdout", check.stdout), ("stderr", check.stderr))
        if text.strip()
    ]
    return "\n".join(part for part in parts if part)


def _format_error(fault: str) -> Turn:
    verdict = Verdict.unparseable(f"format error: {fault}")
    return Turn.end(replace(verdict, parts={"accuracy": 0.0}))
