"""Word ladders: from word to word by one letter at a time."""

from __future__ import annotations

import numpy as np

from ...verifiers.puzzles import word_ladder as rules
from ..puzzle_env import Puzzle, PuzzleEnv

_LEVELS = ((3, 12, False), (4, 18, False), (5, 28, True), (6, 45, True), (8, 70, True))
"""Words of the ladder, words to choose from, and whether the ladder must be a shortest one."""
_LIST = """
bake bale ball band bank bare bark barn base bath bead beak beam bean bear beat bell belt bend best
bike bill bind bird bite blow boat bold bolt bond bone book boot bore born both bowl bull bump burn
bush cage cake call calm came camp cane cape card care cart case cash cast cave cell chat chin chip
clap clay coal coat code coin cold colt come cone cook cool cord core cork corn cost cove crab crew
crop crow cube cure dale dame dare dark dart dash data date dawn deal dear deck deed deep deer dent
desk dial dice dime dine dirt dish dive dock dome done door dose dove down drag draw drip drop drum
duck dull dusk dust face fact fade fail fair fake fall fame fare farm fast fate fear feed feel fell
felt file fill film find fine fire firm fish fist five flag flat flow foam fold folk fond food fool
foot fork form fort four game gate gave gift girl give glad glow goal goat gold golf gone good gown
grab gray grew grid grip grow gulf hail hair half hall halt hand hang hard hare harm harp hate have
head heal hear heat heel held help herd here hero hide hill hint hire hold hole home hook hope horn
hose host hour huge hunt hurt
"""
WORDS = tuple(_LIST.split())


class WordLadder(PuzzleEnv):
    """Go from word to word of a list, one letter changed at each step.

    Observation: the list and both ends. Action: the reply.
    Reward: 1.0 for any ladder, from level 3 on for any shortest one. End: after one step.
    Levels have lists of 12, 18, 28, 45 and 70 words.
    """

    verifier = rules.WordLadder

    @classmethod
    def puzzle(cls, rng: np.random.Generator, level: int) -> Puzzle:
        """Draw a hidden ladder, and other words."""
        length, size, shortest = _LEVELS[level - 1]
        ladder: tuple[str, ...] = ()
        while len(ladder) < length:
            start, goal = (WORDS[int(n)] for n in rng.choice(len(WORDS), 2, replace=False))
            ladder = rules.shortest_ladder(WORDS, start, goal)
        more = [WORDS[int(n)] for n in rng.permutation(len(WORDS))]
        words = sorted(dict.fromkeys([*ladder, *more][:size]))
        reference = {"words": words, "start": start, "goal": goal, "shortest": shortest}
        a = "a shortest" if shortest else "a"
        return Puzzle(
            f"Find {a} word ladder from {start} to {goal}: each word differs from the one before "
            f"in one letter, none comes twice, and all are among these: {', '.join(words)}.\n"
            "Give the words from first to last, parted by commas.",
            reference,
            ", ".join(ladder),
        )
