"""Puzzles made on demand, each with levels; the rules are in the verifiers' file of the same name.

By class: its module here, and what it asks: the first line of its docstring. Each is registered
as ``assay/<class>-v1``, and imported when it is made.
"""

from __future__ import annotations

PUZZLES = {
    "BaseConversion": ("calculations", "Write a number in another base"),
    "CoinChange": (
        "coin_change",
        "Make an amount with as few coins as possible; taking the largest first may fail",
    ),
    "Colouring": ("colouring", "Colour the vertices so that no edge joins two of one colour"),
    "Countdown": (
        "countdown",
        "Find an expression that uses every number once and equals the target",
    ),
    "FractionSum": ("calculations", "Add and subtract fractions"),
    "GraphPath": (
        "graph_path",
        "Name the vertices of a path; from level 2 on of one with the least weight",
    ),
    "GuessNumber": (
        "guess_number",
        "Guess a number between two bounds, in just as many turns as halving needs",
    ),
    "HamiltonianPath": (
        "hamiltonian_path",
        "Find a path that visits every vertex once; from level 3 on one that comes back",
    ),
    "Hanoi": (
        "hanoi",
        "Move disks from peg to peg, never onto a smaller one, until all are at their targets",
    ),
    "Integral": ("integral", "Find an antiderivative; every one is right, in any form"),
    "Knapsack": ("knapsack", "Choose the things that are worth the most together and fit"),
    "KnightPath": (
        "knight_path",
        "Move a knight around blocked squares; from level 3 on in the fewest moves",
    ),
    "KnightsAndKnaves": ("knights", "Tell knights from knaves by what they say"),
    "LightsOut": (
        "lights_out",
        "Press cells until no light is on; a press switches the cell and its neighbours",
    ),
    "LinearSystem": ("calculations", "Solve a system of linear equations"),
    "MagicSquare": (
        "magic_square",
        "Fill in a square whose rows, columns and diagonals all have one sum",
    ),
    "Maze": ("maze", "Walk from ``S`` to ``G``; from level 4 on by one of the shortest ways"),
    "PolynomialRoots": ("calculations", "Find all roots of a polynomial"),
    "Queens": ("queens", "Place the queens that are missing from a board"),
    "RegexSynthesis": (
        "regex_synthesis",
        "Write a regular expression that matches exactly the strings of a described language",
    ),
    "Remainder": ("calculations", "Find the remainder of a power or a product"),
    "SQL": ("sql", "Write the query that answers a question about three tables"),
    "Satisfiability": ("satisfiability", "Find truth values for which every clause holds"),
    "SlidingTiles": ("sliding_tiles", "Slide tiles into the gap until all are in order"),
    "Sorting": ("sorting", "Put numbers or words in order"),
    "SpanningTree": (
        "spanning_tree",
        "Choose edges that join all vertices and weigh the least together",
    ),
    "SubsetSum": ("subset_sum", "Choose some of the numbers so that they add up to the target"),
    "Sudoku": ("sudoku", "Fill a grid of 4, 6 or 9 rows"),
    "TopologicalOrder": (
        "topological_order",
        "Order tasks so that each comes after all that it needs",
    ),
    "TwentyFour": ("twenty_four", "Make 24 of four numbers from 1 to 13"),
    "WaterJugs": (
        "water_jugs",
        "Measure an amount with jugs that have no marks; from level 4 on in the fewest steps",
    ),
    "WordLadder": (
        "word_ladder",
        "Go from word to word of a list, one letter changed at each step",
    ),
    "Zebra": ("zebra", "Find out who lives in which house, and with what, from clues"),
}
