"""Flows as policies: an SDE with the ODE's marginals, its density, and what is trained on."""

import math

import pytest
import torch
from torch import Tensor, nn

from assay.family.units import (
    ConstantNoise,
    FlowNoise,
    FlowPolicy,
    UnitConfig,
    UnitLearner,
    Units,
    clamped,
    matching_loss,
    outcome_credit,
    step_mean,
    time_grid,
)
from assay.grpo import Objective

torch.set_num_threads(1)
MEAN, STD = 1.5, 0.5  # of the data, a Gaussian: then the velocity is known exactly
NOISES = [FlowNoise(0.7), ConstantNoise(0.3), ConstantNoise(0.7)]


def moments(t: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and variance of x_t = (1 - t) x_0 + t e."""
    return (1 - t) * MEAN, ((1 - t) * STD) ** 2 + t**2


class Exact(nn.Module):
    """E[e - x_0 | x_t] where the data is N(MEAN, STD^2); ``pull`` is there to be trained."""

    def __init__(self) -> None:
        super().__init__()
        self.pull = nn.Parameter(torch.zeros(()))

    def forward(self, x: Tensor, t: Tensor, prompts: Tensor) -> Tensor:
        t = t.view(-1, *[1] * (x.dim() - 1))
        mean, variance = moments(t)
        slope = (t - (1 - t) * STD**2) / variance
        return slope * (x - mean) - MEAN + self.pull * (1 + x)


def sampled(
    policy: FlowPolicy, prompts: int = 4, group_size: int = 6, seed: int = 0
) -> tuple[Units, Tensor]:
    units = policy.sample(torch.arange(prompts), group_size, torch.Generator().manual_seed(seed))
    return units, torch.arange(prompts).repeat_interleave(group_size)


def moved(policy: FlowPolicy, pull: float) -> FlowPolicy:
    with torch.no_grad():
        policy.net.pull.fill_(pull)
    return policy


def last_moments(noise: object, steps: int) -> tuple[float, float]:
    """Mean and variance at t = 0, exactly: every step is affine in x, for the data is Gaussian."""
    times = time_grid(steps).double()
    sigmas = torch.zeros(steps).double() if noise is None else noise(times)
    mean, variance, net = torch.zeros(()).double(), torch.ones(()).double(), Exact()
    for t, dt, sigma in zip(times, times.diff(), sigmas, strict=False):
        two = torch.stack([torch.zeros(()), torch.ones(())]).double()
        at = step_mean(two, net(two, t.expand(2), two).detach(), t, dt, sigma)
        mean = at[0] + (at[1] - at[0]) * mean
        variance = (at[1] - at[0]) ** 2 * variance - sigma**2 * dt
    return float(mean), float(variance)


@pytest.mark.parametrize("noise", [None, *NOISES])
def test_with_finer_steps_the_sde_and_the_ode_end_at_the_data(noise: object) -> None:
    errors = []
    for steps in (100, 200, 400):
        mean, variance = last_moments(noise, steps)
        assert mean == pytest.approx(MEAN, abs=1e-6)
        errors.append(abs(variance - STD**2))
    assert errors[-1] < 0.002
    if not isinstance(noise, FlowNoise):  # Euler's method: half the step, half the error
        assert errors[0] / errors[1] == pytest.approx(2, abs=0.1)
        assert errors[1] / errors[2] == pytest.approx(2, abs=0.1)


@pytest.mark.parametrize("steps", [10, 1000])
def test_flow_grpo_s_first_step_is_as_noisy_however_fine_the_steps(steps: int) -> None:
    """Its variance is level^2, and the mean's slope makes it 1 + level^4 / 4 beside the true 1."""
    policy = FlowPolicy(Exact(), (1,), steps=steps)
    mean, std = policy._step(torch.tensor([[0.0], [1.0]]), 0, torch.zeros(2))
    assert std.item() == pytest.approx(0.7, abs=1e-4)
    slope = (mean[1] - mean[0]).item()
    assert slope == pytest.approx(1 - 0.7**2 / 2, abs=1.1 / steps)


@pytest.mark.parametrize("noise", NOISES)
def test_samples_have_the_ode_s_marginal_at_every_time(noise: object) -> None:
    policy = FlowPolicy(Exact(), (2,), steps=100, noise=noise)
    units, _ = sampled(policy, 1, 5000)
    path = units.trace["path"]
    assert torch.equal(path[:, -1], units.outputs)
    for i in (0, 20, 50, 80, 100):
        mean, variance = moments(policy.times[i])
        assert path[:, i].mean().item() == pytest.approx(float(mean), abs=0.03)
        assert path[:, i].std().item() == pytest.approx(float(variance.sqrt()), abs=0.03)
    # Apart from its start the path is random: two samples from one noise differ.
    one = FlowPolicy(Exact(), (2,), steps=100, noise=noise, shared_noise=True)
    assert sampled(one, 1, 5000)[0].outputs.std() > 0.1


def test_a_step_is_the_one_that_each_paper_writes() -> None:
    x, v = torch.randn(2, 5, 3, generator=torch.Generator().manual_seed(0))
    t, dt = torch.tensor(0.6), torch.tensor(-0.1)
    s = 0.7 * torch.sqrt(t / (1 - t))
    flow = x * (1 + s**2 / (2 * t) * dt) + v * (1 + s**2 * (1 - t) / (2 * t)) * dt
    assert torch.allclose(step_mean(x, v, t, dt, s), flow, atol=1e-6)
    data = x - t * v  # what the velocity says of x_0
    dance = x + v * dt - 0.5 * 0.3**2 * -(x - data * (1 - t)) / t**2 * dt
    assert torch.allclose(step_mean(x, v, t, dt, torch.tensor(0.3)), dance, atol=1e-6)
    assert torch.equal(step_mean(x, v, t, dt, torch.tensor(0.0)), x + v * dt)


def test_noise_schedules_by_hand() -> None:
    times = torch.tensor([1.0, 0.5, 0.2, 0.0])
    # At t = 1 the next 1 - t stands in: sqrt(1 / 0.5).
    expected = 0.7 * torch.tensor([1 / 0.5, 0.5 / 0.5, 0.2 / 0.8]).sqrt()
    assert torch.allclose(FlowNoise(0.7)(times), expected)
    assert torch.equal(ConstantNoise(0.3)(times), torch.full((3,), 0.3))
    assert torch.allclose(time_grid(4), torch.tensor([1.0, 0.75, 0.5, 0.25, 0.0]))


def test_the_policy_s_log_probabilities_are_those_of_its_steps() -> None:
    policy = moved(FlowPolicy(Exact(), (3,), steps=5), 0.1)
    units, asked = sampled(policy)
    path, dt = units.trace["path"], -0.2
    for i in range(4):
        t, sigma = policy.times[i], FlowNoise(0.7)(policy.times)[i]
        v = policy.net(path[:, i], t.expand(24), asked)
        normal = torch.distributions.Normal(
            step_mean(path[:, i], v, t, torch.tensor(dt), sigma), sigma * math.sqrt(-dt)
        )
        by_hand = normal.log_prob(path[:, i + 1]).mean(dim=1)
        assert torch.allclose(units.logprobs[:, i], by_hand, atol=1e-5)
    t = policy.times[4]  # no noise in the last step
    last = path[:, 4] + policy.net(path[:, 4], t.expand(24), asked) * dt
    assert torch.allclose(units.outputs, last, atol=1e-6)
    assert units.mask.tolist() == [[True] * 4 + [False]] * 24


def test_before_the_first_update_the_ratio_is_one_to_the_last_bit() -> None:
    policy = FlowPolicy(Exact(), (2, 2), steps=7, noise=ConstantNoise(0.3))
    units, _ = sampled(policy)
    assert torch.equal(policy.read(units), units.logprobs)
    part = units.of_prompts(torch.tensor([2, 0]))
    assert torch.allclose(policy.read(part), part.logprobs, atol=1e-6)
    assert not torch.equal(moved(policy, 0.1).read(units), units.logprobs)


def test_the_divergence_is_flow_grpo_s_closed_form_and_autograd_agrees() -> None:
    policy, reference = (moved(FlowPolicy(Exact(), (2,), steps=5), p) for p in (0.3, 0.0))
    units, asked = sampled(policy)
    read, kl = policy.read_with_kl(units, reference)
    assert torch.equal(read, policy.read(units))
    path, expected, slope = units.trace["path"], torch.zeros(24, 5), torch.zeros(24, 5)
    for i in range(4):
        x, t, sigma = path[:, i], policy.times[i], policy.sigmas[i]
        own, other = (m.net(x, t.expand(24), asked) for m in (policy, reference))
        factor = 0.2 / 2 * (sigma * (1 - t) / (2 * t) + 1 / sigma) ** 2
        expected[:, i] = factor * (own - other).square().mean(dim=1)
        # v = v_reference + pull (1 + x): the divergence is pull^2 times what it is at 1.
        slope[:, i] = 2 * 0.3 * factor * (1 + x).square().mean(dim=1)
    assert torch.allclose(kl, expected, atol=1e-6)
    (gradient,) = torch.autograd.grad(kl.sum(), policy.net.pull)
    assert gradient.item() == pytest.approx(slope.sum().item(), rel=1e-4)
    assert reference.net.pull.grad is None
    assert torch.allclose(policy.read_with_kl(units, policy)[1], torch.zeros(24, 5))


def test_steps_off_the_mask_have_no_gradient_and_cost_no_call() -> None:
    policy = FlowPolicy(Exact(), (2,), steps=11, trained_share=0.6)
    units, _ = sampled(policy)
    assert units.mask[:, :-1].sum(dim=1).tolist() == [6] * 24  # of 10
    assert not units.mask[:, -1].any()
    assert len({tuple(row) for row in units.mask.tolist()}) > 12  # each its own
    path = units.trace["path"].requires_grad_()
    before = policy.calls
    read = policy.read(units)
    assert policy.calls - before == 24 * 6
    (gradient,) = torch.autograd.grad(read.sum(), path)
    # A step at i reads the sample at i and at i + 1.
    reached = torch.zeros(24, 12, dtype=torch.bool)
    reached[:, :-1] |= units.mask
    reached[:, 1:] |= units.mask
    assert (gradient[~reached] == 0).all()
    assert (gradient[reached] != 0).all()
    assert (read[~units.mask] == 0).all()


def test_network_calls_are_counted() -> None:
    policy = FlowPolicy(Exact(), (2,), steps=10)
    units, _ = sampled(policy, 3, 4)
    assert policy.calls == 12 * 10
    policy.read(units)
    assert policy.calls == 12 * 10 + 12 * 9
    policy.draw(torch.arange(5), torch.Generator().manual_seed(0), steps=40)
    assert policy.calls == 12 * 19 + 5 * 40


def test_groups_share_their_first_noise_if_asked() -> None:
    for shared in (False, True):
        units, _ = sampled(FlowPolicy(Exact(), (2,), steps=4, shared_noise=shared))
        first = units.trace["path"][:, 0].view(4, 6, 2)
        same = (first == first[:, :1]).all()
        assert bool(same) is shared
        assert len(first[:, 0].unique(dim=0)) == 4
        assert len(units.outputs.unique(dim=0)) == 24


def test_the_ode_draws_the_data_and_the_same_from_the_same_seed() -> None:
    policy = FlowPolicy(Exact(), (2,), steps=5)
    x, again = (
        policy.draw(torch.zeros(4000), torch.Generator().manual_seed(3), steps=80) for _ in range(2)
    )
    assert torch.equal(x, again)
    assert x.mean().item() == pytest.approx(MEAN, abs=0.03)
    assert x.std().item() == pytest.approx(STD, abs=0.03)


class Plane(nn.Module):
    """A velocity that learns."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 16), nn.SiLU(), nn.Linear(16, 2))

    def forward(self, x: Tensor, t: Tensor, prompts: Tensor) -> Tensor:
        found: Tensor = self.layers(torch.cat([x, t[:, None], prompts[:, None].float()], dim=1))
        return found


def test_it_learns_a_binary_reward_and_the_same_bits_from_the_same_seed() -> None:
    def up(units: Units) -> dict[str, Tensor]:
        return {"up": (units.outputs[:, 1] > 1).float().view(-1, units.group_size)}

    found = []
    for _ in range(2):
        torch.manual_seed(0)
        policy = FlowPolicy(Plane(), (2,), steps=6, shared_noise=True, trained_share=0.6)
        rows: list[dict[str, float]] = []
        config = UnitConfig(
            steps=25,
            prompts_per_step=4,
            group_size=12,
            learning_rate=1e-2,
            beta=0.01,
            advantage_std="batch",
        )
        prompts = lambda n, g: torch.randint(2, (n,), generator=g)  # noqa: E731  # short
        UnitLearner(policy, prompts, up, config, credit=clamped(5.0)).train(rows.append)
        found.append(torch.cat([p.detach().flatten() for p in policy.parameters()]))
    assert torch.equal(*found)
    assert rows[0]["ratio"] == pytest.approx(1.0)
    assert rows[0]["kl"] == 0 < rows[-1]["kl"]
    assert sum(r["reward"] for r in rows[-5:]) > sum(r["reward"] for r in rows[:5]) + 1


def test_matching_finds_the_velocity() -> None:
    """The loss of the exact velocity is below that of its neighbours."""
    net = Exact()
    losses = []
    for pull in (-0.1, 0.0, 0.1):
        with torch.no_grad():
            net.pull.fill_(pull)
        generator = torch.Generator().manual_seed(0)
        data = MEAN + STD * torch.randn(20_000, 1, generator=generator)
        losses.append(matching_loss(net, data, torch.zeros(20_000), generator).item())
    assert losses[1] < min(losses[0], losses[2])


def test_advantages_are_clamped() -> None:
    units, _ = sampled(FlowPolicy(Exact(), (2,), steps=3), 4, 12)
    rewards = torch.ones(4, 12)
    rewards[0, 0] = 0.0  # one wrong of 48: (0 - 11/12) / 0.144 = -6.3
    named, objective = {"r": rewards}, Objective(advantage_std="batch")
    raw = outcome_credit(units, named, objective)
    bounded = clamped(5.0)(units, named, objective)
    assert raw.min() < -6
    assert torch.equal(bounded, raw.clamp(-5, 5))
    assert bounded.min() == -5
    with pytest.raises(ValueError, match="limit must be above 0, got 0"):
        clamped(0)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"steps": 1}, "steps must be at least 2, as the last has no density, got 1"),
        ({"trained_share": 0.0}, "trained_share must be in"),
        ({"trained_share": 1.5}, "trained_share must be in"),
        ({"steps": 3, "trained_share": 0.4}, "leave one of 2 units, got 0.4"),
    ],
)
def test_bad_settings_are_refused(settings: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        FlowPolicy(Exact(), (2,), **settings)


@pytest.mark.parametrize("noise", [FlowNoise, ConstantNoise])
@pytest.mark.parametrize("level", [0.0, -1.0, math.nan, math.inf])
def test_a_noise_of_nothing_is_refused(noise: type, level: float) -> None:
    with pytest.raises(ValueError, match="level must be above 0"):
        noise(level)
