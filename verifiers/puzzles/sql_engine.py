"""The worker's side of the SQL verifier: runs queries on SQLite in a process of its own.

:mod:`~assay.verifiers.maths.worker_guest` hands it the questions:

    {"key": str, "reference": {...}, "query": str | null, "steps": int, ...}

A query of null asks whether the reference can be used. What is loaded is kept by its key, so
a question may leave the reference out; the finding ``unknown`` asks for it. The other findings are
``same``, ``different``, ``bad_gold``, ``compile_error``, ``runtime_error``, ``timeout``, ``memory``
and ``output_limit``.

It must not import the rest of the package: it is to start quickly and know nothing else.
"""

from __future__ import annotations

import math
import re
import sqlite3
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any

Row = tuple[Any, ...]
Result = tuple[list[str], list[Row]]

_LONGEST_VALUE = 20_000
"""Bytes of one text, blob or row: what one step of SQLite's machine can work on."""
_MOST_ROWS = 10_000
_MOST_BYTES = 8 << 20
_LOAD_STEPS = 50_000_000
_HEAP = 256 << 20
_KEPT_BYTES = 64 << 20
"""Of databases kept in memory, all references together."""
_HANDLER_STEPS = 1000

_LIMITS = {
    sqlite3.SQLITE_LIMIT_LENGTH: _LONGEST_VALUE,
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: 40_000,
    sqlite3.SQLITE_LIMIT_COLUMN: 200,
    sqlite3.SQLITE_LIMIT_EXPR_DEPTH: 200,
    sqlite3.SQLITE_LIMIT_COMPOUND_SELECT: 50,
    sqlite3.SQLITE_LIMIT_VDBE_OP: 50_000,
    sqlite3.SQLITE_LIMIT_FUNCTION_ARG: 100,
    sqlite3.SQLITE_LIMIT_ATTACHED: 0,
    sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 500,
    sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER: 0,
    sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH: 1,
    sqlite3.SQLITE_LIMIT_WORKER_THREADS: 0,
}

_ALLOWED = (
    "abs acos acosh asin asinh atan atan2 atanh avg ceil ceiling char coalesce concat "
    "concat_ws cos cosh count cume_dist date datetime degrees dense_rank exp first_value "
    "floor format glob group_concat hex if ifnull iif instr julianday lag last_value lead "
    "length like likelihood likely ln log log10 log2 lower ltrim max min mod nth_value ntile "
    "nullif octet_length percent_rank pi pow power printf quote radians rank replace round "
    "row_number rtrim sign sin sinh sqrt strftime string_agg substr substring sum tan tanh "
    "time total trim trunc typeof unhex unicode unixepoch unlikely upper"
)
_FUNCTIONS = frozenset(_ALLOWED.split())
"""What a query may call: nothing that reads files, the clock or chance."""

_DATES = ("date", "time", "datetime", "julianday", "unixepoch", "strftime")
_QUERY_ACTIONS = frozenset({sqlite3.SQLITE_SELECT, sqlite3.SQLITE_RECURSIVE})
_LOAD_ACTIONS = _QUERY_ACTIONS | {
    sqlite3.SQLITE_CREATE_TABLE,
    sqlite3.SQLITE_CREATE_INDEX,
    sqlite3.SQLITE_CREATE_VIEW,
    sqlite3.SQLITE_INSERT,
    sqlite3.SQLITE_UPDATE,
    sqlite3.SQLITE_DELETE,
    sqlite3.SQLITE_DROP_TABLE,
    sqlite3.SQLITE_ALTER_TABLE,
    sqlite3.SQLITE_READ,
    sqlite3.SQLITE_REINDEX,
    sqlite3.SQLITE_TRANSACTION,
}


class Refused(Exception):
    """A finding that is no comparison: its kind and a reason."""

    def __init__(self, kind: str, reason: str) -> None:
        super().__init__(reason)
        self.kind = kind
        self.reason = reason


class Database:
    """A database in memory, made by SQL and filled by SQL or rows, that is then only read.

    A query may take so many steps of SQLite's virtual machine. With ``backward``, tables are read
    from the end if a query asks for no order. ``Refused("bad_gold", ...)``: it cannot be made.
    """

    def __init__(self, schema: str, content: Any, steps: int, *, backward: bool = False) -> None:
        self.steps = steps
        self._left = _LOAD_STEPS
        link = sqlite3.connect(":memory:", isolation_level=None, cached_statements=0)
        self.link = link
        link.execute("PRAGMA temp_store = MEMORY")
        link.execute(f"PRAGMA reverse_unordered_selects = {int(backward)}")
        link.set_progress_handler(self._count_down, _HANDLER_STEPS)
        link.set_authorizer(_while_loading)
        try:
            link.executescript(schema)
            if isinstance(content, str):
                link.executescript(content)
            else:
                for table, rows in content.items():
                    self._fill(table, rows)
        except Exception as error:
            link.close()
            raise Refused("bad_gold", f"a database cannot be made: {error}") from error
        link.set_authorizer(None)
        self.size = _value(link, "PRAGMA page_count") * _value(link, "PRAGMA page_size")
        self._tables = {n.lower() for (n,) in link.execute("SELECT name FROM sqlite_master")}
        link.execute("PRAGMA query_only = ON")
        self._original = sqlite3.connect(":memory:")  # has SQLite's own dates and printf
        _stop_the_clock(link, self._original)
        _narrow(link, self._original)
        for limit, most in _LIMITS.items():
            link.setlimit(limit, most)
        link.set_authorizer(self._while_asked)

    def run(self, query: str, *, columns: int | None = None, most: int = _MOST_ROWS) -> Result:
        """Return the names and rows of the result of one SELECT, WITH or VALUES statement.

        Raises:
            Refused: the query cannot be run, has other columns, or takes more than it may.
        """
        if next(_lexemes(query), "") not in ("select", "with", "values"):
            raise Refused("compile_error", "it is no query: expected SELECT or WITH")
        self._left = self.steps
        try:
            cursor = self.link.execute(query)
            names = [d[0] for d in cursor.description or ()]
            if columns is not None and len(names) != columns:
                raise Refused("different", f"{len(names)} columns, expected {columns}")
            return names, list(_bounded(cursor, most))
        except (sqlite3.Error, sqlite3.Warning, MemoryError, UnicodeError, ValueError) as error:
            raise _failure(error) from error

    def close(self) -> None:
        """Close both connections."""
        self.link.close()
        self._original.close()

    def _fill(self, table: str, rows: Sequence[Sequence[Any]]) -> None:
        name = '"' + table.replace('"', '""') + '"'
        for row in rows:
            marks = ",".join("?" * len(row))
            self.link.execute(f"INSERT INTO {name} VALUES ({marks})", tuple(row))  # noqa: S608  # quoted above, values bound

    def _count_down(self) -> bool:
        self._left -= _HANDLER_STEPS
        return self._left < 0

    def _while_asked(self, action: int, first: str | None, second: str | None, *_: Any) -> int:
        if action in _QUERY_ACTIONS:
            return sqlite3.SQLITE_OK
        if action == sqlite3.SQLITE_FUNCTION:
            return _allowed((second or "").lower() in _FUNCTIONS)
        if action == sqlite3.SQLITE_READ:
            return _allowed(self._may_read((first or ""), second or ""))
        return sqlite3.SQLITE_DENY

    def _may_read(self, table: str, column: str) -> bool:
        # if no column is read, as in SELECT count(*) FROM T, the name is as the query writes it
        table = table.lower()
        if table.startswith(("sqlite_", "pragma_")):
            return False
        return table in self._tables or not (column or table in _modules())


@cache
def _modules() -> frozenset[str]:
    """Return names of tables that SQLite makes up, such as json_each."""
    link = sqlite3.connect(":memory:")
    names = frozenset(n.lower() for (n,) in link.execute("SELECT name FROM pragma_module_list"))
    link.close()
    return names


def _while_loading(action: int, first: str | None, second: str | None, *_: Any) -> int:
    if action == sqlite3.SQLITE_FUNCTION:
        return _allowed((second or "").lower() in _FUNCTIONS)
    if action in (sqlite3.SQLITE_PRAGMA, sqlite3.SQLITE_ANALYZE):
        return sqlite3.SQLITE_IGNORE  # dumps begin with some
    return _allowed(action in _LOAD_ACTIONS)


def _allowed(allowed: bool) -> int:
    return sqlite3.SQLITE_OK if allowed else sqlite3.SQLITE_DENY


def _value(link: sqlite3.Connection, query: str) -> int:
    return int(link.execute(query).fetchone()[0])


def _bounded(cursor: sqlite3.Cursor, most: int) -> Iterator[Row]:
    size = 0
    for count, row in enumerate(cursor):
        if count >= most:
            raise Refused("different", f"more than {most} rows")
        size += sum(len(v) for v in row if isinstance(v, (str, bytes)))
        if size > _MOST_BYTES:
            raise Refused("output_limit", f"a result of more than {_MOST_BYTES >> 20} MiB")
        yield row


def _failure(error: BaseException) -> Refused:
    """Return what an error of SQLite says of the query."""
    code = getattr(error, "sqlite_errorcode", None)
    text = str(error)[:200]
    if code == sqlite3.SQLITE_INTERRUPT:
        return Refused("timeout", "takes more steps than it may")
    if isinstance(error, MemoryError) or code == sqlite3.SQLITE_NOMEM:
        return Refused("memory", "out of memory")
    at_run = code == sqlite3.SQLITE_TOOBIG or isinstance(error, sqlite3.DataError)
    if at_run or "overflow" in text or "user-defined function" in text:
        return Refused("runtime_error", text)
    return Refused("compile_error", text)


def _stop_the_clock(link: sqlite3.Connection, original: sqlite3.Connection) -> None:
    """Replace the functions of dates by ones that refuse ``now`` and this machine's time zone."""
    for name in _DATES:
        link.create_function(name, -1, _timeless(name, original), deterministic=True)


_MOMENT = re.compile(r"\s*[-+]?[0-9.]")


def _timeless(name: str, original: sqlite3.Connection) -> Callable[..., Any]:
    def call(*given: Any) -> Any:
        when = given[1:] if name == "strftime" else given
        first = when[0] if when else "now"
        if isinstance(first, str) and not _MOMENT.match(first):
            if first.lower().startswith(("now", "subsec")):
                raise ValueError("the clock may not be read")
            return None  # text that names no moment
        if any(isinstance(v, str) and v.strip().lower() in ("localtime", "utc") for v in when):
            raise ValueError("the time zone may not be read")
        marks = ",".join("?" * len(given))
        return original.execute(f"SELECT {name}({marks})", given).fetchone()[0]  # a name of ours

    return call


_WIDTH = re.compile(r"%[-+ 0,#!]*(\*|\d+)?(?:\.(\*|\d+))?")
_WIDEST = _LONGEST_VALUE


def _narrow(link: sqlite3.Connection, original: sqlite3.Connection) -> None:
    """Replace printf by one that refuses wide fields: SQLite writes a billion blanks in a step."""

    def call(*given: Any) -> Any:
        if given and isinstance(given[0], str):
            widths = [w for found in _WIDTH.finditer(given[0]) for w in found.groups() if w]
            wide = any(w != "*" and (len(w) > 5 or int(w) > _WIDEST) for w in widths)
            if wide or ("*" in widths and any(_is_wide(value) for value in given[1:])):
                raise ValueError(f"a field of more than {_WIDEST} characters")
        marks = ",".join("?" * len(given))
        return original.execute(f"SELECT printf({marks})", given).fetchone()[0]  # marks

    for name in ("printf", "format"):
        link.create_function(name, -1, call, deterministic=True)


def _is_wide(value: Any) -> bool:
    """Return True if a value that may be a width is a wide one; text is read as its number."""
    return not isinstance(value, int) or abs(value) > _WIDEST


_LEXEME = re.compile(
    r"--[^\n]*|'[^']*'|\"[^\"]*\"|`[^`]*`|\[[^\]]*\]?|[A-Za-z_]\w*|/\*|.", re.DOTALL
)


def _lexemes(query: str) -> Iterator[str]:
    """Yield the words, quoted texts and signs of a query in lower case, without comments."""
    at = 0
    while lexeme := _LEXEME.match(query, at):
        token, at = lexeme.group().lower(), lexeme.end()
        if token == "/*":
            end = query.find("*/", at)
            at = len(query) if end < 0 else end + 2
        elif not token.isspace() and not token.startswith("--"):
            yield token


def asks_for_order(query: str) -> bool:
    """Return True if a query ends in an ORDER BY that is not inside brackets."""
    depth, last = 0, ""
    for token in _lexemes(query):
        if token in "()":
            depth += 1 if token == "(" else -1
        elif depth == 0 and token == "by" and last == "order":
            return True
        last = token
    return False


def same_rows(
    expected: Sequence[Row], given: Sequence[Row], ordered: bool | Sequence[int], tolerance: float
) -> bool:
    """Return True if two results hold the same rows, each as often, in the order asked for.

    Args:
        expected: rows of the known query.
        given: rows of the other.
        ordered: whether whole rows come in one order; or columns, from 0, whose values do.
        tolerance: relative, by which numbers may differ of which one is no integer.
    """
    if len(expected) != len(given):
        return False
    if expected == given:
        return True
    if {len(row) for row in (*expected, *given)} != {len(expected[0])}:
        return False
    rows = snapped([*expected, *given], tolerance)
    left, right = rows[: len(expected)], rows[len(expected) :]
    if ordered is True:
        return left == right
    if Counter(left) != Counter(right):
        return False
    keys = ordered or ()
    return [[r[k] for k in keys] for r in left] == [[r[k] for k in keys] for r in right]


def snapped(rows: Sequence[Row], tolerance: float) -> list[Row]:
    """Return rows whose values are equal if they count as equal, each with its kind.

    In each column, numbers that lie next to each other in size and closer than the tolerance become
    one number, so that rows can be counted: ``isclose`` alone is no equality. NULL, numbers, text
    and blobs are never equal to each other; 1 and 1.0 are.
    """
    columns = [_snapped_column(values, tolerance) for values in zip(*rows, strict=True)]
    return list(zip(*columns, strict=True))


def _snapped_column(values: Sequence[Any], tolerance: float) -> list[tuple[str, Any]]:
    merged: dict[int | float, int | float] = {}
    last: int | float | None = None
    for value in sorted({v for v in values if isinstance(v, (int, float))}):
        merged[value] = (
            value if last is None or not _close(last, value, tolerance) else merged[last]
        )
        last = value
    return [
        ("number", merged[v]) if isinstance(v, (int, float)) else (type(v).__name__, v)
        for v in values
    ]


def _close(a: int | float, b: int | float, tolerance: float) -> bool:
    if isinstance(a, int) and isinstance(b, int):
        return False
    return math.isclose(a, b, rel_tol=tolerance, abs_tol=1e-12)


class Reference:
    """A reference that was loaded: its databases, each in two orders, and the known results.

    ``Refused("bad_gold", ...)``: it cannot be used.
    """

    def __init__(
        self, reference: dict[str, Any], *, steps: int, tolerance: float, names: bool
    ) -> None:
        self.query, self.tolerance, self.names = reference["query"], tolerance, names
        ordered = reference.get("ordered")
        self.ordered = asks_for_order(self.query) if ordered is None else ordered
        self.databases: list[Database] = []
        try:
            for backward in (False, True):
                for content in reference["databases"]:
                    made = Database(reference["schema"], content, steps, backward=backward)
                    self.databases.append(made)
                    if self.size > _KEPT_BYTES // 4:
                        raise Refused("bad_gold", "the databases are larger than 8 MiB")
            self.results = self._checked()
        except Refused:
            self.close()
            raise

    @property
    def size(self) -> int:
        """Bytes of all databases."""
        return sum(database.size for database in self.databases)

    def close(self) -> None:
        """Forget the databases."""
        for database in self.databases:
            database.close()

    def judge(self, query: str) -> tuple[str, str]:
        """Return a finding about a query, and a reason."""
        count = len(self.databases) // 2
        for place, (database, expected) in enumerate(
            zip(self.databases, self.results * 2, strict=True)
        ):
            try:
                given = database.run(query, columns=len(expected[0]), most=len(expected[1]))
            except Refused as refused:
                return refused.kind, refused.reason
            if self.same(expected, given):
                continue
            if place < count:
                return "different", f"another result on database {place + 1} of {count}"
            return "different", "the result depends on the order in which tables are read"
        return "same", f"the same result on {count} databases"

    def same(self, expected: Result, given: Result) -> bool:
        """Return True if a result is the known one."""
        if self.names and [n.lower() for n in expected[0]] != [n.lower() for n in given[0]]:
            return False
        return same_rows(expected[1], given[1], self.ordered, self.tolerance)

    def _checked(self) -> list[Result]:
        try:
            found = [database.run(self.query) for database in self.databases]
        except Refused as refused:
            reason = f"the known query cannot be run: {refused.reason}"
            raise Refused("bad_gold", reason) from refused
        if isinstance(self.ordered, list) and max(self.ordered, default=0) >= len(found[0][0]):
            raise Refused("bad_gold", f"ordered names a column beyond the {len(found[0][0])}")
        count = len(found) // 2
        forward, backward = found[:count], found[count:]
        if not all(self.same(a, b) for a, b in zip(forward, backward, strict=True)):
            raise Refused(
                "bad_gold",
                "the known result depends on the order in which tables are read: break ties, or "
                "name the columns that are in order",
            )
        if all(self.same(forward[0], other) for other in forward[1:]):
            raise Refused(
                "bad_gold",
                "the known result is the same on all databases, so a constant would win: "
                "make two of them differ in it",
            )
        return forward


class Engine:
    """Answer questions and keeps what it loaded last."""

    def __init__(self) -> None:
        self.kept: OrderedDict[str, Reference] = OrderedDict()

    def answer(self, question: dict[str, Any]) -> tuple[str, str]:
        """Return a finding and a reason, whatever goes wrong."""
        try:
            known = self._reference(question)
            if known is None:
                return "unknown", ""
            query = question["query"]
            return ("same", "") if query is None else known.judge(query)
        except Refused as refused:
            return refused.kind, refused.reason
        except MemoryError:
            return "memory", "out of memory"

    def _reference(self, question: dict[str, Any]) -> Reference | None:
        key = question["key"]
        if key in self.kept:
            self.kept.move_to_end(key)
        elif question.get("reference") is None:
            return None
        else:
            options = {name: question[name] for name in ("steps", "tolerance", "names")}
            self.kept[key] = Reference(question["reference"], **options)
            while sum(known.size for known in self.kept.values()) > _KEPT_BYTES:
                self.kept.popitem(last=False)[1].close()
        return self.kept[key]

    def close(self) -> None:
        """Close every database."""
        while self.kept:
            self.kept.popitem()[1].close()


def start(setup: dict[str, Any]) -> Callable[[dict[str, Any]], tuple[str, str]]:
    """Bound the heap of all connections, parse trees and sorters included."""
    sqlite3.connect(":memory:").execute(f"PRAGMA hard_heap_limit = {_HEAP}")
    return Engine().answer
