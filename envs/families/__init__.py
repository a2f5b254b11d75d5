"""Task families: procedural tasks, each with levels, judged by the verifier of the same name."""

from __future__ import annotations

FAMILIES = {
    "Countdown": ("countdown", "reach a target with + - * /"),
    "RegexSynthesis": ("regex_synthesis", "write the regular expression of a described language"),
    "SQL": ("sql", "answer a question about three tables with one query"),
    "Integral": ("integral", "find an antiderivative"),
    "KnightsAndKnaves": ("knights", "tell who lies from what people say"),
    "Queens": ("queens", "place queens that do not attack each other"),
    "Sudoku": ("sudoku", "fill a grid so that nothing repeats"),
    "TwentyFour": ("twenty_four", "make 24 of four numbers"),
    "Zebra": ("zebra", "find who lives where from clues"),
}
"""By class: its module here, and what it asks. Each is registered as ``assay/<class>-v0``."""
