"""Coins, spanning trees, lights and knights, against every answer there can be."""

import random
from itertools import combinations, combinations_with_replacement, pairwise, permutations, product
from typing import Any

import pytest

from assay.verifiers import CoinChange, KnightPath, LightsOut, SpanningTree, Verifier
from assay.verifiers.puzzles.lights_out import presses


def score(verifier: Verifier, reply: str, reference: Any) -> float | None:
    return verifier.verify(reply, reference).score


@pytest.mark.parametrize("coins", [[1, 4, 5], [3, 5], [2, 6, 7]])
def test_of_all_lists_of_coins_the_shortest_win(coins) -> None:
    lists = [c for n in range(1, 6) for c in combinations_with_replacement(coins, n)]
    for amount in range(1, 15):
        reference = {"coins": coins, "amount": amount}
        makes = [c for c in lists if sum(c) == amount]
        fault = CoinChange().check_reference(reference)
        assert (fault is None) == bool(makes)
        if not makes:
            continue
        least = min(map(len, makes))
        for given in lists:
            right = float(given in makes and len(given) == least)
            assert score(CoinChange(), ", ".join(map(str, given)), reference) == right
            said = f"{' + '.join(map(str, given[::-1]))} = {amount}"
            assert score(CoinChange(), said, reference) == right
        assert score(CoinChange(), str(amount), reference) == float(amount in coins)
        assert score(CoinChange(), CoinChange().winning_reply(reference), reference) == 1.0


def joined(edges: tuple[tuple[str, str], ...]) -> set[str]:
    reached = {"P"}
    for _ in range(5):
        reached |= {v for e in edges for v in e if reached & set(e)}
    return reached


def test_of_all_sets_of_edges_the_lightest_trees_win() -> None:
    rng = random.Random(5)  # noqa: S311  # test inputs, not secrets
    found = 0
    for _ in range(12):
        pairs = rng.sample(list(combinations("PQRST", 2)), 7)
        weight = {pair: rng.choice([1, 2, 2.5]) for pair in pairs}
        reference = {"edges": [[*pair, w] for pair, w in weight.items()]}
        sets = [c for n in range(1, 6) for c in combinations(pairs, n)]
        trees = [c for c in sets if len(c) == 4 and joined(c) == set("PQRST")]
        assert (SpanningTree().check_reference(reference) is None) == bool(trees)
        if not trees:
            continue
        found += 1
        least = min(sum(weight[p] for p in tree) for tree in trees)
        for chosen in sets:
            right = float(chosen in trees and sum(weight[p] for p in chosen) == least)
            for reply in (
                ", ".join(f"{a}-{b}" for a, b in chosen),
                "\n".join(f"- {b.lower()} -> {a}" for a, b in chosen),
                str([list(edge) for edge in chosen]),
                str(list(chosen)),
            ):
                assert score(SpanningTree(), reply, reference) == right, reply
        assert score(SpanningTree(), SpanningTree().winning_reply(reference), reference) == 1.0
    assert found > 5


@pytest.mark.parametrize(("height", "width"), [(2, 2), (2, 3), (3, 3)])
def test_of_all_presses_those_that_put_out_all_lights_win(height, width) -> None:
    cells = list(product(range(height), range(width)))
    sets = [c for n in range(len(cells) + 1) for c in combinations(cells, n)]
    left = {}
    for chosen in sets:
        lit = dict.fromkeys(cells, False)
        for r, c in chosen:
            for at in [(r, c), (r - 1, c), (r + 1, c), (r, c - 1), (r, c + 1)]:
                if at in lit:
                    lit[at] = not lit[at]
        left[chosen] = tuple("".join("#" if lit[r, c] else "." for c in range(width))
                             for r in range(height))  # fmt: skip
    reachable = set(left.values())
    for bits in product(".#", repeat=height * width):
        grid = tuple("".join(bits[width * r : width * (r + 1)]) for r in range(height))
        assert (presses(grid) is not None) == (grid in reachable)
        if presses(grid) is not None:
            assert left[presses(grid)] == grid
    for grid in sorted(reachable)[:-1:17]:  # the last is dark
        for chosen in sets[1::3]:
            reply, right = ", ".join(map(str, chosen)), float(left[chosen] == grid)
            assert score(LightsOut(), reply, {"grid": list(grid)}) == right, reply
    for reply in ("()", "(0)", "(9, 9)", "(0, 0) or (1, 1)", "0, 0", "(-1, 0)", "(0, 0), (0, 0)"):
        assert score(LightsOut(), reply, {"grid": ["#" * width] * height}) == 0.0, reply


def test_of_all_lists_of_squares_the_knights_ways_win() -> None:
    squares = [f"{c}{r}" for c in "abc" for r in "123"]
    place = {s: ("abc".index(s[0]), int(s[1])) for s in squares}

    def leaps(a: str, b: str) -> bool:
        (x, y), (z, w) = place[a], place[b]
        return {abs(x - z), abs(y - w)} == {1, 2}

    for blocked in ([], ["b3"], ["c2", "a2"]):
        free = [s for s in squares if s not in blocked]
        reference = {"size": 3, "start": "a1", "goal": "c1", "blocked": blocked}
        lists = [("a1", *p) for n in range(1, 5) for p in permutations(squares[1:], n)]
        ways = [
            p
            for p in lists
            if p[-1] == "c1" and set(p) <= set(free) and all(leaps(a, b) for a, b in pairwise(p))
        ]
        assert (KnightPath().check_reference(reference) is None) == bool(ways or blocked == ["b3"])
        if not ways:
            continue
        least = min(map(len, ways))
        for way in lists:
            right = way in ways
            best = float(right and len(way) == least)
            assert score(KnightPath(), ", ".join(way), reference) == float(right), way
            assert score(KnightPath(), " -> ".join(way[1:]), reference) == float(right), way
            named = " ".join(f"N{square}" for square in way)
            assert score(KnightPath(shortest=True), named, reference) == best, way
