"""A Python session for a policy: cells that see what earlier ones defined, run in the sandbox."""

from __future__ import annotations

import functools
import inspect
import json
from typing import Any

from ...sandbox import Limits, Result, RunStatus, Sandbox, SandboxError
from .tool import ToolError, Toolset, Work
from .workspace import Workspace

_LONGEST_REPORT = 1 << 23
_SHOWN = 5


class PythonTool(Toolset):
    """``python(code)``: what a cell prints, the value of its last line, or its traceback.

    A session lives in the sandbox only while a cell runs. For the next cell a fresh program does
    everything again, in order and unseen: earlier cells, and what file tools wrote between them.
    So no state is ever read back from an untrusted program, and no process of ours holds any.
    Programs there are deterministic (hashes and ``random`` are seeded), but for the clock, system
    entropy and the order of threads; a cell that depends on these may come out differently.

    A cell that raises keeps what it did, as in a notebook. One that the sandbox had to end (time,
    memory, output) leaves nothing, as the result says.

    Args:
        workspace: files that cells find in the working directory, and leave there.
        limits: bounds on all cells of a session together, since each program runs them all;
            ``None`` for the sandbox's own.
        preamble: source that every session begins with, such as imports.
    """

    def __init__(
        self,
        workspace: Workspace | None = None,
        *,
        limits: Limits | None = None,
        preamble: str = "",
    ) -> None:
        self.workspace, self.limits = workspace or Workspace(), limits
        self._cells = 0
        if preamble:
            self.workspace.add(["cell", 0, preamble])

    def python(self, code: str) -> Work:
        """Run Python code. Names and files stay for later calls; print what you want to see.

        Args:
            code: The code. The value of an expression on its last line is shown.
        """
        try:
            code.encode()
        except UnicodeEncodeError as error:
            raise ToolError("the code holds half of a surrogate pair") from error
        self._cells += 1
        before = list(self.workspace.events)
        self.workspace.add(["cell", self._cells, code])
        program, limits = runner(), self.limits
        space = self.workspace

        def run(box: Sandbox) -> Result:
            bounds = limits or box.limits
            room = max(0, (bounds.output_bytes - 4096) * 3 // 4 - 300 * space.most_files)
            work = {
                "events": space.events,
                "most_bytes": min(space.most_bytes, room),
                "most_files": space.most_files,
            }
            return box.run(program, json.dumps(work), limits=limits)

        def finish(result: Result) -> str:
            if result.status is RunStatus.SANDBOX_ERROR:
                raise SandboxError(result.reason or "the sandbox failed")
            report = _report(result)
            if report is None:
                space.events = before
                return _joined(result.stdout, _ending(result, before))
            left_out = space.seen(report["files"])
            more = ", ..." if len(left_out) > _SHOWN else ""
            names = ", ".join(name[:80] for name in left_out[:_SHOWN])
            note = f"[not to be read by file tools: {names}{more}]" if left_out else ""
            return _joined(result.stdout, note) or "[no output]"

        return Work(run, finish)


@functools.cache
def runner() -> str:
    """Return the source of the program that runs a session."""
    from . import python_runner

    return inspect.getsource(python_runner)


def _report(result: Result) -> dict[str, Any] | None:
    """Parse the runner's final report, ``None`` if there is none."""
    if result.status is not RunStatus.OK or len(result.stderr) > _LONGEST_REPORT:
        return None
    try:
        report = json.loads(result.stderr)
    except (ValueError, RecursionError):
        return None
    if not isinstance(report, dict) or not isinstance(report.get("files"), dict):
        return None
    return report


def _ending(result: Result, before: list[Any]) -> str:
    """Explain a missing report in terms of the cell."""
    others = sum(event[0] == "cell" for event in before)
    again = (
        f" The {others} earlier cells are run again each time, and count too."
        if others and result.status in (RunStatus.TIMEOUT, RunStatus.MEMORY)
        else ""
    )
    reason = result.reason or "the code ended Python itself"
    return f"[the cell was ended: {reason}. Nothing that it did is kept.{again}]"


def _joined(output: str, note: str) -> str:
    if not note:
        return output
    return f"{output}{'' if not output or output.endswith(chr(10)) else chr(10)}{note}"
