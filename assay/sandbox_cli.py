"""``assay sandbox``: build the image, check the isolation, measure it, run one file."""

from __future__ import annotations

import os
import platform
import re
import sys
import warnings
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal, TextIO

import typer
from rich import box as rich_box
from rich.markup import escape
from rich.table import Table
from typer import Argument, Option

from .command import Command
from .console import AsJson, add_row, err, out, print_json, say
from .figures import figures_table, measured
from .sandbox import (
    LANGUAGES,
    CheckResult,
    Limits,
    Result,
    RunStatus,
    Sandbox,
    SandboxError,
    build_folder,
    build_image,
    describe,
    find_language,
    language_of_file,
    registry_fault,
    survey,
)
from .sandbox.backends.registry import BACKENDS
from .sandbox.diagnostics.bench import BARE, bare, single, two_party
from .sandbox.images.description import shipped_images
from .verifiers.visible import escape_invisible, one_line

sandbox_app = typer.Typer(
    help="Build the image, check the isolation, measure speed, run a file.",
    epilog="Example: assay sandbox check --all",
    no_args_is_help=True,
    rich_markup_mode="rich",
)

_SAFE = [name for name, entry in BACKENDS.items() if entry.safe]
Backend = Annotated[
    str | None,
    Option(
        metavar=f"[{'|'.join(_SAFE)}]",
        help="Default: docker if a daemon answers and has the image, else bwrap.",
    ),
]

BackendOrUnsafe = Annotated[
    str | None,
    Option(
        metavar=f"[{'|'.join(BACKENDS)}]",
        help="As for check; process, with --unsafe, isolates nothing.",
    ),
]


@sandbox_app.command(cls=Command, epilog="Example: assay sandbox build shell")
def build(
    name: Annotated[
        str,
        Argument(
            help="python, science, shell, toolchains, a .toml file of your own, a Dockerfile, or "
            "a folder with one."
        ),
    ] = "python",
    pull: Annotated[
        str | None, Option(help="Base image. Default: that of the description.")
    ] = None,
    from_host: Annotated[
        bool, Option("--from-host", help="Pull nothing: use this machine's files.")
    ] = False,
    tag: Annotated[
        str | None, Option(help="Of a Dockerfile's image. Default: assay-FOLDER:latest.")
    ] = None,
    network: Annotated[
        Literal["none", "default"],
        Option(help="Of a Dockerfile's RUN lines; default is the daemon's."),
    ] = "none",
) -> None:
    """Build a container image for programs or sessions.

    Docker pulls a small Python image by its digest and installs the packages of the description.
    If no registry answers, or with --from-host, the image is made of this machine's Python and
    packages, without network. A Dockerfile starts from an image that is here, and pulls nothing.
    """
    path = Path(name)
    ours = name in shipped_images() or path.suffix == ".toml"
    if path.exists() and not ours:
        folder = path.resolve() if path.is_dir() else path.resolve().parent
        called = re.sub(r"[^a-z0-9]+", "-", folder.name.lower()).strip("-") or "image"
        tag = tag or f"assay-{called}:latest"
        say(f"Image: {build_folder(path, tag, network=network)}\nName: {tag}\nFrom: {path}")
        return
    if tag is not None:
        raise ValueError(
            f"--tag names the image of a Dockerfile, and {name} has a name of its own: leave it out"
        )
    description = describe(name)
    base = pull or description.base
    fault = None if from_host else registry_fault(base)
    if fault is not None and pull is not None:
        raise ValueError(f"cannot pull {pull}: {fault}. Check the name, or use --from-host")
    if fault is not None:
        say(f"No registry has {base.partition('@')[0]} for us ({fault}).", to=err)
    use_host = from_host or fault is not None
    digest = build_image(description=description, pull=None if use_host else base)
    origin = f"this machine's Python {platform.python_version()}" if use_host else base
    say(f"Image: {digest}\nName: {description.tag}\nFrom: {origin}")


@sandbox_app.command(cls=Command, epilog="Example: assay sandbox check --all")
def check(
    backend: Backend = None,
    every: Annotated[bool, Option("--all", help="Check every backend, side by side.")] = False,
    as_json: AsJson = False,
    as_markdown: Annotated[bool, Option("--markdown", help="Print a Markdown table.")] = False,
) -> None:
    """Check the isolation on this machine by trying to break it.

    Inspects the machine, then runs hostile programs in the sandbox. Exit code 1 if the isolation
    fails; with --all, if it fails in every backend.
    """
    if every and backend:
        raise ValueError(f"--all looks at every backend; leave out --backend {backend}")
    wanted = backend or os.environ.get("ASSAY_SANDBOX") or None
    names = _SAFE if every else [backend]
    looks = {name: _look(name) for name in names}
    if as_json:
        rows = [_report(*look) for look in looks.values()]
        print_json(rows if every else rows[0])
    elif as_markdown:
        sys.stdout.write(_markdown(looks))
    else:
        for chosen, findings in looks.values():
            _print_findings(chosen, wanted or every, findings, _holds(chosen, findings))
    if not any(_holds(*look) for look in looks.values()):
        raise typer.Exit(1)


def _look(backend: str | None) -> tuple[str, list[CheckResult]]:
    """Return the backend that was found, or ``none``, and what was seen of it."""
    findings = survey(backend or os.environ.get("ASSAY_SANDBOX") or None)
    box_limits = Limits(cpu_s=2.0, memory_mib=128, pids=32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # the table says which it is, and why
        with Sandbox(backend=backend, slots=1, limits=box_limits) as sandbox:
            try:
                chosen = sandbox.backend
            except SandboxError:
                return "none", findings
            return chosen, findings + sandbox.check()


def _holds(chosen: str, findings: list[CheckResult]) -> bool:
    return chosen != "none" and all(finding.ok for finding in findings)


def _report(chosen: str, findings: list[CheckResult]) -> dict[str, object]:
    rows = [{**asdict(finding), "level": finding.level} for finding in findings]
    return {"backend": chosen, "holds": _holds(chosen, findings), "findings": rows}


def _markdown(looks: Mapping[str | None, tuple[str, list[CheckResult]]]) -> str:
    """Render one row for each check, one column for each backend."""
    columns = {
        name or chosen: {finding.name: finding for finding in findings}
        for name, (chosen, findings) in looks.items()
    }
    rows = [["", *columns], ["---"] * (len(columns) + 1)]
    for name in dict.fromkeys(name for column in columns.values() for name in column):
        rows.append([name, *(_cell(column.get(name)) for column in columns.values())])
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _cell(finding: CheckResult | None) -> str:
    if finding is None:
        return ""
    detail = finding.detail.replace("|", "\\|")
    return detail if finding.level == "ok" else f"**{finding.level}**: {detail}"


def _print_findings(
    chosen: str, wanted: str | bool | None, findings: list[CheckResult], holds: bool
) -> None:
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


@sandbox_app.command(cls=Command, epilog="Example: assay sandbox run program.py --cpu 2")
def run(
    file: Annotated[Path, Argument(help="A program.")],
    stdin: Annotated[
        Path | None, Option(help="File for stdin; - for this command's stdin.")
    ] = None,
    cpu: Annotated[float, Option(help="CPU seconds.")] = 5.0,
    memory: Annotated[int, Option(help="Memory, MiB.")] = 256,
    language: Annotated[
        str | None, Option(help=f"{', '.join(LANGUAGES)}. Default: by the file's name.")
    ] = None,
    image: Annotated[
        str | None, Option(help="The image to run it in, such as assay-toolchains:3.11.")
    ] = None,
    backend: BackendOrUnsafe = None,
    unsafe: Annotated[
        bool, Option("--unsafe", help="Allow --backend process, which isolates nothing.")
    ] = False,
) -> None:
    """Run one untrusted program.

    Prints its output, and its status on stderr. Exit code 0 if the program exits with code 0,
    else 1.
    """
    code = _read(file, "Give a program")
    if language is None:
        language = language_of_file(file.name).name if file.suffix else "python"
    find_language(language)
    if str(stdin) == "-":
        given = sys.stdin.read()
    else:
        given = "" if stdin is None else _read(stdin, "Give a text file, or - for standard input")
    limits = Limits(cpu_s=cpu, memory_mib=memory)
    with Sandbox(image, limits=limits, backend=backend, slots=1, unsafe=unsafe) as sandbox:
        result = sandbox.run(code, given, language=language)
    sys.stdout.write(_writable(result.stdout, sys.stdout))
    sys.stdout.flush()
    sys.stderr.write(_writable(result.stderr, sys.stderr))
    say(_ending(result), to=err)
    if result.status is not RunStatus.OK:
        raise typer.Exit(1)


@sandbox_app.command(cls=Command, epilog="Example: assay sandbox bench --concurrency 4")
def bench(
    backend: Backend = None,
    concurrency: Annotated[
        list[int] | None, Option(help="Concurrent programs; may be repeated.")
    ] = None,
    seconds: Annotated[float, Option(min=0.1, help="Seconds per turn of a design.")] = 1.0,
    rounds: Annotated[int, Option(min=1, help="Turns of each design.")] = 3,
) -> None:
    """Measure small programs per second, relative to Python without isolation.

    Designs take turns, and every output is checked. Two-party is a program and its tests in two
    isolated processes.
    """
    levels = concurrency or [1, 2, 8]
    if min(levels) < 1:
        raise ValueError(f"concurrency must be at least 1, got {min(levels)}")
    with Sandbox(backend=backend, slots=max(levels)) as sandbox, bare() as interpreters:
        designs = [
            single(sandbox.backend, sandbox),
            two_party(f"{sandbox.backend}, two-party", sandbox),
        ]
        title = f"Programs run in {sandbox.backend} {sandbox.image[:19]}".strip()
        figures = measured([*designs, *interpreters], levels, seconds, rounds)
    out.print(figures_table(title, figures, BARE))


def _read(file: Path, remedy: str) -> str:
    if not file.is_file():
        raise ValueError(f"no such file: {file}. {remedy}")
    try:
        return file.read_text("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{file} is not UTF-8 text ({error}). {remedy}") from error


def _writable(text: str, stream: TextIO) -> str:
    """Escape what the stream's encoding lacks, and what a terminal would obey."""
    encoding = stream.encoding or "utf-8"
    text = escape_invisible(text) if stream.isatty() else text
    return text.encode(encoding, "backslashreplace").decode(encoding)


def _ending(result: Result) -> str:
    code = "" if result.exit_code is None else f", exit code {result.exit_code}"
    why = f": {one_line(result.reason)}" if result.reason else ""
    return (
        f"[{result.status.value}{code}{why}; {result.cpu_s:.2f} s CPU, {result.wall_s:.2f} s, "
        f"{result.memory_mib:.0f} MiB, in {result.backend}]"
    )
