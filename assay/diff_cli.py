"""``assay diff``: compare two verifiers on stored replies, or two runs."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table
from typer import Argument, Option

from .console import AsJson, add_row, err, out, print_json, progress, say
from .envs import (
    StoredCompletion,
    TextEnv,
    compare,
    read_completions,
    read_referenced,
    refuse_unwritable,
    shortened,
    status_pairs,
    write_json,
)
from .evaluation import Difference, difference, is_run, read_groups, read_plan
from .naming import NAME_HELP, Resolved, resolve_with_data
from .verifiers import Verdict
from .verifiers.visible import one_line


def diff_command(
    first: Annotated[str, Argument(metavar="A", help=f"{NAME_HELP} Or the directory of a run.")],
    second: Annotated[str, Argument(metavar="B", help="The second one.")],
    file: Annotated[
        Path | None,
        Argument(
            help='JSONL rows as `score` reads them, {"task": ..., "completion": ...}; between '
            'two verifiers also {"reference": ..., "completion": ...}. None for two runs.'
        ),
    ] = None,
    env: Annotated[
        str | None, Option(help="The environment of the tasks, if A is a verifier.")
    ] = None,
    data: Annotated[str | None, Option(help="The environment's data.")] = None,
    show: Annotated[int, Option(min=0, help="Disagreements to show.")] = 10,
    out_path: Annotated[
        Path | None,
        Option("--out", "-o", help="Write all disagreements, uncut, to this JSON file."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show where two verifiers disagree, or how two runs differ.

    Exit code 0: every row (of two runs: every common reply) has the same score, and in runs the
    same status. Exit code 1: not.
    """
    if out_path is not None:
        refuse_unwritable(out_path)
    if file is None:
        differ = _diff_runs(Path(first), Path(second), show, out_path, as_json)
    else:
        differ = _diff_verifiers((first, second), file, env, data, show, out_path, as_json)
    if differ:
        raise typer.Exit(1)


def _diff_verifiers(
    names: tuple[str, str],
    file: Path,
    env: str | None,
    data: str | None,
    show: int,
    out_path: Path | None,
    as_json: bool,
) -> bool:
    judges = [resolve_with_data(name, data) for name in names]
    known = judges if env is None else [resolve_with_data(env, data), *judges]
    try:
        rows = _rows(file, known)
        with progress() as bar:
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
    agree, statuses = len(found) - len(differing), list(status_pairs(found))
    report = {
        "first": names[0],
        "second": names[1],
        "rows": len(found),
        "agree": agree,
        "statuses": [{"first": a, "second": b, "rows": count} for a, b, count in statuses],
        "disagreements": [row.to_json() for row in differing],
    }
    if _written(report, out_path, as_json):
        return bool(differing)
    _show_statuses("A says", "B says", "rows", statuses)
    for row in differing[:show]:
        task, reply = one_line(row.stored.task.id), shortened(row.stored.text, 90)
        say(f"\nrow {row.stored.row}, task {task}: {reply}")
        _show_verdicts({"A": row.first, "B": row.second})
    if len(differing) > show:
        say(f"\n... and {len(differing) - show} more: --show N shows them, --out keeps them all")
    say(f"\nThe same score on {agree:,} of {len(found):,} rows ({agree / len(found):.2%})")
    if out_path is not None:
        say(f"Disagreements: {out_path}")
    return bool(differing)


def _rows(file: Path, known: list[Resolved]) -> list[StoredCompletion]:
    for each in known:
        if isinstance(each.thing, TextEnv):
            return read_completions(file, each.thing.source)
    return read_referenced(file)


def _diff_runs(first: Path, second: Path, show: int, out_path: Path | None, as_json: bool) -> bool:
    for path in (first, second):
        if not is_run(path):
            raise ValueError(
                f"{path} is no run: give the directories of two, or two verifiers and a FILE of "
                "completions"
            )
    changed = read_plan(first).differences(read_plan(second))
    found = difference(read_groups(first), read_groups(second))
    report = {"first": str(first), "second": str(second), **found.to_json()}
    if _written(report, out_path, as_json):
        return bool(found.flips)
    for line in changed:
        say(f"differs: {line}")
    show_difference(found, show, "in A", "in B")
    if out_path is not None:
        say(f"Differences: {out_path}")
    return bool(found.flips)


def _written(report: dict[str, Any], out_path: Path | None, as_json: bool) -> bool:
    """Write a report; return whether it is printed as JSON, in place of tables."""
    if out_path is not None:
        write_json(out_path, report)
    if as_json:
        print_json(report)
    return as_json


def show_difference(found: Difference, most: int, a: str, b: str) -> None:
    """Print how two runs differ."""
    _show_statuses(a, b, "replies", found.statuses)
    for pair in found.flips[:most]:
        text = shortened(pair.first.completion, 90)
        say(f"\ntask {one_line(pair.task)}, reply {pair.copy}: {text}")
        _show_verdicts({a: pair.first.verdict, b: pair.second.verdict})
    if len(found.flips) > most:
        say(f"\n... and {len(found.flips) - most:,} more: --show shows them")
    for name, missing in ((a, found.only_second), (b, found.only_first)):
        if missing:
            say(f"not {name}: {len(missing):,} tasks, such as {missing[0]}", to=err)
    if found.reworded:
        say(
            f"{len(found.reworded):,} tasks have other prompts {b}, such as {found.reworded[0]}: "
            "they are different tasks of one name",
            to=err,
        )
    if found.unpaired:
        say(
            f"{found.unpaired:,} replies have no counterpart, for tasks have more of them in one "
            "run; they count in pass@1 alone",
            to=err,
        )
    say(f"\n{_verdict(found, a, b)}")


def _show_statuses(a: str, b: str, what: str, counts: Iterable[tuple[str, str, int]]) -> None:
    """Print how often the first has one status and the second another."""
    rows = list(counts)
    total = sum(count for _, _, count in rows)
    table = Table(a, b, title="Statuses", title_justify="left")
    table.add_column(what, justify="right")
    table.add_column("share", justify="right")
    for first, second, count in rows:
        add_row(table, first, second, f"{count:,}", f"{count / total:.1%}")
    out.print(table)


def _show_verdicts(verdicts: dict[str, Verdict]) -> None:
    width = max(map(len, verdicts))
    for name, verdict in verdicts.items():
        score = "none" if verdict.score is None else f"{verdict.score:g}"
        say(f"  {name:{width}}: {score:5} {verdict.status.value}, {one_line(verdict.reason)}")


def _verdict(found: Difference, a: str, b: str) -> str:
    same = ", the same in both" if found.same_replies else ""
    lines = [
        f"{found.pairs:,} replies to {found.tasks:,} tasks{same}: {len(found.flips):,} verdicts "
        f"differ, {found.better:,} are right only {b}, {found.worse:,} only {a}"
    ]
    gain = found.gain
    if gain.value is not None:
        known = gain.low is not None and gain.high is not None
        interval = f" (95 %: {gain.low:+.4f} to {gain.high:+.4f})" if known else ""
        lines.append(f"pass@1 {b} less pass@1 {a}: {gain.value:+.4f}{interval}")
    if found.p_value is not None and found.better + found.worse:
        lines.append(f"McNemar's test, exact: p = {found.p_value:.3g}")
    return "\n".join(lines)
