"""Models: load a directory, or make a tiny one from nothing."""

from __future__ import annotations

import string
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
)
from transformers.utils import logging as transformers_logging


@contextmanager
def quiet() -> Iterator[None]:
    """Hold back the progress bars with which transformers reads and writes each file."""
    shown = transformers_logging.is_progress_bar_enabled()
    transformers_logging.disable_progress_bar()  # type: ignore[no-untyped-call]  # transformers
    try:
        yield
    finally:
        if shown:
            transformers_logging.enable_progress_bar()  # type: ignore[no-untyped-call]  # transformers


class ModelError(ValueError):
    """A directory does not hold a causal LM and its tokenizer."""


def load_model(
    directory: str | Path, *, device: str = "cpu", dtype: str | torch.dtype = "float32"
) -> tuple[Any, Any]:
    """Load a causal LM and its tokenizer from a transformers directory.

    Nothing is fetched from a network, and no code of the directory is run.

    Args:
        directory: as ``save_pretrained`` leaves it: ``config.json``, weights, tokenizer files.
        device: where the weights go.
        dtype: of the weights. Training in less than float32 loses small updates.

    Returns:
        The model in eval mode, and the tokenizer.

    Raises:
        ModelError: the directory is missing, or lacks a part, or it cannot be read; or there is
            no such device.
    """
    path = Path(directory)
    if not path.is_dir():
        raise ModelError(
            f"no model directory at {str(path)!r}. Give a directory with config.json, weights and "
            "tokenizer files, such as save_pretrained writes, or make one with tiny_model"
        )
    if not (path / "config.json").is_file():
        raise ModelError(
            f"{str(path)!r} is not a model directory: it has no config.json. Save the model there "
            "with model.save_pretrained(directory)"
        )
    where = _device(device)
    tokenizer = load_tokenizer(path)
    try:
        with quiet():
            model: Any = AutoModelForCausalLM.from_pretrained(
                path, local_files_only=True, dtype=dtype
            )
    except (OSError, ValueError, KeyError, RuntimeError) as error:
        raise ModelError(
            f"{str(path)!r} holds no causal LM that transformers can load: {error}. Save it there "
            "with model.save_pretrained(directory)"
        ) from error
    model.to(where)
    return model.eval(), tokenizer


def _device(name: str) -> torch.device:
    try:
        device = torch.device(name)
        torch.zeros(1, device=device).tolist()  # only use shows whether it is there
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise ModelError(
            f"cannot use device {name!r}: {str(error).splitlines()[0][:120]}. Use 'cpu', or "
            "install a torch that is built for it"
        ) from error
    return device


def load_tokenizer(path: Path) -> Any:
    """The tokenizer of a model directory.

    Raises:
        ModelError: there is none, or it has no end-of-sequence token.
    """
    known = ("tokenizer.json", "tokenizer.model", "vocab.json", "vocab.txt", "spiece.model")
    if not any((path / name).is_file() for name in known):
        raise ModelError(
            f"{str(path)!r} has no tokenizer: expected one of {', '.join(known)}. Save it beside "
            "the model with tokenizer.save_pretrained(directory)"
        )
    try:
        tokenizer = AutoTokenizer.from_pretrained(path, local_files_only=True)
    except (OSError, ValueError, KeyError, RuntimeError) as error:
        raise ModelError(f"the tokenizer in {str(path)!r} cannot be read: {error}") from error
    if tokenizer.eos_token_id is None:
        raise ModelError(
            f"the tokenizer in {str(path)!r} has no end-of-sequence token, so no reply would end: "
            "set tokenizer.eos_token and save it again"
        )
    return tokenizer


def tiny_model(
    directory: str | Path,
    *,
    hidden_size: int = 128,
    layers: int = 2,
    heads: int = 4,
    intermediate_size: int = 384,
    max_length: int = 512,
    seed: int = 0,
) -> Path:
    """Write a small untrained model with a character tokenizer, for demos and tests.

    It is a Llama of some 0.4 million parameters with tied embeddings; plain
    ``AutoModelForCausalLM`` and ``AutoTokenizer`` load it. (A Qwen2 it cannot be: beside a
    Qwen2 config transformers 5 reads every tokenizer as Qwen2's own, which drops spaces here.)

    Args:
        directory: made where missing.
        hidden_size: a multiple of ``heads``.
        layers: transformer blocks.
        heads: attention heads.
        intermediate_size: width of the blocks' MLP.
        max_length: tokens that positions are meant for.
        seed: of the weights.

    Returns:
        The directory.
    """
    path = Path(directory)
    tokenizer = character_tokenizer()
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=hidden_size,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=heads,
        intermediate_size=intermediate_size,
        max_position_embeddings=max_length,
        tie_word_embeddings=True,
        # From the usual 0.02 a model this small took up to three times the steps to warm up.
        initializer_range=0.05,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = LlamaForCausalLM(config)
    with quiet():
        model.save_pretrained(path)
    tokenizer.save_pretrained(path)
    return path


def character_tokenizer() -> PreTrainedTokenizerFast:
    """One token for each printable ASCII character, newline and tab; all others are unknown.

    Its chat template joins the messages' contents and adds nothing.
    """
    special = ["<pad>", "<eos>", "<unk>"]
    characters = [c for c in string.printable if c not in "\r\x0b\x0c"]
    vocabulary = {token: i for i, token in enumerate([*special, *characters])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), behavior="isolated")
    tokenizer.decoder = decoders.Fuse()
    fast = PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]  # transformers
        tokenizer_object=tokenizer,
        pad_token="<pad>",
        eos_token="<eos>",
        unk_token="<unk>",
        clean_up_tokenization_spaces=False,
        padding_side="left",
    )
    fast.chat_template = "{% for message in messages %}{{ message['content'] }}{% endfor %}"
    return fast
