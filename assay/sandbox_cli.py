"""``assay sandbox``: build the image, check the isolation, run one file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console
from rich.table import Table

from .sandbox import Limits, Result, RunStatus, Sandbox, build_image

sandbox_app = typer.Typer(
    help="Build the container image, check the isolation, run a file.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)
out = Console()
err = Console(stderr=True)

Backend = Annotated[
    Literal["docker", "bwrap"] | None,
    typer.Option(help="Default: docker where a daemon answers and has the image, else bwrap."),
]


@sandbox_app.command()
def build(
    pull: Annotated[
        str | None,
        typer.Option(help="An image to pull instead, such as python:3.12-slim@sha256:..."),
    ] = None,
) -> None:
    """Make the container image that programs run in.

    Without --pull it holds this machine's own Python: no registry and no network are needed.
    """
    digest = build_image(pull=pull)
    out.print(f"Image: {digest}")


@sandbox_app.command()
def check(backend: Backend = None) -> None:
    """Try the isolation: run programs that must fail, and look at what they left behind."""
    with Sandbox(backend=backend) as box:
        rows = box.check()
        table = Table("check", "holds", "found", title=f"Sandbox: {box.backend} {box.image[:19]}")
    for row in rows:
        table.add_row(row.name, "yes" if row.ok else "NO", row.detail)
    out.print(table)
    if not all(row.ok for row in rows):
        err.print("This sandbox does not hold: run no untrusted program in it.")
        raise typer.Exit(1)


@sandbox_app.command()
def run(
    file: Annotated[Path, typer.Argument(help="A Python program.")],
    stdin: Annotated[
        Path | None, typer.Option(help="A file for its standard input; - for this command's own.")
    ] = None,
    cpu: Annotated[float, typer.Option(help="CPU seconds.")] = 5.0,
    memory: Annotated[int, typer.Option(help="Memory, MiB.")] = 256,
    backend: Backend = None,
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
    with Sandbox(limits=Limits(cpu_s=cpu, memory_mib=memory), backend=backend, slots=1) as box:
        result = box.run(code, given)
    sys.stdout.write(result.stdout)
    sys.stdout.flush()
    sys.stderr.write(result.stderr)
    err.print(_ending(result), markup=False, highlight=False)
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
