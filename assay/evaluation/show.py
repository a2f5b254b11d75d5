"""A run's summary as tables for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.table import Table

from ..console import add_row
from ..verifiers import Status


def tables(summary: Mapping[str, Any], costs: Mapping[str, Any] | None = None) -> Iterator[Table]:
    """Yield tables of measures, levels, rewards, statuses and costs."""
    found = [
        _estimate(f"{name}@{k}", row)
        for name in ("pass", "maj")
        for k, row in summary[f"{name}_at"].items()
    ]
    none = ("pass@1", "-", "no reply has a score", "0")
    yield _table("Accuracy", "measure", *_ESTIMATE, rows=found if summary["pass_at"] else [none])
    if summary["levels"]:
        rows = [_estimate(level, row) for level, row in summary["levels"].items()]
        yield _table("pass@1 by level", "level", *_ESTIMATE, rows=rows)
    rewards = [
        (name, _number(row["mean"]), f"{row['scored']:,}", f"{row['without_score']:,}")
        for name, row in summary["rewards"].items()
    ]
    yield _table("Rewards", "reward", "mean", "scored", "without a score", rows=rewards)
    statuses = []
    for name, count in summary["statuses"].items():
        whose = "ours: no score" if Status(name).ours else "the policy's"
        statuses.append((name, f"{count:,}", f"{count / summary['replies']:.1%}", whose))
    yield _table("Statuses", "status", "replies", "share", "whose", rows=statuses)
    if "characters" in summary:
        yield _table("Length and cost", "what", "value", rows=list(_sizes(summary, costs)))


_ESTIMATE = ("value", "95 % interval", "tasks")
_LEFT = ("95 % interval", "whose")


def _estimate(name: str, found: Mapping[str, Any]) -> Sequence[str]:
    interval = "fewer than two tasks: none"
    if found["low"] is not None:
        interval = f"{found['low']:.4f} to {found['high']:.4f}"
    return name, _number(found["value"]), interval, f"{found['tasks']:,}"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"


def _sizes(
    summary: Mapping[str, Any], costs: Mapping[str, Any] | None
) -> Iterator[tuple[str, str]]:
    if summary["truncated"] is not None:
        yield "replies cut off", f"{summary['truncated']:.1%}"
    for name, row in (
        ("characters of a reply", summary["characters"]),
        ("tokens of a reply", (costs or {}).get("tokens_of_a_reply")),
    ):
        if row:
            shown = f"{row['mean']:,.0f} on average, {row['median']:,.0f} median"
            yield name, f"{shown}, {row['p95']:,.0f} p95, {row['most']:,.0f} at most"
    if not costs:
        return
    for name in ("prompt_tokens", "reply_tokens"):
        if costs[name] is not None:
            yield name.replace("_", " "), f"{costs[name]:,}"
    if costs["unknown"] and costs["reply_tokens"] is not None:
        yield "replies without known tokens", f"{costs['unknown']:,}"
    if costs["price"]:
        yield "price", f"{costs['price']:,.4f}"
    yield "seconds of the policy", f"{costs['seconds']:,.1f}"
    yield "seconds of judging", f"{costs['judging_seconds']:,.1f}"


def _table(title: str, first: str, *others: str, rows: Sequence[Sequence[str]]) -> Table:
    table = Table(first, title=title, title_justify="left")
    for name in others:
        table.add_column(name, justify="left" if name in _LEFT else "right")
    for row in rows:
        add_row(table, *row)
    return table
