"""Policies whose units are no tokens, trained by the same credit and losses."""

import copy
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from assay.family.units import UnitConfig, UnitLearner, Units, outcome_credit
from assay.grpo import Objective, policy_loss
from assay.grpo.advantage import group_advantages

torch.set_num_threads(1)
NAN = float("nan")


class Arms(nn.Module):
    """Two choices an episode among three arms; the prompt says which arm pays."""

    def __init__(self) -> None:
        super().__init__()
        self.logits = nn.Parameter(torch.zeros(3, 3))

    def sample(self, prompts: Tensor, group_size: int, generator: torch.Generator) -> Units:
        asked = prompts.repeat_interleave(group_size)
        chances = self.logits[asked].softmax(-1)
        arms = torch.multinomial(chances, 2, replacement=True, generator=generator)
        logprobs = chances.log().gather(1, arms)
        mask = torch.ones_like(arms, dtype=torch.bool)
        mask[:, 1] = arms[:, 0] != 2  # arm 2 ends the episode
        trace = {"asked": asked, "arms": arms}
        return Units(prompts, group_size, arms, trace, logprobs, mask)

    def read(self, units: Units) -> Tensor:
        return self.logits[units.trace["asked"]].log_softmax(-1).gather(1, units.trace["arms"])


class Known(Arms):
    """Knows its divergence in closed form."""

    def read_with_kl(self, units: Units, reference: "Known") -> tuple[Tensor, Tensor]:
        own, other = (m.logits[units.trace["asked"]].log_softmax(-1) for m in (self, reference))
        divergence = (own.exp() * (own - other)).sum(-1, keepdim=True)
        return self.read(units), divergence.expand_as(units.mask)


def some(count: int, generator: torch.Generator) -> Tensor:
    return torch.randint(3, (count,), generator=generator)


def pays(units: Units) -> dict[str, Tensor]:
    right = (units.outputs == units.trace["asked"][:, None]) & units.mask
    return {"right": right.any(dim=1).double().view(-1, units.group_size)}


def rates(policy: Arms) -> list[float]:
    return policy.logits.softmax(-1).diagonal().tolist()


def test_it_learns_what_pays_and_the_same_from_the_same_seed() -> None:
    found = []
    for _ in range(2):
        policy = Arms()
        rows: list[dict[str, float]] = []
        UnitLearner(policy, some, pays, UnitConfig(steps=60, learning_rate=0.1)).train(rows.append)
        found.append(policy.logits.detach().clone())
    assert min(rates(policy)) > 0.9
    assert rows[-1]["reward"] > 0.9 > 0.7 > rows[0]["reward"]
    assert rows[-1]["step"] == 60
    assert rows[0]["ratio"] == pytest.approx(1.0)
    assert torch.equal(*found)


def test_the_first_update_is_the_policy_gradient_over_the_units_on_the_mask() -> None:
    policy = Arms()
    with torch.no_grad():
        units = policy.sample(torch.tensor([0, 1, 2]), 8, torch.Generator().manual_seed(3))
    assert not units.mask.all()  # some episodes ended early
    advantages = outcome_credit(units, pays(units), Objective())
    by_hand = group_advantages(pays(units)["right"]).flatten()
    assert torch.equal(advantages, by_hand[:, None].expand(24, 2))
    loss = policy_loss(
        policy.read(units),
        units.logprobs,
        advantages.float(),
        units.mask,
        Objective(),
        denominator=float(units.mask.sum()),
    )
    (gradient,) = torch.autograd.grad(loss, policy.logits)
    expected = torch.zeros(3, 3)
    for row in range(24):
        asked = int(units.trace["asked"][row])
        for unit in range(2):
            if units.mask[row, unit]:
                score = -policy.logits[asked].softmax(-1).detach()
                score[units.trace["arms"][row, unit]] += 1
                expected[asked] -= by_hand[row].float() * score / units.mask.sum()
    assert torch.allclose(gradient, expected, atol=1e-6)


def test_a_closed_form_penalty_holds_the_policy_back() -> None:
    free, held = Known(), Known()
    for policy, beta in ((free, 0.0), (held, 1.0)):
        config = UnitConfig(steps=60, learning_rate=0.1, beta=beta)
        UnitLearner(policy, some, pays, config).train()
    assert min(rates(free)) > 0.9
    assert max(rates(held)) < 0.8


def test_a_penalty_without_a_divergence_is_refused() -> None:
    with pytest.raises(
        ValueError, match=r"beta=0.5 needs a policy with read_with_kl.*Arms has none"
    ):
        UnitLearner(Arms(), some, pays, UnitConfig(beta=0.5))


def test_an_episode_without_a_reward_teaches_nothing_and_all_of_them_are_refused() -> None:
    def unsure(units: Units) -> dict[str, Tensor]:
        scored = pays(units)["right"]
        scored[:, 0] = NAN
        return {"right": scored}

    units = Arms().sample(torch.tensor([0, 1]), 4, torch.Generator().manual_seed(0))
    advantages = outcome_credit(units, unsure(units), Objective()).view(2, 4, 2)
    assert (advantages[:, 0] == 0).all()
    kept = group_advantages(pays(units)["right"][:, 1:])
    assert torch.allclose(advantages[:, 1:, 0], kept)

    never = UnitLearner(Arms(), some, lambda u: {"right": pays(u)["right"] * NAN}, UnitConfig())
    with pytest.raises(ValueError, match="no episode of step 1 a reward"):
        never.train()


def test_equal_rewards_leave_the_weights_alone() -> None:
    policy = Arms()
    before = copy.deepcopy(policy.state_dict())
    rows: list[dict[str, float]] = []
    flat = UnitLearner(
        policy, some, lambda u: {"one": pays(u)["right"] * 0 + 1}, UnitConfig(steps=2)
    )
    flat.train(rows.append)
    assert torch.equal(policy.logits, before["logits"])
    assert rows[0]["zero_variance"] == 1.0


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"steps": 0}, "steps must be at least 1, got 0"),
        ({"minibatches": 9}, "minibatches must be at most prompts_per_step"),
        ({"learning_rate": 0.0}, "learning_rate must be above 0"),
        ({"clip": 3.0}, "clip must be"),
        ({"beta": 0.1, "kl_in": "reward"}, "kl_in='reward' has no effect on units"),
    ],
)
def test_bad_settings_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        UnitConfig(**settings)


def test_units_of_another_shape_are_refused() -> None:
    good = Arms().sample(torch.tensor([0, 1]), 4, torch.Generator().manual_seed(0))
    with pytest.raises(ValueError, match="logprobs must have a row for each of 2 prompts x 4"):
        Units(good.prompts, 4, good.outputs, good.trace, good.logprobs[:3], good.mask)
    with pytest.raises(ValueError, match="mask must be"):
        Units(good.prompts, 4, good.outputs, good.trace, good.logprobs, good.mask.float())
