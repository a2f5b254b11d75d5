"""Several turns of plain text in TRL's GRPOTrainer: trained for real, token for token."""

import pickle

import pytest

from assay.envs import (
    Episode,
    Generated,
    State,
    Task,
    TextEnv,
    TRLSpec,
    Turn,
    register,
)
from assay.verifiers import Rubric

trl = pytest.importorskip("trl")
torch = pytest.importorskip("torch")


class Repeat(TextEnv):
    """Say a letter, and when asked again the other: two turns. Both count alike."""

    def __init__(self, split: str = "train", max_turns: int = 2) -> None:
        rubric = Rubric({"first": says(0, "a"), "second": says(1, "b")})
        # All prompts are alike: which task it is cannot be told from the words.
        source = Generated(lambda rng: Task("?", reference="ab"), name="Repeat", test_share=0.001)
        super().__init__(source, rubric, max_turns=max_turns)

    def respond(self, state: State, reply: str) -> Turn:
        if len(state.step_rewards) == 1:
            return Turn.end()
        return Turn.say("!?")

    def answer(self, state: State) -> str:
        return "".join(f"{m['content']}." for m in state.turns if m["role"] == "assistant")


def says(turn: int, letter: str):
    return lambda reply, _: reply.split(".")[turn : turn + 1] == [letter]


register("test-trl/Repeat-v0", Repeat)


SPEC = TRLSpec("test-trl/Repeat-v0", size=64)


def test_training_on_episodes_of_two_turns_raises_the_reward(pocket, train, rewards) -> None:
    trainer = train(SPEC, *pocket("ab!?"), steps=35)
    found = rewards(trainer)
    print([round(r, 2) for r in found])
    assert sum(found[:3]) / 3 < 0.3
    assert sum(found[-3:]) / 3 > 0.8
    for name in ("rewards/test_trl_Repeat_v0/mean", "parts/first", "parts/second"):
        assert name in trainer.state.log_history[-2]
