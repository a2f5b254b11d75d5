"""GuessNumber: find a number by asking whether guesses are too low or too high."""

from __future__ import annotations

from functools import partial

import numpy as np

from ...verifiers import Exact, Rubric
from ...verifiers.text.read_answer import ONE_LINE, read_answer
from ..datasets.source import Generated, Split
from ..state import State, Turn
from ..task import Task
from ..text_env import TextEnv

_LARGEST = 10**9


class GuessNumber(TextEnv):
    r"""Guess a number between two bounds, in just as many turns as halving needs.

    Observation: the bounds; then whether the number is higher or lower than the guess. Action: a
    guess, bare on the last line, in ``<answer>`` or in ``\boxed{}``.
    Reward: 1.0 for the number, whenever it is guessed; with ``turn_cost`` each other turn loses
    that much.
    End: with the right guess, or after ``turns`` turns ``truncated``, which earns 0.0. Every task
    can be solved: halving always gets there. A reply without a guess costs its turn.

    Args:
        level: 1 to 5: the number is one of 7, 31, 127, 1,023 or 16,383, in 3 to 14 turns.
        split: bounds are in ``train`` or in ``test``, never in both.
        seed: another seed puts other problems.
        turn_cost: taken off for each turn that is not the right guess.
        render_mode: ``"ansi"`` or ``None``.

    Raises:
        ValueError: there is no such level, or the cost is not from 0 to 1.
    """

    levels = 5
    _turns = (3, 5, 7, 10, 14)

    def __init__(
        self,
        level: int = 1,
        split: Split = "train",
        seed: int = 0,
        *,
        turn_cost: float = 0.0,
        render_mode: str | None = None,
    ) -> None:
        if not 1 <= level <= self.levels:
            raise ValueError(f"level must be from 1 to {self.levels}, got {level}")
        if not 0.0 <= turn_cost <= 1.0:
            raise ValueError(f"turn_cost must be from 0 to 1, got {turn_cost}")
        self.turn_cost = turn_cost
        turns = self._turns[level - 1]
        super().__init__(
            Generated(
                partial(_task, level=level, turns=turns),
                name=f"GuessNumber-{level}",
                split=split,
                seed=seed,
            ),
            Rubric({"accuracy": Exact(extract=ONE_LINE)}),
            max_turns=turns,
            render_mode=render_mode,
        )

    def respond(self, state: State, reply: str) -> Turn:
        """Say whether the number is higher or lower; end with the right guess."""
        cost = -self.turn_cost if self.turn_cost else None
        guess, number = _guess(reply), int(state.task.reference)
        if guess is None:
            return Turn.say("That is no guess. Write one whole number.", reward=cost)
        if guess == number:
            return Turn.end(reward=0.0 if self.turn_cost else None)
        way = "higher" if guess < number else "lower"
        return Turn.say(f"My number is {way} than {guess}.", reward=cost)

    def answer(self, state: State) -> str:
        """Return the last guess in the digits that the rubric expects, or a reply without one."""
        guess = _guess(state.reply)
        return state.reply if guess is None else str(guess)


def _guess(reply: str) -> int | None:
    text = (read_answer(reply).text or "").removesuffix(".")
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= 12 else None


def _task(rng: np.random.Generator, *, level: int, turns: int) -> Task:
    low = int(rng.integers(1, _LARGEST))
    high = low + 2**turns - 2
    number = str(int(rng.integers(low, high + 1)))
    return Task(
        prompt=f"I think of a whole number from {low} to {high}. You have {turns} guesses; after "
        "each I say whether my number is higher or lower. Write your guess alone on the last line.",
        reference=number,
        metadata={"level": level, "low": low, "high": high},
        solution=number,
    )
