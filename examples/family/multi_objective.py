"""Several rewards: added first, the largest scale decides; compared one by one, it does not."""

import statistics
from collections.abc import Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from assay.family.units import UnitConfig, UnitLearner, Units
from assay.family_cli import run_script
from assay.study import Claim, Outcome, Study, Trial
from assay.study.measured import Results
from assay.study.picture import COLOURS

STEPS = 150
RUNS = 7  # of a trial, each from a seed of its own
SCALES = (1, 10, 100)
# Mean rewards of five actions: the first two are best in one reward each, the third is nearly as
# good in both.
MEANS = torch.tensor([[1.0, 0.1], [0.1, 1.0], [0.9, 0.9], [0.5, 0.4], [0.2, 0.2]])
NOISE = 0.1


class Bandit(nn.Module):
    """A distribution over five actions; an episode is one of them."""

    def __init__(self) -> None:
        super().__init__()
        self.logits = nn.Parameter(torch.zeros(len(MEANS)))

    def sample(self, prompts: Tensor, group_size: int, generator: torch.Generator) -> Units:
        """Draw actions, and the two noisy rewards of each."""
        chances = self.logits.softmax(-1)
        rows = len(prompts) * group_size
        actions = torch.multinomial(chances, rows, replacement=True, generator=generator)
        noise = NOISE * torch.randn(rows, 2, generator=generator)
        logprobs = chances.log()[actions][:, None]
        trace = {"actions": actions}
        mask = torch.ones_like(logprobs, dtype=torch.bool)
        return Units(prompts, group_size, MEANS[actions] + noise, trace, logprobs, mask)

    def read(self, units: Units) -> Tensor:
        """Log-probabilities of the actions."""
        return self.logits.log_softmax(-1)[units.trace["actions"]][:, None]


def scored(scale: float) -> Any:
    """Return the two rewards by name; the first is in other units."""

    def score(units: Units) -> Mapping[str, Tensor]:
        rewards = units.outputs.view(-1, units.group_size, 2)
        return {"first": scale * rewards[:, :, 0], "second": rewards[:, :, 1]}

    return score


def train(trial: Trial, **settings: Any) -> Outcome:
    """Train from several seeds, with the first reward in each of the three units."""
    runs = range(1 if trial.short else RUNS)
    ends = {
        scale: [one_run(scale, trial.seed * RUNS + k, trial.short, settings) for k in runs]
        for scale in SCALES
    }
    values: dict[str, float] = {}
    for scale, found in ends.items():
        first, second = zip(*found, strict=True)
        values[f"R1, x{scale}"] = statistics.fmean(first)
        values[f"R2, x{scale}"] = statistics.fmean(second)
    values["R2 lost by x100"] = values["R2, x1"] - values["R2, x100"]
    return Outcome(values, data={"ends": {str(scale): v for scale, v in ends.items()}})


def one_run(scale: float, seed: int, short: bool, settings: Mapping[str, Any]) -> list[float]:
    """Train once; return both rewards."""
    config = UnitConfig(
        steps=10 if short else STEPS,
        prompts_per_step=4,
        group_size=16,
        learning_rate=0.05,
        seed=seed,
        **settings,
    )
    policy = Bandit()
    UnitLearner(policy, lambda count, _: torch.zeros(count), scored(scale), config).train()
    return expected(policy).tolist()


@torch.no_grad()
def expected(policy: Bandit) -> Tensor:
    """Return the mean of both rewards under the policy, in their first units."""
    return policy.logits.softmax(-1) @ MEANS


def draw(figure: Any, results: Results) -> None:
    """Draw both final rewards of each run, a panel for each unit of the first."""
    figure.set_size_inches(11, 4.4)
    panels = figure.subplots(1, len(SCALES), sharey=True)
    for axes, scale in zip(panels, SCALES, strict=True):
        axes.scatter(*MEANS.T.tolist(), marker="x", color="#7f7f7f", label="the five actions")
        for i, (name, measured) in enumerate(results.items()):
            ends = [end for m in measured for end in m.outcome.data["ends"][str(scale)]]
            first, second = zip(*ends, strict=True)
            look = {"marker": "os^"[i], "s": 60 + 70 * i, "edgecolors": COLOURS[i]}
            axes.scatter(first, second, facecolors="none", label=name, **look)
        axes.set(title=f"the first reward is paid x{scale}", xlabel="first reward, in its own unit")
        axes.set(xlim=(0, 1.1), ylim=(0, 1.1))
        axes.grid(alpha=0.25)
    panels[0].set(ylabel="second reward")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))


STUDY = Study(
    title="Several rewards (sum, MO-GRPO, GDPO)",
    source="Li et al., arXiv 2503.21819; MO-GRPO, arXiv 2509.22047; GDPO, arXiv 2601.05242",
    says="A sum of rewards, compared within the group, optimises the reward of the largest "
    "variance. Comparing each reward by itself before they are added makes their units irrelevant, "
    "so that no objective is lost.",
    load="A bandit of five actions with two noisy rewards (standard deviation 0.1): one action "
    "is best in the first, (1, 0.1), one in the second, (0.1, 1), and one is nearly as good in "
    "both, (0.9, 0.9). The first reward is paid x1, x10 and x100. "
    f"{STEPS} steps of 4 groups x 16, learning rate 0.05. R1 and R2 are the policy's mean rewards "
    f"at the end, R1 in its first unit; a trial is the mean of {RUNS} runs from different seeds, "
    "and the picture shows every run.",
    tried="Nothing. Before the first results a trial became the mean of seven runs, not one.",
    equation=(r"A_i = \sum_k \frac{r_{ik} - \mathrm{mean}_i(r_{ik})}{\mathrm{std}_i(r_{ik})}"),
    claims=(
        Claim(
            "A sum loses the second reward if the first is paid x10",
            "R2, x10",
            arm="MO-GRPO",
            than="sum (Li et al.)",
            margin=0.5,
        ),
        Claim(
            "GDPO keeps the second reward if the first is paid x10",
            "R2, x10",
            arm="GDPO",
            than="sum (Li et al.)",
            margin=0.5,
        ),
        Claim(
            "In equal units the sum is within .01 of MO-GRPO",
            "R2, x1",
            arm="sum (Li et al.)",
            than="MO-GRPO",
            margin=-0.01,
        ),
        Claim(
            "MO-GRPO loses at most .01 by the unit of the first reward",
            "R2 lost by x100",
            arm="MO-GRPO",
            than=0.0,
            higher=False,
            margin=-0.01,
        ),
    ),
    remark=(
        "What the unit still changes under MO-GRPO and GDPO is the 1e-6 and the 1e-4 that are"
        " added to deviations. GDPO's whitening over the batch makes no difference here. Not "
        "tested: a reward that is noise alone is scaled up to the weight of the others too."
    ),
    arms={
        "sum (Li et al.)": train,
        "MO-GRPO": partial(train, advantage="mo_grpo"),
        "GDPO": partial(train, advantage="gdpo", advantage_std="sample", advantage_eps=1e-4),
    },
    presets=("mo_grpo", "gdpo"),
    columns=tuple(f"{name}, x{scale}" for scale in SCALES for name in ("R1", "R2")),
    draw=draw,
)

if __name__ == "__main__":
    run_script(__file__)
