"""SQL: every query with the right results wins, and nothing else; databases stay as they are."""

# ruff: noqa: S608  # SQL is what is tested

import json
import pickle
import subprocess
import sys
import threading
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.verifiers import SQL, Status
from assay.verifiers.puzzles.sql import find_query
from assay.verifiers.puzzles.sql_engine import (
    Database,
    Engine,
    Reference,
    Refused,
    asks_for_order,
    same_rows,
)

SCHEMA = """
CREATE TABLE author (id INTEGER PRIMARY KEY, name TEXT);
CREATE TABLE book (id INTEGER PRIMARY KEY, author_id INTEGER, price REAL, day TEXT);
"""
DATABASES = [
    {
        "author": [[1, "Ada"], [2, "Ben"], [3, "Cem"], [4, "Ada"]],
        "book": [[1, 1, 12.5, "2020-01-02"], [2, 1, 30, "2021-03-04"], [3, 2, 10, None],
                 [4, None, 99, "2020-05-06"], [5, 4, 11, "2022-07-08"]],
    },
    "INSERT INTO author VALUES (1, 'Dot'), (2, 'Eli'); INSERT INTO book VALUES (1, 2, 11, NULL);",
    {"author": [[1, "Flo"]]},
]  # fmt: skip
BASE = {"schema": SCHEMA, "databases": DATABASES}
DEAR = {
    **BASE,
    "query": "SELECT name FROM author WHERE id IN (SELECT author_id FROM book WHERE price > 10)",
}


def fenced(query: str) -> str:
    return f"```sql\n{query}\n```"


HOSTILE = {
    "constant": "SELECT 'Ada' UNION ALL SELECT 'Ada'",
    "values": "VALUES ('Ada'), ('Ada')",
    "everything": "SELECT name FROM author",
    "nothing": "SELECT name FROM author WHERE 0",
    "duplicates": "SELECT a.name FROM author a JOIN book b ON b.author_id = a.id AND price > 10",
    "distinct": "SELECT DISTINCT name FROM author a JOIN book ON author_id = a.id AND price > 10",
    "one column too many": "SELECT name, 1 FROM author",
    "two statements": "SELECT 1; SELECT name FROM author",
    "write first": f"DELETE FROM book; {DEAR['query']}",
    "insert": "INSERT INTO author VALUES (9, 'x')",
    "returning": "INSERT INTO author VALUES (9, 'Ada') RETURNING name",
    "with insert": "WITH x AS (SELECT 1) INSERT INTO author SELECT 9, 'Ada' RETURNING name",
    "with delete": "WITH x AS (SELECT 1) DELETE FROM author RETURNING name",
    "update": "UPDATE author SET name = 'x'",
    "replace": "REPLACE INTO author VALUES (1, 'x')",
    "drop": "DROP TABLE author",
    "alter": "ALTER TABLE author RENAME TO a",
    "create as": "CREATE TABLE x AS SELECT * FROM author",
    "temp": "CREATE TEMP TABLE x (a)",
    "trigger": "CREATE TRIGGER t AFTER INSERT ON author BEGIN DELETE FROM book; END",
    "view": "CREATE VIEW v AS SELECT 1",
    "virtual": "CREATE VIRTUAL TABLE x USING fts5(a)",
    "attach": "ATTACH '/tmp/assay-owned.db' AS x",
    "attach uri": "ATTACH 'file:/tmp/assay-owned.db?mode=rwc' AS x",
    "detach": "DETACH main",
    "vacuum into": "VACUUM INTO '/tmp/assay-owned.db'",
    "pragma": "PRAGMA table_info(author)",
    "pragma set": "PRAGMA writable_schema = ON",
    "query only": "PRAGMA query_only = OFF",
    "pragma function": "SELECT name FROM pragma_table_info('author')",
    "pragma count": "SELECT count(*) FROM pragma_table_list",
    "schema": "SELECT sql FROM sqlite_master",
    "schema by its new name": "SELECT sql FROM sqlite_schema",
    "dbstat": "SELECT name FROM dbstat",
    "json": "SELECT value FROM json_each('[1]')",
    "extension": "SELECT load_extension('libc.so.6')",
    "readfile": "SELECT readfile('/etc/passwd')",
    "writefile": "SELECT writefile('/tmp/assay-owned.db', 'x')",
    "edit": "SELECT edit('x')",
    "fts tokenizer": "SELECT fts3_tokenizer('simple', x'41414141')",
    "random": "SELECT name FROM author ORDER BY random() LIMIT 2",
    "blob": "SELECT randomblob(1000000000)",
    "zeros": "SELECT zeroblob(1000000000)",
    "clock": "SELECT datetime('now')",
    "hidden clock": "SELECT date('n' || 'OW')",
    "bare clock": "SELECT strftime('%s')",
    "timestamp": "SELECT current_timestamp",
    "zone": "SELECT datetime('2020-01-01', 'localtime')",
    "explain": f"EXPLAIN {DEAR['query']}",
    "plan": f"EXPLAIN QUERY PLAN {DEAR['query']}",
    "begin": "BEGIN",
    "savepoint": "SAVEPOINT s",
    "analyze": "ANALYZE",
    "parameter": "SELECT name FROM author WHERE id = ?",
    "named": "SELECT :name",
    "comment alone": "-- SELECT name FROM author",
    "comment that never ends": f"/* {DEAR['query']}",
    "nested comment": f"/* /* */ */ {DEAR['query']}",
    "out of a string": "SELECT 'a;' || \"b; DROP TABLE author",
    "nul": "SELECT name FROM author\x00",
    "nul in a string": "SELECT '\x00'",
    "surrogate": "SELECT '\ud800'",
    "unknown column": "SELECT reward FROM author",
    "unknown function": "SELECT name FROM author WHERE regexp('a', name)",
    "deep": "SELECT " + "(" * 2000 + "1" + ")" * 2000,
    "long sum": "SELECT " + "1+" * 3000 + "1",
    "many terms": " UNION ALL ".join(["SELECT 1"] * 400),
    "wide": "SELECT " + ",".join("1" * 900),
    "overflow": "SELECT sum(9223372036854775807) FROM author",
    "print wide": "SELECT printf('%1000000000d', 1)",
    "print long": "SELECT printf('%.1000000000f', 1.0)",
    "blow up": "SELECT replace(hex(printf('%9999d', 1)), '2', printf('%9999d', 1))",
    "like": "SELECT printf('%9999d', 1) LIKE '%" + " %" * 400 + "x'",
}  # fmt: skip
RUNAWAY = {
    "counts": "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
    "SELECT max(i) FROM n",
    "no keyword": "WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n",
    "product": "SELECT count(*) FROM author a, author b, author c, author d, author e, author f, "
    "author g, author h, author i, author j, author k, author l, author m",
    "sorts": "WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n), "
    "w AS (SELECT printf('%9999d', i) p FROM n ORDER BY 1) SELECT count(*) FROM w",
    "nests": "WITH a0 AS (SELECT 1 x), "
    + ", ".join(f"a{i} AS (SELECT p.x FROM a{i - 1} p, a{i - 1} q)" for i in range(1, 40))
    + " SELECT x FROM a39",
}


@pytest.mark.parametrize("name", [*HOSTILE, *RUNAWAY])
def test_hostile_queries_lose_and_are_no_fault_of_ours(name: str) -> None:
    query = {**HOSTILE, **RUNAWAY}[name]
    for reply in (fenced(query), f"<answer>{query}</answer>"):
        verdict = SQL(steps=1_000_000).verify(reply, DEAR)
        assert verdict.score == 0.0, verdict
        if name in RUNAWAY:
            assert verdict.status in (Status.TIMEOUT, Status.MEMORY)


def test_hostile_queries_leave_every_database_as_it_was() -> None:
    """The engine itself, without the reply's reader before it, in this process."""
    known = Reference(DEAR, steps=100_000, tolerance=0.0, names=False)

    def content() -> list[list[str]]:
        links = [database.link for database in known.databases]
        for link in links:
            link.set_authorizer(None)
        found = [list(link.iterdump()) for link in links]
        for database in known.databases:
            database.link.set_authorizer(database._while_asked)
        return found

    before = content()
    changes = [database.link.total_changes for database in known.databases]
    for query in [*HOSTILE.values(), "SELECT name FROM author; DROP TABLE author"]:
        for database in known.databases:
            try:
                database.run(query)
            except Refused:
                continue
    # and past the first word, which only lets queries through
    for query in HOSTILE.values():
        for database in known.databases:
            try:
                database.link.execute(query).fetchall()
            except Exception:  # noqa: S112  # whatever it says, the content is what counts
                continue
    assert content() == before
    assert [database.link.total_changes for database in known.databases] == changes
    assert known.judge(DEAR["query"])[0] == "same"
    known.close()
    assert not Path("/tmp/assay-owned.db").exists()


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        ([(1,)], [(1.0,)], True), ([(1,)], [("1",)], False), ([("1",)], [(b"1",)], False),
        ([(None,)], [(None,)], True), ([(None,)], [(0,)], False), ([(None,)], [("",)], False),
        ([(0.1 + 0.2,)], [(0.3,)], True), ([(0.3001,)], [(0.3,)], False),
        ([(10**15,)], [(10**15 + 1,)], False), ([(2**63 - 1,)], [(2.0**63,)], True),
        ([(1,), (1,), (2,)], [(1,), (2,), (2,)], False), ([(1, 2)], [(2, 1)], False),
        ([(1,), (2,)], [(2,), (1,)], True), ([], [], True), ([], [(None,)], False),
        ([(float("inf"),)], [(float("inf"),)], True), ([(float("inf"),)], [(1e308,)], False),
        ([(0.1 + 0.2, "b"), (0.3, "a")], [(0.1 + 0.2, "a"), (0.3, "b")], True),
    ],
)  # fmt: skip
def test_rows_are_compared_by_value_and_kind(left, right, same: bool) -> None:
    assert same_rows(left, right, False, 1e-9) is same
    assert same_rows(right, left, False, 1e-9) is same


@pytest.mark.parametrize(
    ("query", "ordered"),
    [
        ("SELECT a FROM t ORDER BY a", True),
        ("select a from t order\n by a limit 3", True),
        ("SELECT a FROM (SELECT a FROM t ORDER BY a)", False),
        ("SELECT rank() OVER (ORDER BY a) FROM t", False),
        ("SELECT 'order by' FROM t -- order by a", False),
        ("SELECT a /* order */ FROM t /* order by a */", False),
        ("SELECT a FROM t ORDER /* x */ BY a", True),
    ],
)
def test_an_order_of_its_own_is_found(query: str, ordered: bool) -> None:
    assert asks_for_order(query) is ordered


@pytest.mark.parametrize(
    ("reply", "query"),
    [
        ("Sure.\n```sql\nSELECT 1;\n```\nIt gives:\n```\n1\n```", "SELECT 1"),
        ("```sql\nSELECT 1\n```\nNo:\n```sqlite\nSELECT 2\n```", "SELECT 2"),
        ("<think>SELECT 1</think>\n<answer>`SELECT 2`</answer>", "SELECT 2"),
        ("<answer>\n```sql\nSELECT 2\n```\n</answer>", "SELECT 2"),
        ("The query:\n\nwith x as (\n\nselect 1)\nselect * from x<|im_end|>",
         "with x as (\n\nselect 1)\nselect * from x"),
        ("SELECT 1 or SELECT 2", "SELECT 1 or SELECT 2"),
        ("```sql SELECT 1; ```", "SELECT 1"),
        ("<answer>```sql SELECT 1```</answer>", "SELECT 1"),
        ("```postgres\nSELECT 1\n```", "SELECT 1"),
        ("**SELECT 1;**", "SELECT 1"),
        ("**Query:** SELECT 1", "SELECT 1"),
        ("* SELECT 1", "SELECT 1"),
        ("```sql\nSELECT 1", None),
        ("I would select all rows.", None),
        ("<think>SELECT 1", None),
        ("```python\nSELECT 1\n```", None),
        ("SELECT " + "1," * 6000 + "1", None),
        ("", None),
    ],
)  # fmt: skip
def test_the_query_of_a_reply_is_found(reply: str, query: str | None) -> None:
    found, reason = find_query(reply)
    assert found == query
    assert (found is None) == bool(reason)


def test_threads_and_copies_get_the_same_verdicts() -> None:
    replies = [fenced(q) for q in (DEAR["query"], *list(HOSTILE.values())[:12])]
    expected = SQL().verify_many(replies, [DEAR] * len(replies))
    found = []

    def judge() -> None:
        verifier = pickle.loads(pickle.dumps(SQL()))
        found.append(verifier.verify_many(replies, [DEAR] * len(replies)))

    threads = [threading.Thread(target=judge) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 4


@pytest.mark.slow
def test_children_made_by_fork_and_spawn_judge_alike(tmp_path) -> None:
    code = (
        "import json, multiprocessing as mp, sys\n"
        "from assay.verifiers import SQL\n"
        "def judge(row):\n    return SQL().verify(*row).score\n"
        "if __name__ == '__main__':\n"
        "    row = tuple(json.loads(sys.argv[1]))\n    assert judge(row) == 1.0\n"
        "    for way in ('fork', 'spawn'):\n"
        "        with mp.get_context(way).Pool(1) as pool:\n"
        "            assert pool.map(judge, [row]) == [1.0]\n"
    )
    # spawn reads the main module again, so it must be a file
    path = tmp_path / "children.py"
    path.write_text(code)
    row = json.dumps([fenced(DEAR["query"]), DEAR])
    subprocess.run([sys.executable, path, row], check=True, timeout=120)


def test_a_worker_that_has_not_seen_a_reference_asks_for_it() -> None:
    question = {"key": "k", "query": None, "steps": 10**6, "tolerance": 0.0, "names": False}
    with closing(Engine()) as engine:
        assert engine.answer(question) == ("unknown", "")
        assert engine.answer({**question, "reference": DEAR}) == ("same", "")
        assert engine.answer({**question, "query": DEAR["query"]})[0] == "same"


values = st.none() | st.integers(-3, 3)
tables = st.lists(st.tuples(values, values), max_size=6)


@settings(deadline=None, derandomize=True, max_examples=60)
@given(left=tables, right=tables, bound=st.integers(-3, 3))
def test_results_are_those_of_python(left, right, bound: int) -> None:
    """Selection, join, grouping, difference: against brute force on small random tables."""
    database = Database(
        "CREATE TABLE l (a, b); CREATE TABLE r (a, b)",
        {"l": [list(row) for row in left], "r": [list(row) for row in right]},
        10**6,
    )
    try:
        some = [row for row in left if row[0] is not None and row[0] > bound]
        pairs = [x + y for x in left for y in right if x[1] is not None and x[1] == y[0]]
        sums = [
            (k, sum(b for a, b in left if a == k and b is not None) or 0, n)
            for k, n in Counter(a for a, _ in left).items()
        ]
        missing = [x for x in left if not any(x[0] == y[0] and x[0] is not None for y in right)]
        for query, expected in (
            (f"SELECT a, b FROM l WHERE a > {bound}", some),
            ("SELECT * FROM l JOIN r ON l.b = r.a", pairs),
            ("SELECT a, coalesce(sum(b), 0), count(*) FROM l GROUP BY a", sums),
            ("SELECT * FROM l WHERE NOT EXISTS (SELECT 1 FROM r WHERE r.a = l.a)", missing),
            ("SELECT DISTINCT a FROM l", [(a,) for a in {a for a, _ in left}]),
        ):
            assert same_rows(expected, database.run(query)[1], False, 0.0), query
    finally:
        database.close()


@settings(deadline=None, derandomize=True, max_examples=200)
@given(
    rows=st.lists(st.tuples(st.integers(0, 2), st.floats(-2, 2).map(lambda x: round(x, 1)))),
    seed=st.randoms(use_true_random=False),
)
def test_equality_of_rows_survives_shuffling_and_noise(rows, seed) -> None:
    other = [(a, b + seed.choice([0, 1e-13, -1e-13])) for a, b in rows]
    seed.shuffle(other)
    assert same_rows(rows, other, False, 1e-9)
    assert not same_rows([*rows, (0, 0.0)], other, False, 1e-9)
    assert not same_rows([*rows, (0, 0.05)], [*other, (1, 0.05)], False, 1e-9)
