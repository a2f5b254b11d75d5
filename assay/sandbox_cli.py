"""``assay sandbox``: build the image, check the isolation, run one file."""

from __future__ import annotations

import json
import os
import platform
import sys
import warnings
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich import box as rich_box
from rich.markup import escape
from rich.table import Table

from .console import add_row, err, out, say
from .sandbox import (
    PINNED,
    Finding,
    Limits,
    Result,
    RunStatus,
    Sandbox,
    SandboxError,
    build_image,
    registry_fault,
    survey,
)

sandbox_app = typer.Typer(
    help="Build the container image, check the isolation, run a file.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)

Backend = Annotated[
    Literal["docker", "bwrap"] | None,
    typer.Option(help="Default: docker where a daemon answers and has the image, else bwrap."),
]

BackendOrNone = Annotated[
    Literal["docker", "bwrap", "process"] | None,
    typer.Option(help="As for check; process, with --unsafe, is no sandbox at all."),
]


@sandbox_app.command()
def build(
    pull: Annotated[str, typer.Option(help="The image to pull, by digest.")] = PINNED,
    from_host: Annotated[
        bool, typer.Option("--from-host", help="Pull nothing: use this machine's own Python.")
    ] = False,
) -> None:
    """Make the container image that programs run in.

    Pulls a small Python image by its digest. Where no registry answers, or with --from-host, the
    image holds this machine's own Python instead, and no network is needed.
    """
    fault = None if from_host else registry_fault(pull)
    if fault is not None and pull != PINNED:
        raise ValueError(f"cannot pull {pull}: {fault}. Check the name, or use --from-host")
    if fault is not None:
        say(f"No registry has {pull.partition('@')[0]} for us ({fault}).", to=err)
    use_host = from_host or fault is not None
    digest = build_image(pull=None if use_host else pull)
    origin = f"this machine's Python {platform.python_version()}" if use_host else pull
    say(f"Image: {digest}\nFrom: {origin}")


@sandbox_app.command()
def check(
    backend: Backend = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the findings as JSON, for a report.")
    ] = False,
) -> None:
    """Say what isolation programs really have here, by trying to break it.

    First what the machine offers, then what hostile programs could do in the sandbox it gives.
    Exit code 1 where the isolation does not hold.
    """
    wanted = backend or os.environ.get("ASSAY_SANDBOX") or None
    findings = survey(wanted)
    box_limits = Limits(cpu_s=2.0, memory_mib=128, pids=32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # the table says which it is, and why
        with Sandbox(backend=backend, slots=1, limits=box_limits) as box:
            try:
                chosen = box.backend
            except SandboxError:
                chosen = "none"
            else:
                findings += box.check()
    holds = chosen != "none" and all(finding.ok for finding in findings)
    if as_json:
        rows = [{**asdict(finding), "level": finding.level} for finding in findings]
        found = {"backend": chosen, "holds": holds, "findings": rows}
        sys.stdout.write(json.dumps(found, indent=2) + "\n")
    else:
        _print_findings(chosen, wanted, findings, holds)
    if not holds:
        raise typer.Exit(1)


def _print_findings(chosen: str, wanted: str | None, findings: list[Finding], holds: bool) -> None:
    table = Table("isolation", "", "found", box=rich_box.SIMPLE_HEAD, pad_edge=False)
    for finding in findings:
        add_row(table, finding.name, "NO" if not finding.ok else finding.level, finding.detail)
    out.print(table)
    remedies = [finding for finding in findings if finding.remedy]
    for finding in remedies:
        out.print(f"[bold]{escape(finding.name)}[/bold]: {escape(finding.remedy)}", highlight=False)
    if remedies:
        out.print()
    if chosen == "none":
        say("Programs cannot be run here: there is no sandbox. See above for how to get one.")
    elif not holds:
        say("This sandbox does not hold: run no untrusted program in it.")
    else:
        why = "asked for" if wanted else "found first" if chosen == "docker" else "no Docker"
        say(f"Programs run in {chosen} ({why}), and this sandbox holds.")


@sandbox_app.command()
def run(
    file: Annotated[Path, typer.Argument(help="A Python program.")],
    stdin: Annotated[
        Path | None, typer.Option(help="A file for its standard input; - for this command's own.")
    ] = None,
    cpu: Annotated[float, typer.Option(help="CPU seconds.")] = 5.0,
    memory: Annotated[int, typer.Option(help="Memory, MiB.")] = 256,
    backend: BackendOrNone = None,
    unsafe: Annotated[
        bool, typer.Option("--unsafe", help="Allow --backend process, which isolates nothing.")
    ] = False,
) -> None:
    """Run one untrusted program.

    Prints its output, and how it ended on standard error. Exit code 0 where it ended by itself
    with exit code 0, else 1.
    """
    code = _read(file, "Give a Python program")
    if str(stdin) == "-":
        given = sys.stdin.read()
    else:
        given = "" if stdin is None else _read(stdin, "Give a text file, or - for standard input")
    limits = Limits(cpu_s=cpu, memory_mib=memory)
    with Sandbox(limits=limits, backend=backend, slots=1, unsafe=unsafe) as box:
        result = box.run(code, given)
    sys.stdout.write(result.stdout)
    sys.stdout.flush()
    sys.stderr.write(result.stderr)
    say(_ending(result), to=err)
    if result.status is not RunStatus.OK:
        raise typer.Exit(1)


def _read(file: Path, remedy: str) -> str:
    if not file.is_file():
        raise ValueError(f"no such file: {file}. {remedy}")
    try:
        return file.read_text("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{file} is not UTF-8 text ({error}). {remedy}") from error


def _ending(result: Result) -> str:
    code = "" if result.exit_code is None else f", exit code {result.exit_code}"
    why = f": {result.reason}" if result.reason else ""
    return (
        f"[{result.status.value}{code}{why}; {result.cpu_s:.2f} s CPU, {result.wall_s:.2f} s, "
        f"{result.memory_mib:.0f} MiB, in {result.backend}]"
    )
