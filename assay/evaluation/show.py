"""A run's summary as tables for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.table import Table

from ..console import add_row
from ..verifiers import Status


def tables(summary: Mapping[str, Any], costs: Mapping[str, Any] | None = None) -> Iterator[Table]:
    """Yield tables of measures, levels, rewards, statuses and costs."""
    yield _measures(summary)
    if summary["levels"]:
        yield _levels(summary)
    yield _rewards(summary)
    yield _statuses(summary)
    if "characters" in summary:
        yield _sizes(summary, costs)


def _measures(summary: Mapping[str, Any]) -> Table:
    table = _table("Accuracy", "measure", "value", "95 % interval", "tasks")
    for name, found in (("pass", summary["pass_at"]), ("maj", summary["maj_at"])):
        for k, row in found.items():
            _add(table, f"{name}@{k}", row)
    if not summary["pass_at"]:
        add_row(table, "pass@1", "-", "no reply has a score", "0")
    return table


def _levels(summary: Mapping[str, Any]) -> Table:
    table = _table("pass@1 by level", "level", "value", "95 % interval", "tasks")
    for level, row in summary["levels"].items():
        _add(table, level, row)
    return table


def _add(table: Table, name: str, found: Mapping[str, Any]) -> None:
    value = "-" if found["value"] is None else f"{found['value']:.4f}"
    interval = "fewer than two tasks: none"
    if found["low"] is not None:
        interval = f"{found['low']:.4f} to {found['high']:.4f}"
    add_row(table, name, value, interval, f"{found['tasks']:,}")


def _rewards(summary: Mapping[str, Any]) -> Table:
    table = _table("Rewards", "reward", "mean", "scored", "without a score")
    for name, row in summary["rewards"].items():
        mean = "-" if row["mean"] is None else f"{row['mean']:.4f}"
        add_row(table, name, mean, f"{row['scored']:,}", f"{row['without_score']:,}")
    return table


def _statuses(summary: Mapping[str, Any]) -> Table:
    table = _table("Statuses", "status", "replies", "share", "whose")
    for name, count in summary["statuses"].items():
        whose = "ours: no score" if Status(name).ours else "the policy's"
        add_row(table, name, f"{count:,}", f"{count / summary['replies']:.1%}", whose)
    return table


def _sizes(summary: Mapping[str, Any], costs: Mapping[str, Any] | None) -> Table:
    table = _table("Length and cost", "what", "value")
    if summary["truncated"] is not None:
        add_row(table, "replies cut off", f"{summary['truncated']:.1%}")
    for name, row in (
        ("characters of a reply", summary["characters"]),
        ("tokens of a reply", (costs or {}).get("tokens_of_a_reply")),
    ):
        if row:
            shown = f"{row['mean']:,.0f} on average, {row['median']:,.0f} median"
            add_row(table, name, f"{shown}, {row['p95']:,.0f} p95, {row['most']:,.0f} at most")
    if costs:
        for name in ("prompt_tokens", "reply_tokens"):
            if costs[name] is not None:
                add_row(table, name.replace("_", " "), f"{costs[name]:,}")
        if costs["unknown"] and costs["reply_tokens"] is not None:
            add_row(table, "replies without known tokens", f"{costs['unknown']:,}")
        if costs["price"]:
            add_row(table, "price", f"{costs['price']:,.4f}")
        add_row(table, "seconds of the policy", f"{costs['seconds']:,.1f}")
        add_row(table, "seconds of judging", f"{costs['judging_seconds']:,.1f}")
    return table


def _table(title: str, first: str, *numbers: str) -> Table:
    table = Table(title=title, title_justify="left")
    table.add_column(first)
    for name in numbers:
        table.add_column(name, justify="left" if name in ("whose", "95 % interval") else "right")
    return table
