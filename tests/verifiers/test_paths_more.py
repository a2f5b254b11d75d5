"""Orders, ladders, tiles, jugs, sums, knapsacks and squares, against every answer there can be."""

import random
from itertools import combinations, pairwise, permutations, product
from typing import Any

import pytest

from assay.verifiers import (
    HamiltonianPath,
    Knapsack,
    MagicSquare,
    SlidingTiles,
    SubsetSum,
    TopologicalOrder,
    Verifier,
    WaterJugs,
    WordLadder,
)
from assay.verifiers.puzzles.hamiltonian_path import hamiltonian
from assay.verifiers.puzzles.magic_square import completed
from assay.verifiers.puzzles.sliding_tiles import solvable
from assay.verifiers.puzzles.water_jugs import fewest_steps


def score(verifier: Verifier, reply: str, reference: Any) -> float | None:
    return verifier.verify(reply, reference).score


# -- orders and Hamiltonian paths --------------------------------------------------------------


def test_of_all_lists_of_tasks_the_orders_win() -> None:
    pairs = list(permutations("PQRS", 2))
    rng = random.Random(1)  # noqa: S311  # test inputs, not secrets
    solved = 0
    for _ in range(12):
        edges = rng.sample(pairs, rng.randint(2, 4))
        reference = {"vertices": list("PQRS"), "edges": [list(e) for e in edges]}
        orders = [o for o in permutations("PQRS") if all(o.index(a) < o.index(b) for a, b in edges)]
        assert (TopologicalOrder().check_reference(reference) is None) == bool(orders)
        if not orders:
            continue
        solved += 1
        for order in product("PQRS", repeat=4):
            right = float(order in orders)
            assert score(TopologicalOrder(), ", ".join(order), reference) == right
        assert score(TopologicalOrder(), "PQR", reference) == 0.0
        assert score(TopologicalOrder(), "PQRSP", reference) == 0.0
    assert solved > 3


@pytest.mark.parametrize("cycle", [False, True])
@pytest.mark.parametrize("directed", [False, True])
def test_of_all_lists_of_vertices_those_that_visit_all_once_win(cycle, directed) -> None:
    pairs = list(permutations("PQRST", 2) if directed else combinations("PQRST", 2))
    rng = random.Random(2)  # noqa: S311  # test inputs, not secrets
    found = 0
    for _ in range(10):
        edges = rng.sample(pairs, 12 if directed else 7)
        ways = set(edges) | (set() if directed else {(b, a) for a, b in edges})
        reference = {"edges": [list(e) for e in edges], "directed": directed, "cycle": cycle}
        winners = {
            p for p in permutations("PQRST") if set(pairwise((*p, p[0]) if cycle else p)) <= ways
        }
        whole = {v for e in edges for v in e} == set("PQRST")
        if not whole:
            continue
        assert (HamiltonianPath().check_reference(reference) is None) == bool(winners)
        if not winners:
            continue
        found += 1
        for p in permutations("PQRST"):
            assert score(HamiltonianPath(), " -> ".join(p), reference) == float(p in winners)
            back = f"{'-'.join(p)}-{p[0]}"
            assert score(HamiltonianPath(), back, reference) == float(cycle and p in winners)
            assert score(HamiltonianPath(), "-".join(p[:4]), reference) == 0.0
        reply = HamiltonianPath().winning_reply(reference)
        assert score(HamiltonianPath(), reply, reference) == 1.0
    assert found > 2


def test_a_search_that_is_too_long_leaves_it_unknown() -> None:
    near = tuple(tuple(m for m in range(30) if m % 2 != n % 2 and m > 0) for n in range(30))
    assert hamiltonian(near, cycle=True) is None  # 16 odd or even ones too many: no cycle, unproven


# -- tiles -------------------------------------------------------------------------------------


@pytest.mark.parametrize("board", [[[1, 2, 3], [0, 4, 5]], [[1, 2, 0], [4, 5, 3]]])
def test_of_all_moves_those_that_order_the_tiles_win(board) -> None:
    goal = [1, 2, 3, 4, 5, 0]
    near = {0: {1, 3}, 1: {0, 2, 4}, 2: {1, 5}, 3: {0, 4}, 4: {1, 3, 5}, 5: {2, 4}}
    won = 0
    for moves in (m for n in range(1, 5) for m in product("12345", repeat=n)):
        flat, legal = board[0] + board[1], True
        for move in moves:
            at, gap = flat.index(int(move)), flat.index(0)
            legal = legal and at in near[gap]
            flat[at], flat[gap] = flat[gap], flat[at]
        right = legal and flat == goal
        won += right
        assert score(SlidingTiles(), ", ".join(moves), {"board": board}) == float(right), moves
    assert won


def test_half_of_all_boards_can_be_solved() -> None:
    goal = (1, 2, 3, 4, 5, 0)
    near = {0: {1, 3}, 1: {0, 2, 4}, 2: {1, 5}, 3: {0, 4}, 4: {1, 3, 5}, 5: {2, 4}}
    reached, layer = {goal}, [goal]
    while layer:
        following = []
        for board in layer:
            gap = board.index(0)
            for at in near[gap]:
                after = list(board)
                after[gap], after[at] = after[at], 0
                if tuple(after) not in reached:
                    reached.add(tuple(after))
                    following.append(tuple(after))
        layer = following
    for board in permutations(range(6)):
        assert solvable(board, 3) == (board in reached)
    assert len(reached) == 360
    for board in sorted(reached)[::30]:
        reference = {"board": [list(board[:3]), list(board[3:])]}
        if board != goal:
            assert score(SlidingTiles(), SlidingTiles().winning_reply(reference), reference) == 1.0


@pytest.mark.parametrize("width", [3, 4])
def test_moves_are_found_for_larger_boards(width) -> None:
    rng = random.Random(width)  # noqa: S311  # test inputs, not secrets
    tiles = list(range(width * width))
    for _ in range(6):
        rng.shuffle(tiles)
        rows = [tiles[width * r : width * (r + 1)] for r in range(width)]
        reference = {"board": rows}
        if SlidingTiles().check_reference(reference) is None:
            reply = SlidingTiles().winning_reply(reference)
            assert reply is None or score(SlidingTiles(), reply, reference) == 1.0
            assert reply is not None or width > 3


# -- jugs --------------------------------------------------------------------------------------


def poured(steps: list[str], capacities: dict[str, int]) -> set[int]:
    water = dict.fromkeys(capacities, 0)
    for step in steps:
        kind, a, *rest = step.split()
        if kind == "fill":
            water[a] = capacities[a]
        elif kind == "empty":
            water[a] = 0
        else:
            b = rest[-1]
            while water[a] and water[b] < capacities[b]:
                water[a] -= 1
                water[b] += 1
    return set(water.values())


@pytest.mark.parametrize(("capacities", "target"), [([3, 5], 2), ([2, 3], 1), ([4, 1], 3)])
def test_of_all_steps_those_that_measure_the_amount_win(capacities, target) -> None:
    kinds = ["fill A", "fill B", "empty A", "empty B", "pour A into B", "pour B into A"]
    jugs = dict(zip("AB", capacities, strict=True))
    reference = {"capacities": capacities, "target": target}
    sequences = [list(s) for n in range(1, 5) for s in product(kinds, repeat=n)]
    winners = [s for s in sequences if target in poured(s, jugs)]
    least = min(map(len, winners))
    assert len(fewest_steps(tuple(capacities), target)) == least
    for steps in sequences:
        right = steps in winners
        assert score(WaterJugs(), ", ".join(steps), reference) == float(right), steps
        best = float(right and len(steps) == least)
        assert score(WaterJugs(optimal=True), ", ".join(steps), reference) == best, steps


def test_what_can_be_measured_is_what_bezout_says() -> None:
    for a, b in product(range(1, 8), repeat=2):
        divisor = max(d for d in range(1, 8) if a % d == b % d == 0)
        for target in range(1, 9):
            can = target <= max(a, b) and target % divisor == 0
            fault = WaterJugs().check_reference({"capacities": [a, b], "target": target})
            assert (fault is None) == can, (a, b, target)


# -- ladders -----------------------------------------------------------------------------------


def test_of_all_lists_of_words_the_ladders_win() -> None:
    words = ["cat", "cot", "dot", "dog", "cog", "bat"]
    near = {(a, b) for a, b in permutations(words, 2) if sum(map(str.__ne__, a, b)) == 1}
    for start, goal in [("cat", "dog"), ("bat", "dot"), ("cat", "bat")]:
        reference = {"words": words, "start": start, "goal": goal}
        lists = [p for n in range(2, 7) for p in permutations(words, n)]
        ladders = [p for p in lists if (p[0], p[-1]) == (start, goal) and set(pairwise(p)) <= near]
        least = min(map(len, ladders))
        for ladder in lists:
            right = ladder in ladders
            reply = " -> ".join(ladder)
            assert score(WordLadder(), reply, reference) == float(right), reply
            best = float(right and len(ladder) == least)
            assert score(WordLadder(shortest=True), reply, reference) == best, reply
    assert score(WordLadder(), "cat, cot, cat, cot, cog, dog", {**reference, "goal": "dog"}) == 0.0


# -- sums and knapsacks ------------------------------------------------------------------------


def test_of_all_choices_of_numbers_those_that_add_up_win() -> None:
    numbers = [3, 5, 8, 8, 2]
    for target in range(1, 26):
        reference = {"numbers": numbers, "target": target}
        chosen = {
            tuple(sorted(c)) for n in range(1, 6) for c in combinations(numbers, n)
            if sum(c) == target
        }  # fmt: skip
        assert (SubsetSum().check_reference(reference) is None) == bool(chosen)
        if not chosen:
            continue
        for choice in (c for n in range(1, 4) for c in product([2, 3, 5, 8], repeat=n)):
            right = float(tuple(sorted(choice)) in chosen)
            for sign in (", ", " + ", " ", "\n"):
                assert score(SubsetSum(), sign.join(map(str, choice)), reference) == right
            said = f"{' + '.join(map(str, choice))} = {target}"
            assert score(SubsetSum(), said, reference) == right
            assert score(SubsetSum(), said + "1", reference) == 0.0
        assert score(SubsetSum(), SubsetSum().winning_reply(reference), reference) == 1.0


def test_of_all_choices_of_things_the_best_win() -> None:
    rng = random.Random(3)  # noqa: S311  # test inputs, not secrets
    for _ in range(12):
        things = {name: [rng.randint(1, 5), rng.randint(1, 5)] for name in "VWXYZ"}
        capacity = rng.randint(5, 9)
        reference = {"items": things, "capacity": capacity}
        if Knapsack().check_reference(reference) is not None:
            assert sum(w for w, _ in things.values()) <= capacity
            continue
        choices = [c for n in range(1, 6) for c in combinations("VWXYZ", n)]
        worth = {
            c: sum(things[name][1] for name in c)
            for c in choices
            if sum(things[name][0] for name in c) <= capacity
        }
        for choice in choices:
            right = float(worth.get(choice, 0) == max(worth.values()))
            assert score(Knapsack(), ", ".join(choice[::-1]), reference) == right, choice
        assert score(Knapsack(), Knapsack().winning_reply(reference), reference) == 1.0


# -- squares -----------------------------------------------------------------------------------

LINES = [(0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6)]
SQUARES = [p for p in permutations(range(1, 10)) if all(sum(p[i] for i in x) == 15 for x in LINES)]


def told(square: tuple[int, ...]) -> str:
    return "\n".join(" ".join(map(str, square[at : at + 3])) for at in (0, 3, 6))


def test_every_magic_square_that_keeps_the_numbers_wins() -> None:
    assert len(SQUARES) == 8
    rng = random.Random(4)  # noqa: S311  # test inputs, not secrets
    for square in SQUARES:
        for holes in (9, 8, 7, 5, 1):
            missing = set(rng.sample(range(9), holes))
            given = [0 if at in missing else n for at, n in enumerate(square)]
            reference = {"square": [given[:3], given[3:6], given[6:]]}
            keeps = [s for s in SQUARES if all(g in (0, n) for g, n in zip(given, s, strict=True))]
            for other in SQUARES:
                assert score(MagicSquare(), told(other), reference) == float(other in keeps)
            for a, b in combinations(range(9), 2):
                swapped = list(square)
                swapped[a], swapped[b] = swapped[b], swapped[a]
                assert score(MagicSquare(), told(tuple(swapped)), reference) == 0.0
            assert completed(tuple(given)) in keeps


def test_squares_without_a_solution_are_known() -> None:
    for at, number in product(range(9), range(1, 10)):
        given = [0] * 9
        given[at] = number
        exists = any(square[at] == number for square in SQUARES)
        assert bool(completed(tuple(given))) == exists
