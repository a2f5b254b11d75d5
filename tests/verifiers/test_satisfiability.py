"""Satisfiability: references against brute force, and spellings of the values."""

import itertools

import numpy as np

from assay.verifiers import Satisfiability


def test_clauses_without_a_solution_are_refused() -> None:
    draw = np.random.default_rng(0)
    refused = 0
    for _ in range(300):
        size = int(draw.integers(1, 6))
        clauses = [
            (draw.choice((1, -1), n) * draw.integers(1, size + 1, n)).tolist()
            for n in draw.integers(1, 4, draw.integers(1, 21))
        ]
        possible = any(
            all(any(values[abs(m) - 1] == (m > 0) for m in clause) for clause in clauses)
            for values in itertools.product((False, True), repeat=size)
        )
        fault = Satisfiability().check_reference({"clauses": clauses})
        tautology = all(any(-m in clause for m in clause) for clause in clauses)
        assert (fault is None) == (possible and not tautology), clauses
        refused += not possible
    assert 50 < refused < 250


def test_a_search_that_would_be_long_gives_up() -> None:
    draw = np.random.default_rng(0)
    clauses = [
        (draw.choice((1, -1), 3) * (draw.permutation(200)[:3] + 1)).tolist() for _ in range(2000)
    ]
    assert Satisfiability().check_reference({"clauses": clauses}) is None


def test_variables_may_be_capital() -> None:
    assert Satisfiability().verify("X1 = True, X_2 IS F", {"clauses": [[1], [-2]]}).score == 1.0
