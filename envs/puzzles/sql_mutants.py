"""Near-miss queries, which a question's databases must distinguish."""

from __future__ import annotations

import re

_CHANGES = (
    (r" > ", (" >= ", " < ")),
    (r" >= ", (" > ", " <= ")),
    (r" < ", (" <= ", " > ")),
    (r" <= ", (" < ", " >= ")),
    (r" <> ", (" = ",)),
    (r" = ", (" <> ",)),
    (r"\bDISTINCT ", ("",)),
    (r"\bSELECT (?!DISTINCT|1\b)", ("SELECT DISTINCT ",)),
    (r"\bLEFT JOIN\b", ("JOIN",)),
    (r"(?<!LEFT )\bJOIN\b", ("LEFT JOIN",)),
    (r" AND ", (" OR ",)),
    (r" OR ", (" AND ",)),
    (r" DESC\b", ("",)),
    (r"\bIS NULL", ("IS NOT NULL",)),
    (r"\bIS NOT NULL", ("IS NULL",)),
    (r"\bNOT EXISTS", ("EXISTS",)),
    (r"\bcount\((?!\*|DISTINCT)", ("count(DISTINCT ", "sum(")),
    (r"\bcount\([\w.]+\)", ("count(*)",)),
    (r"\bsum\(", ("avg(", "max(", "total(")),
    (r"\bavg\(", ("sum(", "max(")),
    (r"\bmax\(", ("min(", "avg(")),
    (r"\bmin\(", ("max(", "avg(")),
    (r"\brank\(", ("dense_rank(", "row_number(")),
    (r"\bdense_rank\(", ("rank(", "row_number(")),
    (r" HAVING .*", ("",)),
    (r" LIMIT \d+", ("",)),
    (r" GROUP BY [\w., ]*?(?= HAVING|$)", ("",)),
    (r" WHERE (?:(?! GROUP| ORDER|\)).)*", ("",)),
    (r"PARTITION BY \w+ ", ("",)),
    (r"\bORDER BY \w+(?= DESC|\)|$)", ("ORDER BY id",)),
)


def mutants(query: str) -> list[str]:
    """Return the query with one change each: an operator, a number, a function, a clause left out.

    Example:
        >>> mutants("SELECT a FROM t WHERE b > 3")[:2]
        ['SELECT a FROM t WHERE b >= 3', 'SELECT a FROM t WHERE b < 3']
    """
    made = []
    for pattern, changes in _CHANGES:
        for place in re.finditer(pattern, query):
            made += [query[: place.start()] + new + query[place.end() :] for new in changes]
    for place in re.finditer(r"(?<=[ (])\d+\b(?! FROM)", query):
        value = int(place.group())
        made += [
            query[: place.start()] + str(k) + query[place.end() :] for k in (value - 1, value + 1)
        ]
    return [m for m in dict.fromkeys(made) if m != query]
