"""SQL: does a query find what the known one finds, on every database?"""

from __future__ import annotations

import json
import re
from hashlib import blake2b
from typing import Any

from ...sandbox import ProgrammingLanguage
from ..maths.pool import shared_pool
from ..maths.worker import WorkerError, WorkerLimits, WorkerReply
from ..memo import Memo
from ..text.extract import final_answer
from ..text.fences import find_program, has_fence, unfenced
from ..text.labels import strip_label
from ..validation import safe_repr
from ..verdict import Status, Verdict
from .puzzle import BadReference, PuzzleVerifier, fields

_STATUS = {
    "different": Status.INCORRECT,
    "compile_error": Status.COMPILE_ERROR,
    "runtime_error": Status.RUNTIME_ERROR,
    "timeout": Status.TIMEOUT,
    "memory": Status.MEMORY,
    "output_limit": Status.OUTPUT_LIMIT,
    "crash": Status.BROKE_SANDBOX,
}
_PROGRAM = "puzzles/sql_engine.py"
_LIMITS = WorkerLimits(cpu_s=5.0)
"""A backstop: the count of steps decides, which no busy machine changes."""

_LANGUAGE = ProgrammingLanguage(
    "sql",
    "query.sql",
    ("sqlite3",),
    fences=("sqlite", "sqlite3", "postgres", "postgresql", "mysql"),
)
_LONGEST = 10_000
_KEYS = ("schema", "databases", "query", "ordered")
_FIRST_LINE = re.compile(
    r"^[ \t*]{0,8}?(?:(?:final )?(?:answer|query|sql)(?: query)?\*{0,2}:[ *]{0,4})?"
    r"(?P<sign>`|\*\*)?(?=(?:select|with|values)\b)",
    re.IGNORECASE | re.MULTILINE,
)


class SQL(PuzzleVerifier):
    """Accept any query whose results are those of the known query, on every database.

    The query is in the last ``<answer>``, in the last fenced block of SQL, or from the first line
    that begins with ``SELECT``, ``WITH`` or ``VALUES`` to the end of the reply. It is SQLite's SQL
    and one statement; comments and a ``;`` at its end do no harm. It runs on databases in memory,
    in a worker process: a fault of SQLite's own costs that process and not the
    trainer. It may read their tables and call functions that depend on nothing else: writes,
    ``ATTACH``, ``PRAGMA``, extensions, the schema tables, random numbers and the clock are
    refused. Steps of SQLite's machine, memory, the length of values (20 kB) and of the query
    (10,000 characters) are bounded; recursion is allowed within that.

    Rows are compared as often as each occurs; columns in their order, names by option. NULL equals
    NULL only; numbers are compared by value, so 1 equals 1.0, but not the text ``'1'``. A result
    that changes when tables are read backwards does not win: it rests on chance.

    Reference: ``{"schema": "CREATE TABLE t (a, b)", "databases": [{"t": [[1, null]]}, "INSERT INTO
    t VALUES (2, 'x')"], "query": "SELECT a FROM t", "ordered": false}``. There are two databases or
    more, each as rows by table or as SQL, and the known result differs between two of them, so no
    constant passes. ``ordered`` is true, false, or a list of columns, from 0, whose values must be
    in order, so that ties are free; by default it is true if the known query ends in
    ``ORDER BY``, which must then leave no ties. A known result that rests on chance is refused.

    Args:
        tolerance: relative, for numbers of which one is no integer.
        names: names of columns count, in any case of letters.
        steps: of SQLite's virtual machine for each database; about 50 million take a second.

    Raises:
        ValueError: ``tolerance`` is not from 0 to 0.01, or ``steps`` not from 10,000 to 50,000,000.
    """

    many_answers = False

    def __init__(
        self, *, tolerance: float = 1e-9, names: bool = False, steps: int = 5_000_000
    ) -> None:
        if not 0 <= tolerance <= 0.01:
            raise ValueError(f"tolerance must be from 0 to 0.01, got {tolerance!r}")
        if not 10_000 <= steps <= 50_000_000:
            raise ValueError(f"steps must be from 10,000 to 50,000,000, got {steps!r}")
        self.tolerance = tolerance
        self.names = names
        self.steps = steps
        self._found: Memo[tuple[str, str | None], WorkerReply] = Memo(4096)

    def check(self, reference: Any) -> None:
        """Check the form of a reference, that its query runs, and that no constant passes.

        Raises:
            WorkerError: the worker cannot be started.
        """
        _check_form(reference)
        finding = self._ask(reference, None)
        if finding.kind != "same":
            raise BadReference(finding.reason or finding.kind)

    def oracle_reply(self, reference: Any) -> str:
        return f"```sql\n{reference['query']}\n```"

    def judge(self, reply: str, reference: Any) -> Verdict:
        """Find the query and run it."""
        query, reason = find_query(reply)
        if query is None:
            return Verdict.unparseable(reason)
        finding = self._ask(reference, query)
        if finding.kind == "same":
            return Verdict.correct(finding.reason, extracted=query)
        if finding.kind not in _STATUS:
            raise WorkerError(f"the worker says {finding.kind}: {finding.reason}")
        return Verdict.wrong(finding.reason, status=_STATUS[finding.kind], extracted=query)

    def _ask(self, reference: Any, query: str | None) -> WorkerReply:
        reference = {name: reference.get(name) for name in _KEYS}
        text = json.dumps(reference, sort_keys=True)
        options = {"tolerance": self.tolerance, "names": self.names, "steps": self.steps}
        key = blake2b(f"{options} {text}".encode(), digest_size=16).hexdigest()
        known = self._found.get((key, query))
        if known is not None:
            return known
        pool, question = shared_pool(_LIMITS, _PROGRAM), {"key": key, "query": query, **options}
        finding = pool.ask(question)
        if finding.kind == "unknown":  # this worker has not loaded it yet
            finding = pool.ask({**question, "reference": reference})
        return self._found.put((key, query), finding)


def find_query(reply: str) -> tuple[str | None, str]:
    """Return the query of a reply, or ``None`` and why there is none."""
    found = final_answer(reply, ("tag", "whole"), longest=len(reply))
    if found.text is None:
        return None, found.reason
    text = found.text
    if "\n" not in text:
        text = unfenced(text)  # a fence within one line
    if found.rule == "tag" and not has_fence(text):
        text = text.strip("`")
    fenced = has_fence(text)
    query, reason = find_program(text, _LANGUAGE)
    if query is None:
        return None, reason
    if found.rule == "tag":
        query = strip_label(query, "query", "sql")
    elif not fenced:
        first = _FIRST_LINE.search(query)
        if first is None:
            return None, "no line begins with SELECT or WITH"
        query = query[first.end() :].strip().removesuffix(first["sign"] or "")
    query = query.strip().rstrip("; \t\n")
    if len(query) > _LONGEST:
        return None, f"the query is longer than {_LONGEST} characters"
    return (query, "") if query else (None, "there is no query")


def _check_form(reference: Any) -> None:
    schema, databases, query = fields(reference, "schema", "databases", "query")
    for name, value in (("schema", schema), ("query", query)):
        if not isinstance(value, str) or not value.strip():
            raise BadReference(f"{name} must be SQL, got {safe_repr(value)}")
    if not isinstance(databases, list) or len(databases) < 2:
        raise BadReference(f"databases must be a list of two or more, got {safe_repr(databases)}")
    for content in databases:
        if not isinstance(content, str) and not _is_rows(content):
            raise BadReference(f"a database must be SQL or rows by table, got {safe_repr(content)}")
    ordered = reference.get("ordered")
    columns = isinstance(ordered, list) and all(type(k) is int and 0 <= k < 1000 for k in ordered)
    if not (columns and ordered) and not isinstance(ordered, bool | None):
        raise BadReference(
            f"ordered must be true, false or columns counted from 0, got {safe_repr(ordered)}"
        )


def _is_rows(content: Any) -> bool:
    if not isinstance(content, dict):
        return False
    tables = content.items()
    return all(isinstance(name, str) and isinstance(rows, list) for name, rows in tables) and all(
        isinstance(row, list) and all(map(_is_value, row)) for _, rows in tables for row in rows
    )


def _is_value(value: Any) -> bool:
    if isinstance(value, int):
        return -(2**63) <= value < 2**63  # as SQLite holds it
    return value is None or isinstance(value, (str, float))
