"""The table of constraints in the docs, from the registry."""

from __future__ import annotations

from . import reference  # noqa: F401  # fills the registry
from .registry import CONSTRAINTS


def table() -> str:
    """Render every constraint in Markdown: its name, arguments, and when a reply follows it."""
    rows = ["| instruction | arguments | a reply follows it if |", "| --- | --- | --- |"]
    for name, constraint in sorted(CONSTRAINTS.items()):
        arguments = ", ".join(
            f"{argument}?" if argument in constraint.optional else argument
            for argument in constraint.rules
        )
        mark = " ‡" if constraint.whole else ""
        rows.append(
            f"| {name}{mark} | {arguments} | {constraint.says.replace('|', chr(92) + '|')} |"
        )
    return "\n".join(rows) + "\n"
