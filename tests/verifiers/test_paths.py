"""Ways, orders and colourings, against lists of every answer that there can be."""

import random
from itertools import combinations, pairwise, permutations, product

import pytest

from assay.verifiers import Colouring, GraphPath, Hanoi, Maze, Sorting, Status, Verifier
from assay.verifiers.puzzles.colouring import coloured
from assay.verifiers.puzzles.hanoi import fewest_moves
from assay.verifiers.puzzles.sorting import inversions


def score(verifier: Verifier, reply: str, reference: object) -> float | None:
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
    walk = Maze().winning_reply({"grid": grid})
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
        reply = Hanoi().winning_reply(reference)
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
            assert score(Colouring(), Colouring().winning_reply(reference), reference) == 1.0


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
