"""The judge of each reasoning-gym data set, from a review of each scorer of 0.1.25."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

from ..verifiers import Countdown, Integral, Math, Queens, Sudoku, Verifier
from .reasoning_gym_judges import RULES, SameJson, SameLines

Who = Literal["assay", "package", "refused"]


def answer_of(entry: Any) -> Any:
    """Return the known answer of an entry."""
    return entry["answer"]


class Ruling(NamedTuple):
    """The judge of a data set.

    Attributes:
        who: ``assay``'s verifier, the ``package``'s scorer, or ``refused``.
        why: in a few words.
        verifier: makes ours.
        reference: ours, from an entry of the package's; by default the entry's answer.
    """

    who: Who
    why: str
    verifier: Callable[[], Verifier] | None = None
    reference: Callable[[Any], Any] = answer_of


def _number(**conventions: Any) -> Callable[[], Verifier]:
    return lambda: Math(extract=RULES, worked_out=True, **conventions)


def _countdown(entry: Any) -> Any:
    kept = entry["metadata"]
    return {"numbers": list(kept["numbers"]), "target": int(kept.get("target", 24))}


def _signed() -> Verifier:
    return Countdown(signs=True)


def _sudoku(entry: Any) -> Any:
    return {"grid": [list(row) for row in entry["metadata"]["puzzle"]]}


def _queens(entry: Any) -> Any:
    board = entry["metadata"]["puzzle"]
    placed = [
        [r + 1, c + 1]
        for r, row in enumerate(board)
        for c, square in enumerate(row)
        if square == "Q"
    ]
    return {"n": len(board), "placed": placed}


def _integral(entry: Any) -> Any:
    kept = entry["metadata"]
    integrand = str(kept["integrand"]).replace("**", "^")
    return {"integrand": integrand, "variable": str(kept["variable"])}


def _each(names: str, ruling: Ruling) -> dict[str, Ruling]:
    return dict.fromkeys(names.split(), ruling)


_PARSED = "the package passes the reply to sympy's parse_expr, which evaluates it"
_EVALUATED = "the package passes the reply to eval"

RULINGS: dict[str, Ruling] = {
    # the package evaluates the reply as code
    "countdown": Ruling("assay", _PARSED, _signed, _countdown),
    "puzzle24": Ruling(
        "assay", f"{_PARSED}; it does not check the numbers used", _signed, _countdown
    ),
    "simple_integration": Ruling("assay", _PARSED, Integral, _integral),
    "intermediate_integration": Ruling(
        "assay",
        f"{_PARSED}; it pays Integral(f, x), which repeats the question",
        Integral,
        _integral,
    ),
    "polynomial_multiplication": Ruling("assay", _PARSED, lambda: Math(extract=RULES)),
    "n_queens": Ruling("assay", _EVALUATED, Queens, _queens),
    **_each("binary_matrix spiral_matrix string_insertion", Ruling("assay", _EVALUATED, SameLines)),
    # Assay's rule is exact
    "sudoku": Ruling("assay", "any filling that satisfies the rules", Sudoku, _sudoku),
    "mini_sudoku": Ruling("assay", "any filling that satisfies the rules", Sudoku, _sudoku),
    "coin_flip": Ruling(
        "assay", "the package pays '0' in full and hangs on 1e999999999", _number()
    ),
    "complex_arithmetic": Ruling(
        "assay", "the package pays 'nan' in full", lambda: Math(extract=RULES)
    ),
    **_each(
        "aiw basic_arithmetic binary_alternation count_bits count_primes gcd largest_island lcm "
        "leg_counting letter_counting maze number_sequence rotten_oranges simple_equations "
        "simple_geometry",
        Ruling("assay", "a number; the package requires one spelling", _number()),
    ),
    **_each(
        "chain_sum products",
        Ruling(
            "assay",
            "a number; the package pays partial credit for texts that contain it",
            _number(),
        ),
    ),
    **_each(
        "decimal_arithmetic decimal_chain_sum gsm_symbolic number_format rectangle_count "
        "self_reference",
        Ruling("assay", "a number", _number()),
    ),
    # where one text is correct
    **_each(
        "ab arc_1d bf caesar_cipher circuit_logic emoji_mystery futoshiki manipulate_matrix "
        "modulo_grid path_star rotate_matrix sentence_reordering string_manipulation "
        "string_splitting string_synthesis survo word_sequence_reversal word_sorting",
        Ruling("assay", "one text is correct", SameLines),
    ),
    **_each(
        "acre base_conversion calendar_arithmetic color_cube_rotation course_schedule "
        "family_relationships isomorphic_strings letter_jumble mahjong_puzzle needle_haystack "
        "ransom_note spell_backward syllogism tsumego zebra_puzzles",
        Ruling("assay", "one text is correct, ignoring case", lambda: SameLines(case=False)),
    ),
    "game_of_life_halting": Ruling(
        "assay", "the package pays every non-empty text", lambda: SameLines(case=False)
    ),
    "figlet_font": Ruling(
        "assay",
        "the package pays in full if at least ten letters match",
        lambda: SameLines(case=False, gaps=False),
    ),
    **_each(
        "dice list_functions number_filtering",
        Ruling("assay", "one text is correct, ignoring blanks", lambda: SameLines(gaps=False)),
    ),
    "game_of_life": Ruling("assay", "one JSON value is correct", SameJson),
    "codeio": Ruling(
        "assay", "one JSON value is correct; a few answers are drawn again on each access", SameJson
    ),
    # the package's scorer checks rules that Assay has no verifier for
    **_each(
        "advanced_geometry arc_agi bitwise_arithmetic boxnet cryptarithm fraction_simplification "
        "graph_color group_anagrams jugs kakurasu knight_swap knights_knaves number_sorting "
        "palindrome_generation palindrome_partitioning polynomial_equations pool_matrix "
        "power_function prime_factorization propositional_logic quantum_lock rearc shortest_path "
        "sokoban time_intervals tower_of_hanoi word_ladder",
        Ruling("package", "checks the rules in plain Python, which was reviewed"),
    ),
    # no scorer is safe
    "rubiks_cube": Ruling(
        "refused",
        "its scorer repeats a move as often as the reply says (R999999999), without bound",
    ),
    "rush_hour": Ruling(
        "refused", "its scorer takes as many steps as the reply says (A+999999999), without bound"
    ),
    "composite": Ruling(
        "refused", "it mixes other data sets: make those and mix them with assay.envs.Mixed"
    ),
}
