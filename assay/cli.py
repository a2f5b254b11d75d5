"""The command line."""

from __future__ import annotations

import logging
import os
import sys
import traceback
import warnings
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from typer import Argument, Option

from . import __version__
from .arguments import DataOption, EnvName, SetOption, environment_options
from .audit_cli import audit_command
from .catalogue import verifiers_command
from .command import Command
from .console import AsJson, err, out, print_json, progress, say
from .demo import demo
from .diff_cli import diff_command
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
from .evaluation import summary_of
from .evaluation.eval_policy import PolicyError
from .evaluation.show import tables
from .family_cli import family_app
from .gallery import list_command
from .gateway_cli import gateway_command
from .harbor_cli import harbor_app
from .lone_replies import overridden
from .naming import found_here, make_to_judge
from .new_cli import new_command
from .plan.command import plan_command
from .rescore_cli import rescore_command
from .sandbox import SandboxError
from .sandbox_cli import sandbox_app
from .serve_cli import serve_command
from .train_flags import command_of, flag_name
from .training_cli import presets_command, train_with
from .verifiers.visible import one_line
from .view_cli import view_command
from .watch_cli import report_command

_CONTEXT = {"help_option_names": ["-h", "--help"]}
app = typer.Typer(
    help="Rewards and verifiers for reinforcement learning: score replies, run programs in "
    "sandboxes, train with GRPO.",
    epilog="Example: assay demo",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings=_CONTEXT,
)


def _add(name: str, command: Callable[..., None], example: str, **context: Any) -> None:
    """Add a command, with an example below its help."""
    context_settings = {**_CONTEXT, **context}
    epilog = f"Example: {escape(example)}"
    app.command(name, cls=Command, epilog=epilog, context_settings=context_settings)(command)


# typer exports only a child of the usage errors that it raises.
_USAGE: type[Any] = typer.BadParameter.__mro__[1]
# User errors are shown as a sentence, with exit code 2. Anything else is a bug, with a traceback.
_USER_ERRORS = (
    ValueError, UnknownEnvironment, PolicyError, SandboxError, ImportError, OSError,
)  # fmt: skip


def score_command(
    env: EnvName,
    file: Annotated[
        Path,
        Argument(
            help="Rows of JSONL, JSON, CSV or Parquet: task (its id, or its row number from 0), "
            "completion."
        ),
    ],
    data: DataOption = None,
    out_path: Annotated[
        Path | None, Option("--out", "-o", help="Write verdicts to this JSONL file.")
    ] = None,
    resume: Annotated[bool, Option(help="Keep the scored rows of --out; score the rest.")] = False,
    setting: SetOption = None,
    as_json: AsJson = False,
) -> None:
    """Score stored completions.

    Prints pass@k and maj@k with 95 % intervals (pass@1 is the accuracy), named rewards, statuses.
    Exit code 1: an infrastructure failure left rows without a score; --resume scores only those.
    """
    kwargs = environment_options(setting, data)
    if Path(env).is_file() and not file.exists():
        raise ValueError(f"the environment comes first: assay score {file} {env}")
    if resume and out_path is None:
        raise ValueError("--resume needs --out: the file that holds the earlier verdicts")
    if out_path:
        refuse_unwritable(out_path)
        if out_path.exists() and not resume:
            raise ValueError(f"{out_path} exists: give another --out, or --resume to complete it")
    made, _ = make_to_judge(found_here(env), kwargs, answers=True)
    try:
        if {"answer", "verdicts"}.intersection(overridden(made)):
            raise ValueError(
                f"{made.name} judges an episode, and a row has only its last reply: assay eval "
                "plays it"
            )
        rows = read_completions(file, made.source)
        known = read_scored(out_path) if out_path and out_path.exists() else []
        found: list[Scored] = []
        with progress() as bar:
            task = bar.add_task("judging", total=len(rows))

            def note(new: Any) -> None:
                found.extend(new)
                bar.advance(task, len(new))

            try:
                scored = score(made, rows, known=known, progress=note)
            except BaseException:  # verdicts so far are kept, whatever the cause
                if out_path and found:
                    write_scored(out_path, sorted(found, key=lambda s: s.row))
                    kept = f"{len(found)} of {len(rows)} verdicts are in {out_path}"
                    say(f"{kept}; --resume scores the rest.", to=err)
                raise
    finally:
        made.close()
    if out_path:
        write_scored(out_path, scored)
    summary = summary_of(scored, made.rubric)
    if as_json:
        print_json(summary)
    else:
        for table in tables(summary):
            out.print(table)
        if out_path:
            say(f"Verdicts: {out_path}")
    missing = [s for s in scored if s.verdict.score is None]
    if missing:
        again = "--resume" if out_path else "--out FILE, then --resume,"
        say(
            f"{len(missing)} of {len(scored)} rows have no score, the first because: "
            f"{one_line(missing[0].verdict.reason)}\n"
            f"Fix that, then run again with {again} to score only those.",
            to=err,
        )
        raise typer.Exit(1)


def _version(asked: bool) -> None:
    if asked:
        say(f"assay {__version__}")
        raise typer.Exit()


@app.callback()
def _root(
    version: Annotated[
        bool, Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
    verbose: Annotated[
        bool, Option("--verbose", "-v", help="Log details; show tracebacks.")
    ] = False,
) -> None:
    if verbose:
        logging.basicConfig(format="%(asctime)s %(name)s: %(message)s", level=logging.INFO)
        logging.getLogger("assay").setLevel(logging.DEBUG)
        os.environ["ASSAY_DEBUG"] = "1"


_add("list", list_command, "assay list assay/Countdown-v1")
_add("verifiers", verifiers_command, "assay verifiers Math")
_add("score", score_command, "assay score assay/GSM8K-v1 replies.jsonl --data test.jsonl")
_add("audit", audit_command, "assay audit assay/Countdown-v1 --budget 60")
_add("diff", diff_command, """assay diff Math 'Math:{"percent": "unit"}' replies.jsonl""")
_add("eval", eval_command, "assay eval assay/Arithmetic-v1 -p DIR -n 8 --limit 100 -o runs/e")
_add("rescore", rescore_command, """assay rescore runs/e --rubric '{"name": "Exact"}' -o runs/e2""")
_add("view", view_command, "assay view runs/e")
_add(
    "train",
    command_of(train_with),
    "assay train assay/Arithmetic-v1 --model DIR -o runs/mine",
    token_normalize_func=flag_name,
)
_add("presets", presets_command, "assay presets dapo")
_add("plan", plan_command, "assay plan Qwen2.5-1.5B --gpu h100-80gb")
_add("report", report_command, "assay report runs/mine")
_add("serve", serve_command, "assay serve assay/Countdown-v1 --port 8000")
_add("gateway", gateway_command, "assay gateway --model DIR --port 8000")
_add("new", new_command, "assay new my-tasks")
_add("demo", demo, "assay demo --steps 100")
app.add_typer(sandbox_app, name="sandbox")
app.add_typer(harbor_app, name="harbor")
app.add_typer(family_app, name="family")


def main() -> None:
    """Run the command line; exit code 2 for user errors, 130 for Ctrl-C."""
    # Show the sentence without the line of code that warned.
    warnings.showwarning = lambda message, *_: say(f"warning: {one_line(str(message))}", to=err)
    try:
        code = app(sys.argv[1:], standalone_mode=False)
        if code == 130:  # typer's own answer to Ctrl-C is silent
            say("Interrupted.", to=err)
    except _USAGE as error:
        error.message += _given(error)
        error.show()
        code = 2
    except (KeyboardInterrupt, typer.Abort):
        err.print("Interrupted.")
        code = 130
    except _USER_ERRORS as error:
        if os.environ.get("ASSAY_DEBUG"):
            _hide_in_tracebacks()
            raise
        say(f"error: {_sentence(error)}", to=err)
        code = 2
    except Exception:
        _hide_in_tracebacks()
        raise
    sys.exit(code if isinstance(code, int) else 0)


def _given(error: Any) -> str:
    """Return the value that an option refused, ``, got '99999'``, or nothing."""
    options = getattr(getattr(error, "param", None), "opts", [])
    for word, value in pairwise([*sys.argv[1:], ""]):
        name, equals, rest = word.partition("=")
        if name in options and repr(rest if equals else value) not in error.message:
            return f", got {rest if equals else value!r}"
    return ""


def _sentence(error: Exception) -> str:
    """Return an error as a sentence that names what it is about."""
    if isinstance(error, ModuleNotFoundError) and error.name and error.msg.startswith("No module"):
        return (
            f"there is no module {error.name!r}: give a file of this folder without its .py, or "
            "install the package that has it"
        )
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return f"{error.filename}: {error.strerror[0].lower()}{error.strerror[1:]}"
    return str(error)


def _hide_in_tracebacks() -> None:
    """Escape a model's reply, and leave out secrets. After typer, which sets a hook of its own."""
    sys.excepthook = lambda *error: say("".join(traceback.format_exception(*error)), to=err)
