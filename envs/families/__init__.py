"""Task families: procedural tasks, each with levels, judged by the verifier of the same name."""

from __future__ import annotations

FAMILIES = {
    "CoinChange": ("coin_change", "make an amount with the fewest coins"),
    "Colouring": ("colouring", "colour a graph"),
    "Countdown": ("countdown", "reach a target with + - * /"),
    "GuessNumber": ("guess_number", "find a number by higher and lower, in several turns"),
    "GraphPath": ("graph_path", "find a path in a graph"),
    "HamiltonianPath": ("hamiltonian_path", "visit every vertex of a graph once"),
    "Hanoi": ("hanoi", "bring disks from peg to peg"),
    "Integral": ("integral", "find an antiderivative"),
    "Knapsack": ("knapsack", "choose what is worth the most and can be carried"),
    "KnightPath": ("knight_path", "move a knight from square to square"),
    "KnightsAndKnaves": ("knights", "tell who lies from what people say"),
    "LightsOut": ("lights_out", "put out all lights"),
    "MagicSquare": ("magic_square", "complete a magic square"),
    "Maze": ("maze", "find a way through a maze"),
    "Queens": ("queens", "place queens that do not attack each other"),
    "RegexSynthesis": ("regex_synthesis", "write the regular expression of a described language"),
    "SQL": ("sql", "answer a question about three tables with one query"),
    "SlidingTiles": ("sliding_tiles", "slide tiles into order"),
    "Sorting": ("sorting", "put numbers or words in order"),
    "SpanningTree": ("spanning_tree", "join a graph at the least weight"),
    "SubsetSum": ("subset_sum", "choose numbers that add up to a target"),
    "Sudoku": ("sudoku", "fill a grid so that nothing repeats"),
    "TopologicalOrder": ("topological_order", "order tasks by what they need"),
    "TwentyFour": ("twenty_four", "make 24 of four numbers"),
    "WaterJugs": ("water_jugs", "measure an amount with jugs"),
    "WordLadder": ("word_ladder", "go from word to word by one letter"),
    "Zebra": ("zebra", "find who lives where from clues"),
}
"""By class: its module here, and what it asks. Each is registered as ``assay/<class>-v0``."""
