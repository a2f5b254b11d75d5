"""A language model small enough to train within a test."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

PLAIN = "{% for m in messages %}{{ m['content'] }}{% endfor %}"


@pytest.fixture
def pocket() -> Callable[..., tuple[Any, Any]]:
    """A function from characters to an untrained model of them and its tokenizer."""
    pytest.importorskip("torch")
    return _pocket


def _pocket(
    characters: str, *, added: Sequence[str] = (), template: str = PLAIN, seed: int = 0
) -> tuple[Any, Any]:
    """One token for each character and each added text; all else is unknown."""
    import torch
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    torch.set_num_threads(1)
    names = ["<pad>", "<eos>", "<unk>", *characters]
    inner = Tokenizer(models.WordLevel({n: i for i, n in enumerate(names)}, unk_token="<unk>"))
    inner.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), behavior="isolated")
    inner.decoder = decoders.Fuse()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=inner,
        pad_token="<pad>",
        eos_token="<eos>",
        unk_token="<unk>",
        clean_up_tokenization_spaces=False,
        padding_side="left",
    )
    tokenizer.add_tokens(list(added))
    tokenizer.chat_template = template
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=2,
        intermediate_size=32,
        max_position_embeddings=128,
        tie_word_embeddings=False,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    return LlamaForCausalLM(config), tokenizer


@pytest.fixture
def train(tmp_path: Path) -> Callable[..., Any]:
    """A function that trains with a trainer of TRL's on a TRLSpec."""

    def train(
        spec: Any,
        model: Any,
        tokenizer: Any,
        *,
        trainer: str = "GRPO",
        steps: int = 1,
        prepare: Callable[[Any], None] = lambda trainer: None,
        **settings: Any,
    ) -> Any:
        import trl

        given = {
            "output_dir": str(tmp_path),
            "use_cpu": True,
            "bf16": False,
            "max_steps": steps,
            "per_device_train_batch_size": 32,
            "num_generations": 16,
            "max_completion_length": 8,
            "learning_rate": 0.03,
            "lr_scheduler_type": "constant",
            "logging_steps": 1,
            "save_strategy": "no",
            "report_to": [],
            "disable_tqdm": True,
            "seed": 0,
        }
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # TRL's and transformers' about their own ways
            config = getattr(trl, f"{trainer}Config")(**{**given, **settings})
            made = getattr(trl, f"{trainer}Trainer")(
                model, args=config, processing_class=tokenizer, **spec.kwargs()
            )
            prepare(made)
            made.train()
        return made

    return train


@pytest.fixture
def rewards() -> Callable[[Any], list[float]]:
    """A function from a trainer to the mean reward of each step."""
    return lambda trainer: [log["reward"] for log in trainer.state.log_history if "reward" in log]
