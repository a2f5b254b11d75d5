"""The arithmetic beside TRL's own, on the same tensors: its trainers compute, and so do we."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from assay.grpo import Objective, load_model, policy_loss
from assay.grpo.advantage import gdpo, group_advantages, leave_one_out
from assay.grpo.loss import loss_denominator, mismatch_weights, top_entropy_mask

trl = pytest.importorskip("trl")
datasets = pytest.importorskip("datasets")

# Its defaults use a word of transformers that is on its way out.
pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning")

torch.set_num_threads(1)

NAN = float("nan")
LONGEST = 9


def trainer_of(
    kind: type, model_dir: Path, tmp_path: Path, rewards: list[Any] | None = None, **options: Any
) -> Any:
    """A trainer of TRL's on a tiny model, with a reward function for each given table."""
    model, tokenizer = load_model(model_dir)
    functions = []
    for k, table in enumerate(rewards or [[0.0] * 8]):

        def reward(completions: list[Any], table: list[Any] = table, **_: Any) -> list[Any]:
            return table[: len(completions)]

        reward.__name__ = f"reward_{k}"
        functions.append(reward)
    config = trl.RLOOConfig if kind is trl.RLOOTrainer else trl.GRPOConfig
    return kind(
        model=model,
        reward_funcs=functions,
        args=config(
            output_dir=str(tmp_path),
            use_cpu=True,
            bf16=False,
            report_to=[],
            per_device_train_batch_size=8,
            num_generations=4,
            max_completion_length=options.pop("max_completion_length", LONGEST),
            **options,
        ),
        train_dataset=datasets.Dataset.from_list([{"prompt": "1+1="}] * 8),
        processing_class=tokenizer,
    )


def given_to(kind: type) -> type:
    """A trainer of TRL's whose log-probabilities are given; its loss is its own."""

    class Given(kind):
        given: tuple[Any, ...]

        def _get_per_token_logps_and_entropies(self, *_: Any, **__: Any) -> tuple[Any, ...]:
            return (*self.given, None)

    return Given


@pytest.fixture(scope="module")
def grpo(model_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    kind = given_to(trl.GRPOTrainer)
    return trainer_of(kind, model_dir, tmp_path_factory.mktemp("grpo"))


@pytest.fixture(scope="module")
def gmpo(model_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    from trl.experimental.gmpo import GMPOTrainer

    kind = given_to(GMPOTrainer)
    return trainer_of(kind, model_dir, tmp_path_factory.mktemp("gmpo"))


def tensors(seed: int, b: int = 8, t: int = LONGEST) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    lp, old, ref = (torch.randn(b, t, generator=generator).double() * 0.3 - 2 for _ in range(3))
    lengths = torch.randint(1, t + 1, (b,), generator=generator)
    tools = torch.rand(b, t, generator=generator) < 0.8
    tools[:, 0] = True
    return {
        "lp": lp,
        "old": old,
        "ref": ref,
        "adv": torch.randn(b, generator=generator).double(),
        "entropy": torch.rand(b, t, generator=generator).double(),
        "there": torch.arange(t) < lengths[:, None],
        "tools": tools,
    }


def loss_of_trl(trainer: Any, x: dict[str, torch.Tensor], **more: Any) -> torch.Tensor:
    lp = x["lp"].clone().requires_grad_()
    trainer.given = (lp, x["entropy"])
    trainer.current_gradient_accumulation_steps = 1
    trainer.model.train()
    ids = torch.ones_like(x["there"], dtype=torch.int64)
    mask = x["there"] & x["tools"]
    loss = trainer._compute_loss(
        trainer.model,
        {
            "prompt_ids": ids[:, :2],
            "prompt_mask": ids[:, :2],
            "completion_ids": ids,
            "completion_mask": x["there"].long(),
            "tool_mask": x["tools"].long(),
            "advantages": x["adv"],
            "old_per_token_logps": x["old"],
            "ref_per_token_logps": x["ref"],
            "num_items_in_batch": mask.sum().double(),
            **more,
        },
    )
    return gradients(loss, lp, x["entropy"])


def loss_of_ours(
    x: dict[str, torch.Tensor], o: Objective, advantages: torch.Tensor | None = None
) -> torch.Tensor:
    lp = x["lp"].clone().requires_grad_()
    mask = x["there"] & x["tools"]
    advantages = x["adv"][:, None].expand_as(lp) if advantages is None else advantages
    denominator = loss_denominator(mask.sum(1), average=o.loss, max_tokens=LONGEST)
    loss = policy_loss(
        lp,
        x["old"],
        advantages,
        mask,
        o,
        denominator=denominator,
        reference_logprobs=x["ref"],
        entropy=x["entropy"],
    )
    return gradients(loss, lp, x["entropy"])


def gradients(loss: torch.Tensor, lp: torch.Tensor, entropy: torch.Tensor) -> torch.Tensor:
    """Value, gradient by log p and gradient by entropy, as one tensor."""
    leaves = [lp, *([entropy] if entropy.requires_grad else [])]
    return torch.stack([loss.detach().expand_as(lp), *torch.autograd.grad(loss, leaves)])


CLIPPED = [
    (
        {"loss_type": average, **theirs},
        {"loss": average, **ours},
    )
    for average in ("grpo", "bnpo", "dr_grpo", "dapo")
    for theirs, ours in (
        ({}, {}),
        ({"epsilon_high": 0.28, "delta": 1.5}, {"clip_high": 0.28, "dual_clip": 1.5}),
        ({"importance_sampling_level": "sequence"}, {"ratio": "sequence"}),
        ({"off_policy_mask_threshold": 0.05}, {"off_policy_mask_threshold": 0.05}),
        ({"beta": 0.1}, {"beta": 0.1, "kl_correction": True}),
        ({"beta": 0.1, "use_bias_correction_kl": False}, {"beta": 0.1}),
    )
]
OTHERS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"loss_type": "cispo", "epsilon_high": 1.2}, {"surrogate": "cispo", "cispo_cap": 1.2}),
    ({"loss_type": "cispo", "epsilon_high": 5.0}, {"surrogate": "cispo"}),
    (
        {"loss_type": "sapo", "sapo_temperature_pos": 2.0, "beta": 0.1},
        {
            "loss": "grpo",
            "surrogate": "sapo",
            "sapo_temperature": 2.0,
            "beta": 0.1,
            "kl_correction": True,
        },
    ),
    ({"loss_type": "dapo", "entropy_coef": 0.05}, {"entropy_bonus": 0.05}),
]


def set_options(trainer: Any, options: dict[str, Any]) -> None:
    """What its constructor would read from the arguments."""
    defaults = {
        "loss_type": "dapo",
        "epsilon_high": 0.2,
        "delta": None,
        "importance_sampling_level": "token",
        "beta": 0.0,
        "use_bias_correction_kl": True,
        "sapo_temperature_pos": 1.0,
        "sapo_temperature_neg": 1.05,
        "entropy_coef": 0.0,
        "top_entropy_quantile": 1.0,
        "off_policy_mask_threshold": None,
    }
    for name, value in {**defaults, **options}.items():
        setattr(trainer.args, name, value)
        if hasattr(trainer, name):
            setattr(trainer, name, value)
    trainer._entropy_bonus_enabled = trainer.entropy_coef != 0


@pytest.mark.parametrize(("theirs", "ours"), [*CLIPPED, *OTHERS])
def test_loss_and_gradient(grpo: Any, theirs: dict[str, Any], ours: dict[str, Any]) -> None:
    """In float64, with replies of several lengths and an environment's tokens within."""
    set_options(grpo, theirs)
    for seed in range(3):
        x = tensors(seed)
        x["entropy"].requires_grad_("entropy_coef" in theirs)
        wanted, found = loss_of_trl(grpo, x), loss_of_ours(x, Objective(**ours))
        rtol = (
            1e-6 if ours.get("surrogate") == "sapo" else 1e-10
        )  # its SAPO has temperatures in float32
        assert torch.allclose(found, wanted, rtol=rtol, atol=1e-12)


def test_gmpo(gmpo: Any) -> None:
    set_options(gmpo, {"epsilon_high": 0.4})
    gmpo.epsilon_low = 0.3
    o = Objective(surrogate="gmpo", loss="grpo", clip=0.3, clip_high=0.4)
    for seed in range(3):
        x = tensors(seed)
        assert torch.allclose(loss_of_ours(x, o), loss_of_trl(gmpo, x), rtol=1e-10, atol=1e-12)


def test_tokens_of_high_entropy(grpo: Any) -> None:
    for share in (0.2, 0.5, 0.9):
        set_options(grpo, {"top_entropy_quantile": share})
        x = tensors(0)
        top = top_entropy_mask(x["entropy"], x["there"] & x["tools"], share)
        found = loss_of_ours(x, Objective(top_entropy=share), x["adv"][:, None] * top)
        assert torch.allclose(found, loss_of_trl(grpo, x), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("how", ["token_truncate", "token_mask"])
def test_weights_for_the_samplers_mismatch(grpo: Any, how: Any) -> None:
    """Their weights are made where they generate; their loss multiplies by them, as ours does."""
    set_options(grpo, {})
    x = tensors(0)
    weights = mismatch_weights(x["old"], x["ref"], x["there"] & x["tools"], how, cap=1.3)
    wanted = (x["old"] - x["ref"]).exp()
    wanted = wanted.clamp(max=1.3) if how == "token_truncate" else wanted * (wanted <= 1.3)
    grpo.use_vllm, grpo.vllm_importance_sampling_correction = True, True
    theirs = loss_of_trl(grpo, x, importance_sampling_ratio=wanted)
    grpo.use_vllm = False
    found = loss_of_ours(x, Objective(), x["adv"][:, None] * weights)
    assert torch.allclose(found, theirs, rtol=1e-10, atol=1e-12)


REWARDS = [0.9, 0.3, 0.8, 0.2, 1.0, 1.0, None, 0.0]
OTHER = [None, 1.0, 2.0, 3.0, 5.0, 5.0, None, 5.0]


def nan(rows: list[float | None]) -> torch.Tensor:
    return torch.tensor([NAN if r is None else r for r in rows]).view(2, 4)


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({"scale_rewards": "group"}, group_advantages(nan(REWARDS), std="sample", eps=1e-4)),
        ({"scale_rewards": "batch"}, group_advantages(nan(REWARDS), std="batch", eps=1e-4)),
        ({"scale_rewards": "none"}, group_advantages(nan(REWARDS), std="none")),
        (
            {
                "multi_objective_aggregation": "normalize_then_sum",
                "reward_weights": [1.0, 0.5],
                "tables": [REWARDS, OTHER],
            },
            gdpo(
                torch.stack([nan(REWARDS), nan(OTHER)]),
                torch.tensor([1.0, 0.5]),
                std="sample",
                eps=1e-4,
            ),
        ),
        ({"kind": "rloo"}, leave_one_out(nan(REWARDS))),
    ],
)
def test_advantages(
    model_dir: Path, tmp_path: Path, options: dict[str, Any], wanted: torch.Tensor
) -> None:
    """Theirs from a real step: tokens are sampled, rewards given, one of them None."""
    options = dict(options)
    kind = trl.RLOOTrainer if options.pop("kind", None) else trl.GRPOTrainer
    tables = options.pop("tables", [REWARDS])
    trainer = trainer_of(kind, model_dir, tmp_path, tables, max_completion_length=2, **options)
    trainer.model.train()
    rows = [{"prompt": "1+1="}] * 4 + [{"prompt": "2+2="}] * 4
    found = trainer._generate_and_score_completions(rows)["advantages"]
    assert torch.allclose(found.view(2, 4), wanted, atol=1e-6)
