"""``assay audit`` and ``assay diff``: test a reward, compare two verifiers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from .arguments import settings
from .console import add_row, cell, err, out, say
from .envs import (
    AuditReport,
    Compared,
    DataError,
    Finding,
    Sample,
    StoredCompletion,
    TextEnv,
    audit,
    compare,
    read_completions,
    read_referenced,
    refuse_unwritable,
    shortened,
    status_pairs,
    write_json,
)
from .envs.data import read_jsonl
from .naming import Named, make_to_judge, named
from .rescore_cli import diff_runs
from .verifiers.visible import one_line

_NAME_HELP = (
    "An environment id (assay/GSM8K-v1), a verifier (Math), or module:attribute; "
    'options may follow as JSON: \'Math:{"percent": "value"}\'.'
)


def audit_command(
    subject: Annotated[str, typer.Argument(help=_NAME_HELP)],
    data: Annotated[
        str | None,
        typer.Option(
            help="An environment's data; for a verifier, JSONL rows "
            '{"reference": ..., "reply": <one that wins, if known>}.'
        ),
    ] = None,
    other: Annotated[
        str | None, typer.Option(help="Data of the other split, to compare prompts.")
    ] = None,
    setting: Annotated[
        list[str] | None,
        typer.Option("--set", help="An argument of the environment or verifier, as name=value."),
    ] = None,
    tasks: Annotated[int, typer.Option(help="Tasks to sample.")] = 12,
    seed: Annotated[int, typer.Option(help="Seed of tasks and replies.")] = 0,
    check: Annotated[list[str] | None, typer.Option(help="Run only this check.")] = None,
    skip: Annotated[list[str] | None, typer.Option(help="Skip this check.")] = None,
    floor: Annotated[float, typer.Option(help="Maximum reward of a wrong reply.")] = 0.0,
    tolerance: Annotated[
        float, typer.Option(help="Relative error within which a number is correct.")
    ] = 0.0,
    seconds: Annotated[float, typer.Option(help="Maximum CPU seconds for one reply.")] = 10.0,
    prompts: Annotated[
        int, typer.Option(help="Prompts of a generator to compare between splits.")
    ] = 1000,
    longest: Annotated[int, typer.Option(help="Characters of the longest reply.")] = 1 << 20,
    budget: Annotated[
        float | None, typer.Option(help="Seconds after which no further check starts.")
    ] = None,
    json_path: Annotated[
        Path | None,
        typer.Option("--json", help="Write the report, with uncut inputs, to this file."),
    ] = None,
) -> None:
    """Try to break the rewards of an environment or a verifier.

    Exit code 0: no check fails. 1: a check fails, or nothing could be checked.
    """
    if json_path is not None:
        refuse_unwritable(json_path)
    options = settings(setting or [])
    found = _subject(subject, data, options)
    is_env = isinstance(found.thing, TextEnv)
    if other is not None and not is_env:
        raise ValueError("--other goes with an environment: a verifier has no splits")
    other_env = None
    if other is not None:
        other_env, _ = make_to_judge(found.name, {**options, "data": other}, answers=True)
    samples = () if is_env or data is None else _samples(data)
    try:
        with _progress() as bar:
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
    if json_path is not None:
        write_json(json_path, report.to_json())
    _show(report)
    if json_path is not None:
        say(f"Report: {json_path}")
    if report.failing or len(report.unchecked) == len(report.findings):
        raise typer.Exit(1)


def _subject(text: str, data: str | None, options: dict[str, Any]) -> Named:
    """Resolve the subject: an environment gets the data, a verifier is sampled with it."""
    name = text.partition(":{")[0]
    takes_data = data is not None and "/" in name
    return named(text, {**options, "data": data} if takes_data else options)


def _samples(path: str) -> list[Sample]:
    if not Path(path).is_file():
        raise DataError(f'no such file: {path}. Give JSONL rows {{"reference": ..., "reply": ...}}')
    found = []
    for place, row in read_jsonl(Path(path)):
        if not isinstance(row, dict) or "reference" not in row:
            raise DataError(f"{place}: a row needs the field 'reference'")
        reply = row.get("reply")
        if reply is not None and not isinstance(reply, str):
            raise DataError(f"{place}: reply must be text, got {type(reply).__name__}")
        found.append(Sample(row["reference"], reply))
    return found


_WORDS = {True: "[green]holds[/]", False: "[bold red]FAILS[/]", None: "[yellow]not checked[/]"}


def _show(report: AuditReport) -> None:
    table = Table("check", "finding", "cases", "what it holds, or why it was not checked")
    for finding in report.findings:
        cases = f"{finding.cases:,}" if finding.cases else ""
        table.add_row(finding.check, _WORDS[finding.holds], cases, cell(_said(finding)))
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


def _said(finding: Finding) -> str:
    if finding.holds is None:
        return finding.note
    return f"{finding.promise} ({finding.note})" if finding.note else finding.promise


def diff_command(
    first: Annotated[
        str, typer.Argument(metavar="A", help=f"{_NAME_HELP} Or the directory of a run.")
    ],
    second: Annotated[str, typer.Argument(metavar="B", help="The second one.")],
    file: Annotated[
        Path | None,
        typer.Argument(
            help='JSONL rows as `score` reads them, {"task": ..., "completion": ...}; between '
            'two verifiers also {"reference": ..., "completion": ...}. None for two runs.'
        ),
    ] = None,
    env: Annotated[
        str | None, typer.Option(help="The environment of the tasks, if A is a verifier.")
    ] = None,
    data: Annotated[str | None, typer.Option(help="The environment's data.")] = None,
    show: Annotated[int, typer.Option(min=0, help="Disagreements to show.")] = 10,
    json_path: Annotated[
        Path | None, typer.Option("--json", help="Write all disagreements, uncut, to this file.")
    ] = None,
) -> None:
    """Show the rows on which two verifiers disagree, or how two runs differ.

    Exit code 0: every row (of two runs: every common reply) has the same score, and in runs the
    same status. Exit code 1: not.
    """
    if file is None:
        diff_runs(Path(first), Path(second), show, json_path)
        return
    if json_path is not None:
        refuse_unwritable(json_path)
    judges = [_subject(name, data, {}) for name in (first, second)]
    known = judges if env is None else [_subject(env, data, {}), *judges]
    try:
        rows = _rows(file, known)
        with _progress() as bar:
            line = bar.add_task("judging twice", total=len(rows))
            found = compare(
                judges[0].judge,
                judges[1].judge,
                rows,
                progress=lambda done: bar.advance(line, done),
            )
    finally:
        for each in known:
            each.close()
    differing = [row for row in found if not row.agree]
    if json_path is not None:
        write_json(json_path, _difference(first, second, found, differing))
    _show_difference(found, differing, show)
    if json_path is not None:
        say(f"Disagreements: {json_path}")
    if differing:
        raise typer.Exit(1)


def _rows(file: Path, known: list[Named]) -> list[StoredCompletion]:
    for each in known:
        if isinstance(each.thing, TextEnv):
            return read_completions(file, each.thing.source)
    return read_referenced(file)


def _difference(
    first: str, second: str, rows: list[Compared], differing: list[Compared]
) -> dict[str, Any]:
    return {
        "first": first,
        "second": second,
        "rows": len(rows),
        "agree": len(rows) - len(differing),
        "statuses": [
            {"first": a, "second": b, "rows": count} for a, b, count in status_pairs(rows)
        ],
        "disagreements": [row.to_json() for row in differing],
    }


def _show_difference(rows: list[Compared], differing: list[Compared], most: int) -> None:
    table = Table("A says", "B says", "rows", "share", title="Statuses")
    for a, b, count in status_pairs(rows):
        add_row(table, a, b, f"{count:,}", f"{count / len(rows):.1%}")
    out.print(table)
    for row in differing[:most]:
        task, reply = one_line(row.stored.task.id), shortened(row.stored.text, 90)
        say(f"\nrow {row.stored.row}, task {task}: {reply}")
        for letter, verdict in (("A", row.first), ("B", row.second)):
            score = "none" if verdict.score is None else f"{verdict.score:g}"
            say(f"  {letter}: {score:5} {verdict.status.value}, {one_line(verdict.reason)}")
    if len(differing) > most:
        say(f"\n... and {len(differing) - most} more: --show shows them, --json keeps them all")
    agree = len(rows) - len(differing)
    say(f"\nThe same score on {agree:,} of {len(rows):,} rows ({agree / len(rows):.2%})")


def _progress() -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=err,
        transient=True,
    )
