"""The command line."""

from __future__ import annotations

import os
import sys
import traceback
import warnings
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from . import __version__, report
from .arguments import settings
from .audit_cli import audit_command, diff_command
from .catalogue import verifiers_command
from .console import err, out, say
from .demo import demo
from .envs import (
    Scored,
    UnknownEnvironment,
    read_completions,
    read_scored,
    refuse_unwritable,
    score,
    write_scored,
)
from .eval_cli import eval_command
from .family_cli import family_app
from .gallery import list_command
from .naming import found_here, make_to_judge
from .new_cli import new_command
from .rescore_cli import rescore_command
from .sandbox import SandboxError
from .sandbox_cli import sandbox_app
from .serve_cli import serve_command
from .training_cli import PASSED_ON, presets_command, train
from .verifiers.visible import one_line
from .view_cli import view_command
from .watch_cli import report_command

app = typer.Typer(
    help="Rewards and verifiers for reinforcement learning: score replies, run programs in "
    "sandboxes, train with GRPO.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)
app.add_typer(sandbox_app, name="sandbox")
app.add_typer(family_app, name="family")
app.command("list")(list_command)
app.command("verifiers")(verifiers_command)
app.command("audit")(audit_command)
app.command("eval")(eval_command)
app.command("rescore")(rescore_command)
app.command("view")(view_command)
app.command("diff")(diff_command)
app.command("new")(new_command)
app.command("serve")(serve_command)
app.command(add_help_option=False, context_settings=PASSED_ON)(train)
app.command("presets")(presets_command)
app.command()(demo)
app.command("report")(report_command)

# typer exports only a child of the usage errors that it raises.
_USAGE: type[Any] = typer.BadParameter.__mro__[1]
# What a user can mend: shown as a sentence, exit code 2. Anything else is a bug and shows itself.
_MENDABLE = (ValueError, UnknownEnvironment, SandboxError, ImportError, OSError)


@app.command("score")
def score_file(
    env: Annotated[
        str, typer.Argument(help="Environment id, such as assay/GSM8K-v1, or module:id.")
    ],
    file: Annotated[
        Path,
        typer.Argument(
            help='JSONL rows {"task": <task id or row number from 0>, "completion": <text>}.'
        ),
    ],
    data: Annotated[
        str | None, typer.Option(help="The data: a file, a folder or a hub name.")
    ] = None,
    out_path: Annotated[
        Path | None, typer.Option("--out", help="Write verdicts to this JSONL file.")
    ] = None,
    resume: Annotated[
        bool, typer.Option(help="Keep the scored rows of --out; score the rest.")
    ] = False,
    setting: Annotated[
        list[str] | None,
        typer.Option("--set", help="An argument of the environment, such as split=train."),
    ] = None,
) -> None:
    """Score stored completions.

    Prints the named rewards, the statuses, and accuracy with its 95 % interval (pass@k if a
    task has several completions). Exit code 1: an infrastructure failure left rows without a
    score; --resume scores only those.
    """
    kwargs = settings(setting or [])
    if data is not None:
        kwargs["data"] = data
    if resume and out_path is None:
        raise ValueError("--resume needs --out: the file that holds the earlier verdicts")
    if out_path:
        refuse_unwritable(out_path)
        if out_path.exists() and not resume:
            raise ValueError(f"{out_path} exists: give another --out, or --resume to complete it")
    made, _ = make_to_judge(found_here(env), kwargs, answers=True)
    try:
        rows = read_completions(file, made.source)
        known = read_scored(out_path) if out_path and out_path.exists() else []
        found: list[Scored] = []
        with _progress() as bar:
            task = bar.add_task("judging", total=len(rows))

            def note(new: Any) -> None:
                found.extend(new)
                bar.advance(task, len(new))

            try:
                scored = score(made, rows, known=known, progress=note)
            except BaseException:  # whatever ends it, what was judged is not lost
                if out_path and found:
                    write_scored(out_path, sorted(found, key=lambda s: s.row))
                    kept = f"{len(found)} of {len(rows)} verdicts are in {out_path}"
                    say(f"{kept}; --resume judges the rest.", to=err)
                raise
    finally:
        made.close()
    if out_path:
        write_scored(out_path, scored)
    for table in (report.rewards(scored), report.statuses(scored), report.accuracy(scored)):
        out.print(table)
    if out_path:
        say(f"Verdicts: {out_path}")
    missing = [s for s in scored if s.verdict.score is None]
    if missing:
        again = "--resume" if out_path else "--out FILE, then --resume,"
        say(
            f"{len(missing)} of {len(scored)} rows have no score, the first because: "
            f"{one_line(missing[0].verdict.reason)}\n"
            f"Mend that, then run again with {again} to judge just those.",
            to=err,
        )
        raise typer.Exit(1)


def _progress() -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=err,
        transient=True,
    )


def _version(asked: bool) -> None:
    if asked:
        say(f"assay {__version__}")
        raise typer.Exit()


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command line; exit code 2 for user errors, 130 for Ctrl-C."""
    # A person wants the sentence, not the line of our code that it came from.
    warnings.showwarning = lambda message, *_: say(f"warning: {one_line(str(message))}", to=err)
    try:
        code = app(standalone_mode=False)
        if code == 130:  # typer's own answer to Ctrl-C is silent
            say("Interrupted.", to=err)
    except _USAGE as error:
        error.show()
        code = 2
    except (KeyboardInterrupt, typer.Abort):
        err.print("Interrupted.")
        code = 130
    except _MENDABLE as error:
        if os.environ.get("ASSAY_DEBUG"):
            _hide_in_tracebacks()
            raise
        say(f"error: {error}", to=err)
        code = 2
    except Exception:
        _hide_in_tracebacks()
        raise
    sys.exit(code if isinstance(code, int) else 0)


def _hide_in_tracebacks() -> None:
    """Escape a model's reply, and leave out secrets. After typer, which sets a hook of its own."""
    sys.excepthook = lambda *error: say("".join(traceback.format_exception(*error)), to=err)
