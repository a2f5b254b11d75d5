"""Agents without a model: the oracle, one that does nothing, commands, random acts, scripts."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ...sandbox import ExecResult
from .schema import TaskError
from .trial import Seat, filled_in


def nop(seat: Seat) -> str:
    """Do nothing."""
    return ""


def oracle(seat: Seat) -> str:
    """Run the task's own solution.

    Raises:
        TaskError: the task has none.
    """
    folder = seat.stage.solution
    if folder is None:
        raise TaskError(f"{seat.stage.folder}: has no solution/solve.sh, so no oracle can run")
    seat.session.put("/solution", folder)
    env = filled_in(seat.task.config.solution.env)
    # The task's own solution, in the container: no model has written any of it.
    done = seat.session.exec(
        ["/bin/sh", "-c", "chmod +x /solution/solve.sh; exec /solution/solve.sh"],
        timeout_s=seat.timeout_s,
        user=seat.stage.user,
        env=env,
    )
    return _told(done)


@dataclass(frozen=True)
class CommandAgent:
    """A command that works in the container; the instruction is in ``$INSTRUCTION``."""

    command: str

    def __call__(self, seat: Seat) -> str:
        """Run the user's command in the container; the instruction is a variable, no code."""
        done = seat.session.exec(
            self.command,
            timeout_s=seat.timeout_s,
            user=seat.stage.user,
            env={"INSTRUCTION": seat.stage.instruction},
        )
        return _told(done)


@dataclass(frozen=True)
class RandomAgent:
    """Write noise into, create or remove files that the instruction names."""

    seed: int

    def __call__(self, seat: Seat) -> str:
        """Act at random, the same for the same seed and instruction."""
        draw = random.Random(f"{self.seed} {seat.stage.instruction}")  # noqa: S311  # no secret
        paths = sorted(set(re.findall(r"/[\w./-]*\w", seat.stage.instruction))) or ["/app/out.txt"]
        acts = ("echo {n} > {p}", "touch {p}", "mkdir -p {p}", "rm -rf {p}", "chmod 755 {p}")
        lines = [
            draw.choice(acts).format(n=draw.randrange(100), p=f"'{draw.choice(paths)}'")
            for _ in range(8)
        ]
        return CommandAgent("\n".join(lines))(seat)


@dataclass(frozen=True)
class ScriptedAgent:
    """Run shell commands one after the other in one shell.

    Attributes:
        commands: lines, or a function from the instruction and the results so far to the next
            line, or to ``None`` at the end.
    """

    commands: Sequence[str] | Callable[[str, Sequence[ExecResult]], str | None]

    def __call__(self, seat: Seat) -> str:
        """Run the commands until the end or the time limit."""
        shell, results = seat.session.shell(user=seat.stage.user), list[ExecResult]()
        left = seat.timeout_s
        while left > 0:
            if callable(self.commands):
                line = self.commands(seat.stage.instruction, results)
            else:
                line = self.commands[len(results)] if len(results) < len(self.commands) else None
            if line is None:
                break
            results.append(shell.run(line, timeout_s=left))
            left -= results[-1].wall_s
        return "\n".join(map(_told, results))


def _told(done: ExecResult) -> str:
    text = done.text + done.stderr.decode("utf-8", "backslashreplace")
    return text[-8000:] + (f"\n[{done.reason}]" if done.reason else "")
