"""Weights by difficulty, and the algebra of GRPO-LEAD's reward."""

import math

import pytest
import torch

from assay.envs import Episode, EpisodeGroup, LeadLength, Span, Task
from assay.grpo import Objective
from assay.grpo.advantage import difficulty_weights, group_advantages, outcome_advantages
from assay.grpo.credit import credit, rows_of
from assay.verifiers import Status, Verdict

torch.set_num_threads(1)
NAN = float("nan")


def w(share: float) -> float:
    return 0.4 + 1.1 / (1 + math.exp(10 * (share - 0.75)))


def exact(rewards: list[float]) -> torch.Tensor:
    return group_advantages(torch.tensor([rewards], dtype=torch.float64), std="sample", eps=0.0)


def test_a_rare_outcome_weighs_more_than_a_common_one() -> None:
    correct = torch.tensor([[1.0, 1.0, 1.0, 0.0], [0.0, 0.0, NAN, 1.0]])
    advantages = torch.tensor([[0.5, 0.5, 0.5, -1.5], [-1.0, 0.0, 0.0, 2.0]])
    found = difficulty_weights(advantages, correct)
    common, rare = w(0.75), w(0.25)
    assert found[0].tolist() == pytest.approx([common, common, common, rare])
    assert common == pytest.approx(0.95)
    third = [w(2 / 3)] * 3  # of those that were judged, one in three is right
    assert found[1].tolist() == pytest.approx([*third, w(1 / 3)])


def test_without_a_right_reply_and_with_none_judged_the_weights_are_those_of_the_ends() -> None:
    found = difficulty_weights(
        torch.tensor([[1.0, -1.0]] * 2), torch.tensor([[0.0] * 2, [NAN] * 2])
    )
    assert found.flatten().tolist() == pytest.approx([w(0), w(1)] * 2)
    with pytest.raises(ValueError, match=r"must be \[P, G\], got \[1, 2\] and \[2\]"):
        difficulty_weights(torch.zeros(1, 2), torch.zeros(2))


def test_the_objective_weighs_and_says_what_it_lacks() -> None:
    rewards = torch.tensor([[1.0, 0.0, 0.0, 0.0]])
    lead = Objective(hard_weight=1.5, easy_weight=0.4)
    plain = group_advantages(rewards)[0].tolist()
    found = outcome_advantages(rewards, lead, correct=rewards)
    assert found[0].tolist() == pytest.approx([plain[0] * w(0.25), *[plain[1] * w(0.75)] * 3])
    with pytest.raises(ValueError, match=r"hard_weight=1.5 needs to know which replies are right"):
        outcome_advantages(rewards, lead)


def test_credit_goes_by_status_and_not_by_reward() -> None:
    def episode(status: Status, score: float | None) -> Episode:
        spans = (Span("environment", (1,)), Span("model", (2, 3), (-1.0, -1.0)))
        turn = {"role": "assistant", "content": "x"}
        return Episode("t", (turn,), Verdict(status, score, ""), (), False, spans)

    made = [(Status.CORRECT, 0.6), (Status.INCORRECT, 0.3), (Status.VERIFIER_ERROR, None)]
    group = EpisodeGroup(Task("?", "", id="t"), tuple(episode(*x) for x in made))
    rows = credit([group], rows_of([group]), Objective(hard_weight=1.5, easy_weight=0.4))
    assert [r.advantages for r in rows] == [
        pytest.approx((w(0.5),) * 2, rel=1e-4),
        pytest.approx((-w(0.5),) * 2, rel=1e-4),
    ]


def told(texts: list[str]) -> list[Episode]:
    verdicts = [Verdict.correct() if t.startswith("r") else Verdict.wrong("") for t in texts]
    return [
        Episode("t", ({"role": "assistant", "content": t},), v)
        for t, v in zip(texts, verdicts, strict=True)
    ]


def paid(alpha: float, texts: list[str], penalty: float = 1.0) -> torch.Tensor:
    found = LeadLength(alpha=alpha, penalty=penalty).rewards(Task("?", ""), told(texts))
    return exact([x for x in found if x is not None])


def test_advantages_are_those_of_the_papers_reward() -> None:
    texts = ["r", "rrr", "rrrrr", "w", "wwww"]
    z = [-1.0, 0.0, 1.0]  # lengths 1, 3, 5: mean 3, deviation of a sample 2
    for alpha, penalty in ((0.05, 1.0), (0.5, 0.25)):
        paper = [math.exp(-alpha * x) for x in z] + [-penalty] * 2
        assert torch.allclose(paid(alpha, texts, penalty), exact(paper), atol=1e-5)
    paper = [math.exp(-0.05 * x) for x in z] + [0.0] * 2
    assert torch.allclose(paid(0.05, texts, 0.0), exact(paper), atol=1e-5)
