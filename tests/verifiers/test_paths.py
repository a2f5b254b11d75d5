"""Puzzles whose answer is a way, an order or a choice, against every answer that there can be."""

import random
from itertools import combinations, combinations_with_replacement, pairwise, permutations, product
from typing import Any

import pytest

from assay.verifiers import (
    CoinChange,
    Colouring,
    GraphPath,
    HamiltonianPath,
    Hanoi,
    Knapsack,
    KnightPath,
    LightsOut,
    MagicSquare,
    Maze,
    SlidingTiles,
    Sorting,
    SpanningTree,
    Status,
    SubsetSum,
    TopologicalOrder,
    Verifier,
    WaterJugs,
    WordLadder,
)
from assay.verifiers.puzzles.colouring import coloured
from assay.verifiers.puzzles.hamiltonian_path import hamiltonian
from assay.verifiers.puzzles.hanoi import fewest_moves
from assay.verifiers.puzzles.lights_out import presses
from assay.verifiers.puzzles.magic_square import completed
from assay.verifiers.puzzles.sliding_tiles import solvable
from assay.verifiers.puzzles.sorting import inversions
from assay.verifiers.puzzles.water_jugs import fewest_steps


def score(verifier: Verifier, reply: str, reference: Any) -> float | None:
    return verifier.verify(reply, reference).score


# -- mazes -------------------------------------------------------------------------------------

MAZES = [
    ["S..", ".#.", "..G"], ["SG.", "...", "##."], ["S.#", "#.G", "..."], ["...", "S#G", "#.."],
    ["S", ".", "G"], ["..S..", ".#G#."],
]  # fmt: skip
TURN = {"U": -1j, "D": 1j, "L": -1, "R": 1}


def cells_walked(grid: list[str], moves: str) -> list[complex] | None:
    """The walk in the complex plane, or nothing where it leaves the open cells."""
    cells = {complex(x, y): c for y, row in enumerate(grid) for x, c in enumerate(row) if c != "#"}
    walk = [next(at for at, c in cells.items() if c == "S")]
    for move in moves:
        walk.append(walk[-1] + TURN[move])
        if walk[-1] not in cells:
            return None
    return walk


def wins_maze(grid: list[str], moves: str) -> bool:
    walk = cells_walked(grid, moves)
    return walk is not None and grid[int(walk[-1].imag)][int(walk[-1].real)] == "G"


@pytest.mark.parametrize("grid", MAZES)
def test_of_all_walks_those_that_end_on_the_goal_win(grid) -> None:
    walks = ["".join(p) for n in range(1, 6) for p in product("UDLR", repeat=n)]
    winners = [walk for walk in walks if wins_maze(grid, walk)]
    assert winners
    least = min(map(len, winners))
    for walk in walks:
        right = wins_maze(grid, walk)
        assert score(Maze(), walk, {"grid": grid}) == float(right), walk
        short = float(right and len(walk) == least)
        assert score(Maze(shortest=True), walk, {"grid": grid}) == short, walk
        assert score(Maze(), walk, {"grid": grid, "shortest": True}) == short, walk


WORDS = {"U": "up", "D": "down", "L": "left", "R": "right"}
COMPASS = {"U": "N", "D": "S", "L": "W", "R": "E"}
ARROWS = {"U": "↑", "D": "↓", "L": "←", "R": "→"}
EMOJI = {"U": "⬆️", "D": "⬇️", "L": "⬅️", "R": "➡️"}
LATEX = {"U": r"\uparrow", "D": r"\downarrow", "L": r"\leftarrow", "R": r"\rightarrow"}


def maze_spellings(grid: list[str], walk: str) -> list[str]:
    cells = [(int(at.imag), int(at.real)) for at in cells_walked(grid, walk) or []]
    return [
        walk, walk.lower(), " ".join(walk), ", ".join(walk), " -> ".join(walk), " → ".join(walk),
        "-".join(walk), f"[{', '.join(walk)}]", "[" + ", ".join(f'"{m}"' for m in walk) + "]",
        ", ".join(WORDS[m] for m in walk),
        "\n".join(f"{n}. Move {WORDS[m]}" for n, m in enumerate(walk, 1)),
        "\n".join(f"- {WORDS[m].capitalize()}" for m in walk),
        "Go " + ", then ".join(WORDS[m] for m in walk) + ".", "".join(COMPASS[m] for m in walk),
        " ".join({"U": "north", "D": "south", "L": "west", "R": "east"}[m] for m in walk),
        "".join(ARROWS[m] for m in walk), " ".join(EMOJI[m] for m in walk),
        rf"\boxed{{{' '.join(LATEX[m] for m in walk)}}}",
        rf"The way is $\boxed{{\text{{{walk}}}}}$.",
        f"<think>Let me see: UU?</think><answer>{walk}</answer>",
        f"I go round the wall.\n\n**{walk}**", f"I go round the wall.\n{walk}", f"```\n{walk}\n```",
        f"Path: {walk}", f"The shortest path from S to G is: {walk}",
        " -> ".join(str(cell) for cell in cells), str([list(cell) for cell in cells]), str(cells),
        str(cells[1:]), "\n".join(str(cell) for cell in cells),
    ]  # fmt: skip


@pytest.mark.parametrize("grid", MAZES)
def test_a_walk_wins_in_every_spelling_and_loses_with_a_move_changed(grid) -> None:
    walk = Maze().oracle_reply({"grid": grid})
    for reply in maze_spellings(grid, walk):
        assert score(Maze(), reply, {"grid": grid}) == 1.0, reply
    for at in range(len(walk)):
        dropped = walk[:at] + walk[at + 1 :]
        assert score(Maze(), dropped, {"grid": grid}) == float(wins_maze(grid, dropped))
        for move in "UDLR":
            changed = walk[:at] + move + walk[at + 1 :]
            assert score(Maze(), changed, {"grid": grid}) == float(wins_maze(grid, changed))
    for move in "UDLR":
        assert score(Maze(), walk + move, {"grid": grid}) == 0.0


@pytest.mark.parametrize("reply", ["RD" * 9_000])
def test_other_replies_lose_the_maze(reply) -> None:
    assert score(Maze(), reply, {"grid": MAZES[0]}) == 0.0


# -- Hanoi -------------------------------------------------------------------------------------


def wins_hanoi(start: tuple[int, ...], goal: tuple[int, ...], moves) -> bool:
    """Played with the peg of each disk, the smallest first."""
    at = list(start)
    for a, b in moves:
        top_a = next((d for d, peg in enumerate(at) if peg == a), None)
        top_b = next((d for d, peg in enumerate(at) if peg == b), None)
        if top_a is None or a == b or (top_b is not None and top_b < top_a):
            return False
        at[top_a] = b
    return tuple(at) == goal


def pegs_of(at: tuple[int, ...], pegs: int) -> list[list[int]]:
    return [[d + 1 for d in reversed(range(len(at))) if at[d] == peg] for peg in range(pegs)]


@pytest.mark.parametrize(
    ("start", "goal"), [((0, 0), (2, 2)), ((1, 0), (0, 2)), ((2, 1), (2, 0)), ((0, 1), (1, 1))]
)
def test_of_all_sequences_of_moves_those_that_reach_the_goal_win(start, goal) -> None:
    reference = {"start": pegs_of(start, 3), "goal": pegs_of(goal, 3)}
    steps = list(product(range(3), repeat=2))
    sequences = [s for n in (1, 2, 3) for s in product(steps, repeat=n)]
    sequences += [(*s, t) for s in product(steps[1:4], repeat=3) for t in steps]
    winners = [s for s in sequences if wins_hanoi(start, goal, s)]
    least = min(map(len, winners))
    for moves in sequences:
        right = wins_hanoi(start, goal, moves)
        reply = ", ".join(f"{'ABC'[a]}->{'ABC'[b]}" for a, b in moves)
        assert score(Hanoi(), reply, reference) == float(right), reply
        best = float(right and len(moves) == least)
        assert score(Hanoi(optimal=True), reply, reference) == best, reply
        assert score(Hanoi(), reply, {**reference, "optimal": True}) == best, reply


def test_the_fewest_moves_are_those_of_the_books() -> None:
    for disks in range(1, 9):
        assert len(fewest_moves((0,) * disks, (2,) * disks, 3)) == 2**disks - 1
    for disks, moves in enumerate((1, 3, 5, 9, 13, 17, 25), 1):  # four pegs: Frame and Stewart
        assert len(fewest_moves((0,) * disks, (3,) * disks, 4)) == moves


@pytest.mark.parametrize(("disks", "pegs"), [(10, 3), (9, 5), (7, 3), (6, 4)])
def test_any_arrangement_is_reached_by_the_winning_reply(disks, pegs) -> None:
    rng = random.Random(disks)  # noqa: S311  # test inputs, not secrets
    for _ in range(5):
        start, goal = (tuple(rng.randrange(pegs) for _ in range(disks)) for _ in range(2))
        reference = {"start": pegs_of(start, pegs), "goal": pegs_of(goal, pegs)}
        reply = Hanoi().oracle_reply(reference)
        assert score(Hanoi(), reply, reference) == 1.0
        moves = [("ABCDEF".index(m[0]), "ABCDEF".index(m[-1])) for m in reply.split(", ")]
        assert wins_hanoi(start, goal, moves)


TOWER = {"start": [[3, 2, 1], [], []], "goal": [[], [], [3, 2, 1]]}
MOVES = [(1, "A", "C"), (2, "A", "B"), (1, "C", "B"), (3, "A", "C"), (1, "B", "A"), (2, "B", "C"),
         (1, "A", "C")]  # fmt: skip


def hanoi_spellings(moves) -> list[str]:
    return [
        ", ".join(f"{a}->{b}" for _, a, b in moves),
        "; ".join(f"{a} to {b}" for _, a, b in moves),
        "\n".join(f"{a} → {b}" for _, a, b in moves),
        " ".join(f"{a}{b}" for _, a, b in moves),
        "\n".join(f"Move disk {d} from {a} to {b}" for d, a, b in moves),
        "\n".join(f"{n}. Move disk {d} from {a} to {b}." for n, (d, a, b) in enumerate(moves, 1)),
        "\n".join(f"{n}: {a} -> {b}" for n, (_, a, b) in enumerate(moves, 1)),
        "\n".join(f"{n}) {a}->{b}" for n, (_, a, b) in enumerate(moves, 1)),
        " ".join(f"{n}. {a}->{b}" for n, (_, a, b) in enumerate(moves, 1)),
        "\n".join(f"Step {n}: disk {d}: {a} -> {b}" for n, (d, a, b) in enumerate(moves, 1)),
        "\n".join(f"* Move the disc {d} from peg {a} to peg {b}" for d, a, b in moves),
        ", ".join(f"({d}, {a}, {b})" for d, a, b in moves),
        str([list(move) for move in moves]),
        str([(a, b) for _, a, b in moves]),
        str([{"disk": d, "from": a, "to": b} for d, a, b in moves]).replace("'", '"'),
        "I work it out.\n\nMoves:\n" + "\n".join(f"{a}->{b}" for _, a, b in moves),
        r"\boxed{%s}" % r", ".join(rf"{a} \to {b}" for _, a, b in moves),  # noqa: UP031
        "<answer>" + ", ".join(f"{a.lower()}->{b.lower()}" for _, a, b in moves) + "</answer>",
    ]


def test_hanoi_loses_with_a_move_dropped_changed_or_added() -> None:
    for at in range(len(MOVES)):
        near = [MOVES[:at] + MOVES[at + 1 :], [*MOVES[:at], MOVES[at], *MOVES[at:]]]
        near += [
            [*MOVES[:at], (MOVES[at][0], *pair), *MOVES[at + 1 :]]
            for pair in permutations("ABC", 2)
            if pair != MOVES[at][1:]
        ]
        for moves in near:
            for reply in hanoi_spellings(moves):
                assert score(Hanoi(), reply, TOWER) == 0.0, reply
    for move in permutations("ABC", 2):
        assert score(Hanoi(), hanoi_spellings([*MOVES, (0, *move)])[0], TOWER) == 0.0


# -- graphs ------------------------------------------------------------------------------------


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("seed", range(2))
def test_of_all_lists_of_vertices_the_paths_win(seed, directed) -> None:
    rng = random.Random(seed)  # noqa: S311  # test inputs, not secrets
    edges = [[a, b, rng.choice([1, 2, 2.5, 0.1])] for a, b in permutations("PQRST", 2)]
    edges = [["P", "Q", 0.2], ["Q", "T", 0.1], *rng.sample(edges, 6)]
    reference = {"edges": edges, "start": "P", "goal": "T", "directed": directed}
    weight: dict[tuple[str, str], float] = {}
    for a, b, w in edges:
        for pair in [(a, b)] if directed else [(a, b), (b, a)]:
            weight[pair] = min(w, weight.get(pair, w))
    lists = [p for n in range(1, 5) for p in product("PQRST", repeat=n)]
    lists += list(permutations("PQRST"))
    paths = [
        p
        for p in lists
        if (p[0], p[-1]) == ("P", "T") and len(set(p)) == len(p) and set(pairwise(p)) <= set(weight)
    ]
    weights = {p: round(sum(weight[pair] for pair in pairwise(p)), 6) for p in paths}
    for names in lists:
        reply = " -> ".join(names)
        assert score(GraphPath(), reply, reference) == float(names in weights), reply
        least = weights.get(names) == min(weights.values())
        assert score(GraphPath(shortest=True), reply, reference) == float(least), reply


def test_every_colouring_of_every_small_graph() -> None:
    pairs = list(combinations("WXYZ", 2))
    for chosen in (c for n in range(1, 7) for c in combinations(pairs, n)):
        reference = {"vertices": list("WXYZ"), "edges": [list(p) for p in chosen], "colours": 3}
        proper = 0
        for colours in product("123", repeat=4):
            colour = dict(zip("WXYZ", colours, strict=True))
            right = all(colour[a] != colour[b] for a, b in chosen)
            proper += right
            reply = ", ".join(f"{v}: {c}" for v, c in colour.items())
            fault = Colouring().fault(reply, reference)
            assert (fault is None) == right, (reply, chosen)
        assert (Colouring().check_reference(reference) is None) == (proper > 0)
        if proper:
            assert score(Colouring(), Colouring().oracle_reply(reference), reference) == 1.0


def test_the_search_for_a_colouring_agrees_with_all_of_them() -> None:
    pairs = list(combinations(range(5), 2))
    for mask in range(0, 1024, 3):
        chosen = [p for n, p in enumerate(pairs) if mask >> n & 1]
        near = tuple(tuple(sum(p) - v for p in chosen if v in p) for v in range(5))
        for number in (2, 3):
            exists = any(
                all(c[a] != c[b] for a, b in chosen) for c in product(range(number), repeat=5)
            )
            found = coloured(near, number)
            assert bool(found) == exists
            assert not found or all(found[a] != found[b] for a, b in chosen)


# -- sorting -----------------------------------------------------------------------------------

SORTS = [
    ([3, 1, 2], "ascending", "value", lambda n: n),
    ([3, -1, 2, -1], "descending", "value", lambda n: -n),
    ([3, -3, 2.5, -1], "ascending", "absolute value", abs),
    (["bb", "a", "cc", "ddd"], "descending", "length", lambda w: -len(w)),
    (["bx", "Ax", "cb"], "ascending", "alphabet", str.lower),
    (["bx", "ax", "cb"], "ascending", "last letter", lambda w: w[-1]),
]


@pytest.mark.parametrize(("items", "order", "by", "key"), SORTS)
def test_of_all_lists_of_items_those_in_order_win(items, order, by, key) -> None:
    reference = {"items": items, "order": order, "by": by}
    lists = set(permutations(items)) | {
        p for n in range(1, len(items) + 1) for p in product(items, repeat=n)
    }
    for values in lists:
        same = sorted(map(str, values)) == sorted(map(str, items))
        keys = [key(value) for value in values]
        right = same and keys == sorted(keys)
        reply = ", ".join(map(str, values))
        assert score(Sorting(), reply, reference) == float(right), reply
        share = score(Sorting(partial=True), reply, reference)
        assert (share == 1.0) == right
        assert same or share == 0.0
    for echo in (items, items[::-1]):
        reply = " ".join(map(str, echo))
        share = score(Sorting(partial=True), reply, reference)
        assert share == float([key(v) for v in echo] == sorted(map(key, items)))


def test_pairs_the_wrong_way_round_are_counted_as_by_hand() -> None:
    rng = random.Random(0)  # noqa: S311  # test inputs, not secrets
    for _ in range(200):
        keys = [rng.randrange(6) for _ in range(rng.randrange(9))]
        assert inversions(keys) == sum(a > b for a, b in combinations(keys, 2))


def test_a_reply_that_cannot_be_read_says_why() -> None:
    verdict = Sorting().verify("1, 2, 4", {"items": [3, 2, 1], "order": "ascending"})
    assert (verdict.status, verdict.reason) == (Status.UNPARSEABLE, "4 is not one of the items")
    verdict = Maze().verify("RRX", {"grid": MAZES[0]})
    assert (verdict.status, verdict.reason) == (Status.UNPARSEABLE, "'RRX' is no move: 'x'")


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
        reply = HamiltonianPath().oracle_reply(reference)
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
            assert score(SlidingTiles(), SlidingTiles().oracle_reply(reference), reference) == 1.0


@pytest.mark.parametrize("width", [3, 4])
def test_moves_are_found_for_larger_boards(width) -> None:
    rng = random.Random(width)  # noqa: S311  # test inputs, not secrets
    tiles = list(range(width * width))
    for _ in range(6):
        rng.shuffle(tiles)
        rows = [tiles[width * r : width * (r + 1)] for r in range(width)]
        reference = {"board": rows}
        if SlidingTiles().check_reference(reference) is None:
            reply = SlidingTiles().oracle_reply(reference)
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
        assert score(SubsetSum(), SubsetSum().oracle_reply(reference), reference) == 1.0


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
        assert score(Knapsack(), Knapsack().oracle_reply(reference), reference) == 1.0


# -- squares -----------------------------------------------------------------------------------

LINES = [(0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6)]
ROWS = [row for row in permutations(range(1, 10), 3) if sum(row) == 15]
SQUARES = [
    p
    for a, b, c in permutations(ROWS, 3)
    if len({*(p := (*a, *b, *c))}) == 9 and all(sum(p[i] for i in x) == 15 for x in LINES)
]


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


# -- coins, spanning trees, lights and knights --------------------------------------------------


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
        assert score(CoinChange(), CoinChange().oracle_reply(reference), reference) == 1.0


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
        assert score(SpanningTree(), SpanningTree().oracle_reply(reference), reference) == 1.0
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
