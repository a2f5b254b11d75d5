"""``assay audit``: test a reward."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from typer import Argument, Option

from .arguments import settings
from .command import HelpAll
from .console import AsJson, cell, out, print_json, progress, say
from .envs import (
    AuditReport,
    DataError,
    Sample,
    TextEnv,
    audit,
    refuse_unwritable,
    write_json,
)
from .envs.audit.subject import samples_for
from .envs.datasets.reading import read_values
from .naming import NAME_HELP, make_to_judge, resolve_with_data
from .verifiers.visible import one_line

_rare = partial(Option, hidden=True)


def audit_command(
    subject: Annotated[str, Argument(help=NAME_HELP)],
    data: Annotated[
        str | None,
        Option(
            help="Data of the environment, or examples for a verifier: JSONL rows "
            '{"reference": ..., "reply": <one that wins, if known>}.'
        ),
    ] = None,
    other: Annotated[str | None, _rare(help="Data of the other split, to compare prompts.")] = None,
    setting: Annotated[
        list[str] | None,
        Option("--set", help="An argument of it, as name=value."),
    ] = None,
    tasks: Annotated[int, Option(min=1, help="Tasks to sample.")] = 12,
    seed: Annotated[int, Option(help="Seed of tasks and replies.")] = 0,
    check: Annotated[list[str] | None, Option(help="Run only this check.")] = None,
    skip: Annotated[list[str] | None, Option(help="Skip this check.")] = None,
    floor: Annotated[float, _rare(help="Maximum reward of a wrong reply.")] = 0.0,
    tolerance: Annotated[
        float, _rare(min=0, help="Relative error within which a number is correct.")
    ] = 0.0,
    seconds: Annotated[float, _rare(min=0.001, help="Maximum CPU seconds for one reply.")] = 10.0,
    prompts: Annotated[
        int, _rare(min=1, help="Prompts of a generator to compare between splits.")
    ] = 1000,
    longest: Annotated[int, _rare(help="Characters of the longest reply.")] = 1 << 20,
    budget: Annotated[
        float | None, Option(min=0, help="Seconds after which no check starts.")
    ] = None,
    out_path: Annotated[
        Path | None,
        Option("--out", "-o", help="Write the report to this JSON file, with uncut inputs."),
    ] = None,
    as_json: AsJson = False,
    help_all: HelpAll = False,
) -> None:
    """Try to break the rewards of an environment or a verifier.

    Exit code 0: no check fails. 1: a check fails, or nothing could be checked.
    """
    if out_path is not None:
        refuse_unwritable(out_path)
    options = settings(setting or [])
    found = resolve_with_data(subject, data, options)
    is_env = isinstance(found.thing, TextEnv)
    if other is not None and not is_env:
        raise ValueError("--other goes with an environment: a verifier has no splits")
    other_env = None
    if other is not None:
        other_env, _ = make_to_judge(found.name, {**options, "data": other}, answers=True)
    samples = () if is_env or data is None else _samples(data)
    if not is_env and not samples and not samples_for(found.judge):
        raise ValueError(
            f"{found.name} needs references to be audited with: give --data FILE of JSONL rows "
            '{"reference": ..., "reply": ...}'
        )
    try:
        with progress() as bar:
            line = bar.add_task("audit", total=None)

            def note(name: str, place: int, total: int) -> None:
                bar.update(line, description=name, completed=place, total=total)

            report = audit(
                found.thing,
                samples=samples,
                tasks=tasks,
                seed=seed,
                checks=check,
                skip=skip or [],
                floor=floor,
                tolerance=tolerance,
                seconds=seconds,
                budget_s=budget,
                sibling=found.sibling,
                other=other_env,
                prompts=prompts,
                longest=longest,
                progress=note,
            )
    finally:
        found.close()
    if out_path is not None:
        write_json(out_path, report.to_json())
    if as_json:
        print_json(report.to_json())
    else:
        _show(report)
        if out_path is not None:
            say(f"Report: {out_path}")
    if report.failing or len(report.unchecked) == len(report.findings):
        raise typer.Exit(1)


def _samples(path: str) -> list[Sample]:
    if not Path(path).is_file():
        raise DataError(f'no such file: {path}. Give JSONL rows {{"reference": ..., "reply": ...}}')
    found = []
    for place, row in read_values(Path(path)):
        if not isinstance(row, dict) or "reference" not in row:
            raise DataError(f"{place}: a row needs the field 'reference'")
        reply = row.get("reply")
        if reply is not None and not isinstance(reply, str):
            raise DataError(f"{place}: reply must be text, got {type(reply).__name__}")
        found.append(Sample(row["reference"], reply))
    if not found:  # without samples the verifier's own would be judged in their place
        raise DataError(f"{path} holds no rows")
    return found


_WORDS = {True: "[green]holds[/]", False: "[bold red]FAILS[/]", None: "[yellow]not checked[/]"}


def _show(report: AuditReport) -> None:
    table = Table("check", "finding", "cases", "what it holds, or why it was not checked")
    for finding in report.findings:
        cases = f"{finding.cases:,}" if finding.cases else ""
        said = finding.note if finding.holds is None else finding.promise
        if finding.holds is not None and finding.note:
            said += f" ({finding.note})"
        table.add_row(finding.check, _WORDS[finding.holds], cases, cell(said))
    out.print(table)
    for finding in report.findings:
        if finding.holds is False:
            say(f"\n{finding.check} fails for {finding.failed} of {finding.cases} cases, such as:")
            for failure in finding.failures[:3]:
                say(f"  {one_line(str(failure))}")
            say(f"  What to do: {finding.remedy}.")
    if report.note:
        say(f"\nNot tried: {report.note}.")
    held = sum(finding.holds is True for finding in report.findings)
    say(
        f"\n{report.subject}: {held} hold, {len(report.failing)} fail, "
        f"{len(report.unchecked)} not checked (seed {report.seed}, {report.tasks} tasks)"
    )
