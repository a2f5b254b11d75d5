"""DPO beside TRL's own trainer, on the same log-probabilities."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from assay.family.trainers import dpo_loss
from assay.grpo import load_model

trl = pytest.importorskip("trl")
datasets = pytest.importorskip("datasets")

# Its defaults use a word of transformers that is on its way out.
pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning")

torch.set_num_threads(1)


@pytest.fixture(scope="module")
def trainer(model_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    model, tokenizer = load_model(model_dir)
    made = trl.DPOTrainer(
        model=model,
        ref_model=load_model(model_dir)[0],
        args=trl.DPOConfig(
            output_dir=str(tmp_path_factory.mktemp("dpo")),
            use_cpu=True,
            bf16=False,
            report_to=[],
            beta=0.3,
        ),
        train_dataset=datasets.Dataset.from_list(
            [{"prompt": "1+1=", "chosen": "2", "rejected": "3"}] * 2
        ),
        processing_class=tokenizer,
    )
    made.precompute_ref_logps = True
    made.model.train()
    return made


@pytest.mark.parametrize(("loss_type", "mean"), [("sigmoid", False), ("sigmoid_norm", True)])
def test_value_and_gradient_are_those_of_trl(trainer: Any, loss_type: str, mean: bool) -> None:
    """Five pairs of replies of different lengths; TRL calls the mean over tokens a norm."""
    n, t = 5, 7
    generator = torch.Generator().manual_seed(0)
    mask = torch.arange(t) < torch.randint(1, t + 1, (2 * n,), generator=generator)[:, None]
    logprobs, reference = (
        (torch.randn(2 * n, t, generator=generator).double() - 2) * mask for _ in range(2)
    )
    theirs, mine = (logprobs.clone().requires_grad_() for _ in range(2))
    empty = torch.zeros_like(logprobs)

    def given(**_: Any) -> Any:
        return SimpleNamespace(
            log_probs=theirs, entropy=empty, mean_logits=empty, is_top1=empty.bool()
        )

    completion = torch.cat([torch.zeros(2 * n, 1), mask], dim=1).long()
    trainer.loss_types = [loss_type]
    chosen_reference, rejected_reference = reference.sum(1).chunk(2)
    wanted = trainer._compute_loss(
        given,
        {
            "input_ids": torch.ones(2 * n, t + 1).long(),
            "attention_mask": torch.ones(2 * n, t + 1).long(),
            "completion_mask": completion,
            "ref_chosen_logps": chosen_reference,
            "ref_rejected_logps": rejected_reference,
        },
        False,
    )
    lengths = mask.sum(1) if mean else torch.ones(2 * n)
    chosen, rejected = (mine.sum(1) / lengths).chunk(2)
    before = (reference.sum(1) / lengths).chunk(2)
    found = dpo_loss(chosen, rejected, *before, beta=0.3).mean()
    wanted.backward()
    found.backward()
    assert found.detach().item() == pytest.approx(wanted.detach().item(), rel=1e-12)
    assert torch.allclose(mine.grad, theirs.grad, rtol=1e-10, atol=0)
