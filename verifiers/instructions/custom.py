"""Tasks of IFBench that are instructions of their own."""

from __future__ import annotations

import csv
import io
import re
import unicodedata
from datetime import date
from itertools import pairwise

from ..text.fences import unfenced
from ..text.sentences import sentences
from ..text.words import folded_words, has_content
from .blocks import lines
from .registry import constraint

_QUESTION = re.compile(r"[\s*#]*Question\b[ \t]*\d{0,3}[ \t]*[:.)]?[ \t*]*")
_OPTION = re.compile(r"[\s*(\[-]*([A-Ea-e])[.):\]][ \t*]*\S")
_SPECIAL = re.compile(r'(?:^|,)[ \t]*"[^"\n]*[^\w\s"][^"\n]*"', re.MULTILINE)
_ITEM = re.compile(r"^[\s*•-]*(?:\d{1,3}[.)])?[\s*]*")


@constraint("custom:multiples", whole=True)
def multiples(reply: str) -> bool:
    """The multiples of 7 from 14 to 49 in order, and no other word."""
    found = re.findall(r"\d+", reply)
    return found == [str(n) for n in range(14, 50, 7)] and not any(c.isalpha() for c in reply)


@constraint("custom:sentence_alphabet")
def sentence_alphabet(reply: str) -> bool:
    """26 sentences; their first words start with the letters from A to Z in order."""
    found = [folded_words(sentence) for sentence in sentences(reply)]
    return "".join(s[0][0] for s in found if s) == "abcdefghijklmnopqrstuvwxyz"


@constraint("custom:word_reverse")
def word_reverse(reply: str) -> bool:
    """A sentence with its words in reverse order names the bald eagle."""
    found = folded_words(reply)
    backward = " ".join(found[::-1])
    return "bald eagle" in backward and "bald eagle" not in " ".join(found) and len(found) > 3


@constraint("custom:character_reverse")
def character_reverse(reply: str) -> bool:
    """A sentence with its letters in reverse order names the bald eagle."""
    low = reply.casefold()
    return "elgae dlab" in low and "bald eagle" not in low


@constraint("custom:mcq_count_length")
def mcq_count_length(reply: str) -> bool:
    """Four questions labelled ``Question``, each longer, with options A to E, and nothing after."""
    blocks: list[list[str]] = []
    for line in lines(reply):
        if _QUESTION.match(line):
            blocks.append([])
        elif not blocks:
            return False
        blocks[-1].append(line)
    sizes = [_question(block) for block in blocks]
    return len(sizes) == 4 and 0 not in sizes and sizes == sorted(set(sizes))


def _question(block: list[str]) -> int:
    """Return the length of a question, 0 if its options are not A to E or something follows."""
    found = [_OPTION.match(line) for line in block]
    first = next((k for k, option in enumerate(found) if option), len(block))
    marks = "".join(option.group(1) if option else "?" for option in found[first:])
    asked = _QUESTION.sub("", "\n".join(block[:first]), count=1)
    return len(" ".join(asked.split())) if marks.upper() == "ABCDE" else 0


def _key(name: str) -> str:
    """Normalize a name without accents, case and marks, so that spellings compare and sort."""
    bare = unicodedata.normalize("NFKD", name).casefold().replace("&", " and ")
    return " ".join("".join(c if c.isalnum() else " " for c in bare if not _mark(c)).split())


def _mark(character: str) -> bool:
    return unicodedata.combining(character) > 0 or character in "'’`"


@constraint("custom:reverse_newline")
def reverse_newline(reply: str) -> bool:
    """The 54 countries of Africa, one per line, from Z to A; a heading may come first."""
    found = [_key(_ITEM.sub("", line)).removeprefix("the ") for line in lines(reply)]
    start = next((k for k, name in enumerate(found) if name in AFRICA), 0)
    listed = found[start:]
    kinds = [AFRICA.get(name) for name in listed]
    return (
        start <= 1
        and None not in kinds
        and len(kinds) == len(set(kinds))
        and set(AFRICA.values()) == set(kinds)
        and all(a > b for a, b in pairwise(listed))
    )


@constraint("custom:european_capitals_sort")
def european_capitals_sort(reply: str) -> bool:
    """Europe's capitals north of 45 degrees, with Kyiv, from north to south, comma-separated."""
    names = [_key(name) for name in reply.strip().removesuffix(".").split(",")]
    found = [CAPITALS[name] for name in names if name in CAPITALS]
    needed = sorted(set(CAPITALS.values()) - OPTIONAL_CAPITALS)
    return (
        len(found) == len(names)
        and found == sorted(set(found))
        and [place for place in found if place not in OPTIONAL_CAPITALS] == needed
    )


def _rows(reply: str, delimiter: str) -> list[list[str]]:
    text = io.StringIO(unfenced(reply.strip()).replace("\0", ""))
    try:
        rows = list(csv.reader(text, delimiter=delimiter, skipinitialspace=True, strict=True))
    except csv.Error:
        return []
    return [[field.strip() for field in row] for row in rows if row]


def _table(reply: str, header: str, rows: int, delimiter: str = ",") -> bool:
    """Return whether a table has these columns, N rows, and no empty field."""
    columns = header.split()
    found = _rows(reply, delimiter)
    return (
        len(found) == rows + 1
        and found[0] == columns
        and all(len(row) == len(columns) and all(map(has_content, row)) for row in found[1:])
    )


@constraint("custom:csv_city")
def csv_city(reply: str) -> bool:
    """Comma-separated columns ID, Country, City, Year, Count with seven rows, no field empty."""
    return _table(reply, "ID Country City Year Count", 7)


@constraint("custom:csv_special_character")
def csv_special_character(reply: str) -> bool:
    """Columns ProductID, Category, Brand, Price, Stock, 14 rows, a special character in quotes."""
    body = unfenced(reply.strip()).partition("\n")[2]
    return _table(reply, "ProductID Category Brand Price Stock", 14) and bool(_SPECIAL.search(body))


@constraint("custom:csv_quotes")
def csv_quotes(reply: str) -> bool:
    """Tab-separated StudentID, Subject, Grade, Semester, Score, three rows, each field quoted."""
    fields = [
        field.strip() for line in lines(unfenced(reply.strip())) for field in line.split("\t")
    ]
    quoted = all(len(f) > 2 and f[0] == f[-1] == '"' for f in fields)
    return quoted and _table(reply, "StudentID Subject Grade Semester Score", 3, "\t")


@constraint("custom:date_format_list")
def date_format_list(reply: str) -> bool:
    """At least ten different dates from 1793 to 1815 occur as YYYY-MM-DD, separated by commas."""
    found = [item.strip() for item in reply.strip().removesuffix(".").split(",")]
    return len(found) == len(set(found)) >= 10 and all(map(_battle_day, found))


def _battle_day(text: str) -> bool:
    if not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
        return False
    try:
        return 1793 <= date.fromisoformat(text).year <= 1815
    except ValueError:
        return False


_COUNTRIES = (
    "algeria", "angola", "benin", "botswana", "burkina faso", "burundi", "cameroon/cameroun",
    "cape verde/cabo verde/cabo verde cape verde/cape verde cabo verde",
    "central african republic", "chad", "comoros",
    "congo/republic of the congo/republic of congo/congo brazzaville/congo republic of the/"
    "congo republic/congo republic of",
    "democratic republic of the congo/democratic republic of congo/dr congo/congo kinshasa/"
    "congo democratic republic of the/congo democratic republic/congo dr/drc/"
    "democratic republic of the congo drc",
    "djibouti", "egypt", "equatorial guinea", "eritrea",
    "eswatini/swaziland/eswatini swaziland/eswatini formerly swaziland", "ethiopia", "gabon",
    "gambia", "ghana", "guinea", "guinea bissau", "kenya", "lesotho", "liberia", "libya",
    "madagascar", "malawi", "mali", "mauritania", "mauritius", "morocco", "mozambique", "namibia",
    "niger", "nigeria", "rwanda",
    "ivory coast/cote divoire/ivory coast cote divoire/cote divoire ivory coast",
    "sao tome and principe", "senegal", "seychelles", "sierra leone", "somalia", "south africa",
    "south sudan", "sudan", "tanzania", "togo", "tunisia", "uganda", "zambia", "zimbabwe",
)  # fmt: skip
AFRICA = {name: k for k, names in enumerate(_COUNTRIES) for name in names.split("/")}
"""The 54 countries of Africa by name; spellings of one share a number."""

_FROM_NORTH = (  # latitudes from 64.1 to 45.8 degrees
    "reykjavik", "helsinki", "oslo", "tallinn", "stockholm", "riga", "moscow", "copenhagen",
    "vilnius", "minsk", "dublin", "berlin", "amsterdam", "warsaw", "london",
    "astana/nur sultan", "brussels", "kyiv/kiev", "prague", "luxembourg/luxembourg city", "paris",
    "vienna", "bratislava", "budapest", "vaduz", "chisinau", "bern/berne", "ljubljana", "zagreb",
)  # fmt: skip
CAPITALS = {name: k for k, names in enumerate(_FROM_NORTH) for name in names.split("/")}
"""The capitals of Europe's countries north of 45 degrees, numbered from north to south."""

OPTIONAL_CAPITALS = frozenset([CAPITALS["astana"]])
"""Kazakhstan lies in Europe in part."""
