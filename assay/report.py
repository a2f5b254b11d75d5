"""Tables of a set of verdicts."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from rich.table import Table

from .console import add_row
from .envs import EnvSpec, Plugin, Scored, clustered_interval, pass_at_k, wilson_interval
from .verifiers import Status


def environments(specs: Iterable[EnvSpec], plugins: Iterable[Plugin] = ()) -> Table:
    """Tabulate every environment: what it is, what it needs, which package it comes from."""
    homes = {plugin.root: plugin.package for plugin in plugins}
    rows = []
    for spec in specs:
        root = spec.module.partition(".")[0]
        home = homes.get(root, "assay" if root == "assay" else spec.module)
        rows.append((spec.id, spec.summary, spec.needs, home))
    table = Table(title="Environments")
    table.add_column("environment", no_wrap=True)  # an id that is cut is no id
    table.add_column("what it asks")
    table.add_column("needs")
    foreign = any(home != "assay" for *_, home in rows)
    if foreign:
        table.add_column("from", overflow="fold")
    for *cells, home in rows:
        add_row(table, *cells, *([home] if foreign else []))
    return table


def rewards(rows: Sequence[Scored]) -> Table:
    """Return the mean of the total and of each named reward, over the rows that have one."""
    table = Table("reward", "mean", "scored", "without a score", title="Rewards")
    names = sorted({name for row in rows for name in row.verdict.parts})
    columns = {"total": [row.verdict.score for row in rows]}
    columns |= {name: [row.verdict.parts.get(name) for row in rows] for name in names}
    for name, values in columns.items():
        scores = [v for v in values if v is not None]
        mean = f"{sum(scores) / len(scores):.4f}" if scores else "-"
        add_row(table, name, mean, str(len(scores)), str(len(values) - len(scores)))
    return table


def statuses(rows: Sequence[Scored]) -> Table:
    """Tabulate the number of rows by status, and who caused it."""
    table = Table("status", "rows", "share", "whose", title="Statuses")
    counts = Counter(row.verdict.status for row in rows)
    for status in Status:
        if counts[status]:
            share = f"{counts[status] / len(rows):.1%}"
            whose = "ours: no score" if status.ours else "the policy's"
            add_row(table, status.value, str(counts[status]), share, whose)
    return table


def accuracy(rows: Sequence[Scored]) -> Table:
    """Tabulate accuracy with its 95 % interval, and pass@k if tasks have several completions.

    Rows without a score are left out: they say nothing about the policy.
    """
    by_task: dict[str, list[bool]] = defaultdict(list)
    for row in rows:
        if row.verdict.score is not None:
            by_task[row.task].append(row.verdict.status is Status.CORRECT)
    table = Table("measure", "value", "95 % interval", "tasks", title="Accuracy")
    if not by_task:
        add_row(table, "accuracy", "-", "no row has a score", "0")
        return table
    results = list(by_task.values())
    fewest, most = min(map(len, results)), max(map(len, results))
    if most == 1:
        correct = sum(r[0] for r in results)
        _add(
            table,
            "accuracy",
            correct / len(results),
            wilson_interval(correct, len(results)),
            len(results),
        )
        return table
    _add_mean(table, "accuracy", [sum(r) / len(r) for r in results])
    k = 1
    while k <= fewest:
        _add_mean(table, f"pass@{k}", [pass_at_k(len(r), sum(r), k) for r in results])
        k *= 2
    return table


def _add_mean(table: Table, name: str, values: list[float]) -> None:
    interval = clustered_interval(values) if len(values) > 1 else None
    _add(table, name, sum(values) / len(values), interval, len(values))


def _add(
    table: Table, name: str, value: float, interval: tuple[float, float] | None, tasks: int
) -> None:
    shown = f"{interval[0]:.4f} to {interval[1]:.4f}" if interval else "one task: none"
    add_row(table, name, f"{value:.4f}", shown, str(tasks))
