"""Causal LMs and tokenizers: load them, give them adapters (LoRA), save them, make tiny ones."""

from __future__ import annotations

import copy
import json
import re
import string
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from huggingface_hub import snapshot_download
from safetensors import SafetensorError
from safetensors.torch import load_file
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
)
from transformers.utils import logging as transformers_logging

from ..sandbox.extras import missing_package
from .batch import Batch, Row
from .logprobs import full_forward
from .model import computed_dtype, is_adapted, set_autocast, set_checkpointing
from .sampler import sample

ADAPTER_CONFIG = "adapter_config.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class LoRA:
    """Which adapters a model gets: W x + (alpha / rank) B A x, with A and B trained, no dropout.

    Attributes:
        rank: rows of A and columns of B.
        alpha: the product is scaled by ``alpha / rank``.
        targets: names of the linear layers, or peft's ``all-linear``: all but the head.
        seed: of A, which begins with random numbers.

    Raises:
        ValueError: ``rank`` is below 1, ``alpha`` not above 0, or there is no target.
    """

    rank: int = 16
    alpha: float = 32.0
    targets: str | tuple[str, ...] = "all-linear"
    seed: int = 0

    def __post_init__(self) -> None:
        if self.rank < 1:
            raise ValueError(f"rank must be at least 1, got {self.rank}: 16 is a good start")
        if self.alpha <= 0:
            raise ValueError(f"alpha must be above 0, got {self.alpha}: twice the rank is usual")
        if not self.targets:
            raise ValueError("targets must name at least one linear layer, or be 'all-linear'")


def add_lora(model: Any, lora: LoRA) -> Any:
    """Give a model new adapters, which change nothing yet, as B is 0. Only they are trained."""
    targets = lora.targets if isinstance(lora.targets, str) else list(lora.targets)
    settings = {"r": lora.rank, "lora_alpha": lora.alpha, "target_modules": targets}
    with _peft() as peft, torch.random.fork_rng():
        torch.manual_seed(lora.seed)
        adapters = peft.LoraConfig(**settings, lora_dropout=0.0, task_type="CAUSAL_LM")
        return peft.get_peft_model(model, adapters).eval()


def merge_lora(model: Any) -> Any:
    """Return a plain causal LM that computes the same: a copy, adapters added to its weights.

    To export: ``merge_lora(model).save_pretrained(directory)``.

    Raises:
        ValueError: the model has no adapters.
    """
    if not is_adapted(model):
        raise ValueError(
            f"{type(model).__name__} has no adapters to merge: save it as it is, with "
            "model.save_pretrained(directory)"
        )
    return copy.deepcopy(model).merge_and_unload().requires_grad_(True).eval()


@contextmanager
def _peft() -> Iterator[Any]:
    """Import peft and silence its warnings, which are of its own use of transformers."""
    try:
        import peft
    except ModuleNotFoundError as error:
        raise missing_package("LoRA", "lora", error) from error
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        yield peft


@contextmanager
def without_progress_bars() -> Iterator[None]:
    """Hold back the progress bars with which transformers reads and writes each file."""
    bar: Any = transformers_logging
    shown = bar.is_progress_bar_enabled()
    bar.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            bar.enable_progress_bar()


class ModelError(ValueError):
    """A directory does not hold a causal LM and its tokenizer."""


def load_model(
    directory: str | Path,
    *,
    device: str = "cpu",
    dtype: str | torch.dtype = "float32",
    autocast: bool | None = False,
    lora: LoRA | None = None,
    gradient_checkpointing: bool | None = False,
) -> tuple[Any, Any]:
    """Load a causal LM, in eval mode, and its tokenizer from a directory or the Hugging Face hub.

    No code that comes with a model is run, and no pickle is fetched.

    Args:
        directory: as ``save_pretrained`` leaves it: ``config.json``, weights, tokenizer files; if
            there is no such directory, the name of a model on the hub.
            Or adapters, as a checkpoint of a run with LoRA leaves them: their base is then
            loaded from where it was.
        device: where the weights go, such as ``cuda:1``; ``auto`` for a GPU if there is one.
        dtype: of the weights. Training in less than float32 loses small updates.
        autocast: compute in bfloat16, whatever the weights are, see :mod:`assay.grpo.model`; None
            does so on CUDA alone.
        lora: give the model new adapters, and train only them.
        gradient_checkpointing: compute each layer again backward, in place of keeping what it
            computed forward; None does so on an accelerator for a model of a billion parameters
            or more.

    Raises:
        ModelError: the model is neither a directory nor on the hub, or lacks a part, or cannot be
            read; or there is no such device.
        ImportError: adapters need peft, and it is not installed.
    """
    path = _local(directory)
    base = _base_of(path)
    if not (base / "config.json").is_file():
        raise ModelError(
            f"{str(base)!r} is not a model directory: it has no config.json. Save the model there "
            "with model.save_pretrained(directory)"
        )
    if str(dtype).removeprefix("torch.") == "float16":
        raise ModelError(
            "weights in float16 cannot be trained: small updates are lost, and gradients overflow. "
            "Use float32, with autocast for products in bfloat16, or bfloat16"
        )
    where = _device(device)
    tokenizer = load_tokenizer(path)
    try:
        with without_progress_bars():
            loaded: Any = AutoModelForCausalLM.from_pretrained(
                base.resolve(),
                local_files_only=True,
                dtype=dtype,
                trust_remote_code=False,
                output_loading_info=True,
            )
            model, info = loaded
            if missing := sorted(info["missing_keys"]):  # which are random numbers
                raise ValueError(f"{len(missing)} tensors are missing, {missing[0]!r} among them")
            if base == path != Path(directory):  # adapters are to name their base for any machine
                model.name_or_path = model.config._name_or_path = str(directory)
            if base != path:
                with _peft() as peft:
                    load = peft.PeftModel.from_pretrained
                    model = load(model, str(path), is_trainable=True).eval()
    except (OSError, ValueError, KeyError, RuntimeError, SafetensorError) as error:
        raise ModelError(
            f"{str(path)!r} holds no causal LM that transformers can load: {error}. Save it there "
            "with model.save_pretrained(directory)"
        ) from error
    if lora is not None:
        if is_adapted(model):
            raise ModelError(f"{str(path)!r} holds adapters already: load it without lora")
        try:
            model = add_lora(model, lora)
        except ValueError as error:
            raise ModelError(f"cannot give {str(path)!r} adapters: {error}") from error
    if gradient_checkpointing is None and where.type != "cpu":
        gradient_checkpointing = model.num_parameters() >= 10**9
    if gradient_checkpointing:
        set_checkpointing(model, True)
    if where.type == "cuda" if autocast is None else autocast:
        set_autocast(model, torch.bfloat16)
    model.to(where).eval()
    _require_sampling(model, path)
    return model, tokenizer


def _require_sampling(model: Any, path: Path) -> None:
    """See that what is sampled token by token has the log-probabilities of the whole row."""
    prompts = [(5, 3, 4), (5, 3, 4), (7,)]  # two replies to one prompt, and one that is padded
    try:
        samples = sample(model, prompts, max_new_tokens=3)
        rows = [
            Row(prompt, tuple(s.ids), (True,) * 3, tuple(s.logprobs), (0.0,) * 3)
            for prompt, s in zip(prompts, samples, strict=True)
        ]
        batch = Batch.of([rows[:2], rows[2:]], device=model.device)
        with torch.no_grad():
            found, _ = full_forward(model, batch, 1.0)
        off = (found - batch.old_logprobs).masked_fill(~batch.mask, 0.0).abs().max()
        if float(off) < (1e-2 if computed_dtype(model).itemsize > 2 else 0.2):
            return
        why = f"off by {float(off):.2g} from its logits of the whole row"
    except Exception as error:  # whatever a model's modules raise
        why = f"{type(error).__name__}: {str(error).splitlines()[0][:120]}"
    raise ModelError(
        f"the {model.config.model_type} model in {str(path)!r} cannot be sampled through "
        f"transformers' cache ({why}): take another model, or generate with vLLM"
    )


def save_weights(model: Any, path: str | Path) -> None:
    """Write a model as ``save_pretrained`` does: its weights, or its adapters if it has any."""
    with without_progress_bars():
        model.save_pretrained(str(path))


def load_weights(model: Any, path: str | Path) -> None:
    """Put what :func:`save_weights` wrote in place of a model's weights."""
    if not is_adapted(model):
        # Through transformers, which knows where names on disk differ from those in memory.
        with without_progress_bars():
            loaded = type(model).from_pretrained(path, local_files_only=True, dtype=model.dtype)
        model.load_state_dict(loaded.state_dict())
        return
    found = load_file(Path(path) / "adapter_model.safetensors")
    with _peft() as peft:
        mine = peft.get_peft_model_state_dict(model)
        if {k: v.shape for k, v in found.items()} != {k: v.shape for k, v in mine.items()}:
            raise ValueError(
                f"the adapters in {str(path)!r} are of other layers or ranks than the model's: "
                "give the same LoRA settings as they were made with"
            )
        peft.set_peft_model_state_dict(model, found)


def _local(name: str | Path) -> Path:
    """Return the directory of a model, fetched from the hub if there is none of that name."""
    if (path := Path(name)).is_dir():
        return path
    try:
        with without_progress_bars():
            # Each file at the top once, and no pickles.
            found = snapshot_download(
                str(name),
                allow_patterns=["*.json", "*.safetensors", "*.txt", "*.model", "*.jinja"],
                ignore_patterns=["*/*", "consolidated*"],
            )
    except (OSError, ValueError) as error:
        raise ModelError(
            f"no model directory at {str(name)!r}. Give a directory with config.json, weights and "
            "tokenizer files, such as save_pretrained writes, or make one with tiny_model. As the "
            "name of a model on the Hugging Face hub it cannot be fetched: "
            f"{str(error).splitlines()[0]:.300}. Look to its spelling and the network; if it is "
            "gated, set HF_TOKEN"
        ) from error
    return Path(found)


def _base_of(path: Path) -> Path:
    """Return the directory of the model: this one, or the one that its adapters name."""
    if not (path / ADAPTER_CONFIG).is_file() or (path / "config.json").is_file():
        return path
    try:
        settings = json.loads((path / ADAPTER_CONFIG).read_text(encoding="utf-8"))
        name = str(settings["base_model_name_or_path"])
    except (ValueError, KeyError, TypeError) as error:
        raise ModelError(
            f"{str(path / ADAPTER_CONFIG)!r} names no base model: {error!r}. Save the adapters "
            "again, with model.save_pretrained(directory)"
        ) from error
    try:
        return _local(name)
    except ModelError as error:
        raise ModelError(
            f"the adapters in {str(path)!r} belong to the model in {name!r}, which is not there "
            f"({error}): put it back, or name its place in {ADAPTER_CONFIG}"
        ) from error


def _device(name: str) -> torch.device:
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
        torch.zeros(1, device=device).tolist()  # only use shows whether it exists
    # What torch raises for devices that it lacks, by kind.
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise ModelError(
            f"cannot use device {name!r}: {str(error).splitlines()[0][:120]}. Use 'cpu', or "
            "install a torch that is built for it"
        ) from error
    return device


def load_tokenizer(path: Path) -> Any:
    """Load the tokenizer of a model directory, with an end-of-sequence token.

    It is the one that ``tokenizer.json`` describes: beside a config of some models (Qwen2's among
    them) transformers builds that model's own tokenizer, whatever the file says, and a character
    tokenizer then loses its spaces.

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
        tokenizer: Any = AutoTokenizer.from_pretrained(
            path, local_files_only=True, trust_remote_code=False
        )
        saved = tokenizer
        if (path / known[0]).is_file():
            saved = PreTrainedTokenizerFast.from_pretrained(path, local_files_only=True)
    except (OSError, ValueError, KeyError, RuntimeError) as error:
        raise ModelError(f"the tokenizer in {str(path)!r} cannot be read: {error}") from error

    def read(by: Any) -> list[tuple[list[int], str]]:
        rows = [by(text, add_special_tokens=False)["input_ids"] for text in _SAMPLES]
        return [(ids, by.decode(ids)) for ids in rows]

    if read(tokenizer) != read(saved):
        warnings.warn(
            f"transformers reads the tokenizer in {str(path)!r} as {type(tokenizer).__name__}, "
            "which encodes or decodes otherwise than its tokenizer.json says; what that file says "
            "is used",
            stacklevel=3,
        )
        saved.chat_template = tokenizer.chat_template
        tokenizer = saved
    if tokenizer.eos_token_id is None:
        raise ModelError(
            f"the tokenizer in {str(path)!r} has no end-of-sequence token, so no reply would end: "
            "set tokenizer.eos_token and save it again"
        )
    return tokenizer


_SAMPLES = (
    "Add 12 and  345.\nThen double it, don't:\tx_1 = {2: 'b'}",
    " leading, trailing ",
    "naïve café 東京 🙂",
)


def tiny_model(
    directory: str | Path,
    *,
    hidden_size: int = 128,
    layers: int = 2,
    heads: int = 4,
    intermediate_size: int = 384,
    max_length: int = 512,
    words: Sequence[str] = (),
    seed: int = 0,
) -> Path:
    """Write a small untrained model with a character tokenizer, for demos and tests.

    It is a Llama of some 0.4 million parameters with tied embeddings; plain
    ``AutoModelForCausalLM`` and ``AutoTokenizer`` load it. (A Qwen2 it cannot be: beside a
    Qwen2 config transformers 5 reads every tokenizer as Qwen2's own, which drops spaces here.)
    ``words`` are those of :func:`character_tokenizer`. Returns the directory.
    """
    path = Path(directory)
    tokenizer = character_tokenizer(words)
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
    with without_progress_bars():
        model.save_pretrained(path)
    tokenizer.save_pretrained(path)
    return path


def character_tokenizer(words: Sequence[str] = ()) -> PreTrainedTokenizerFast:
    """Make a tokenizer of one token for each printable ASCII character, newline and tab.

    All other characters are unknown. Its chat template joins the messages' contents. ``words``
    are texts that are one token each wherever they stand, such as ``<think>``: the first that fits.
    """
    characters = [c for c in string.printable if c not in "\r\x0b\x0c"]
    for word in words:
        if len(word) < 2 or not set(word) <= set(characters):
            raise ValueError(f"words must be texts of two or more printable ASCII, got {word!r}")
    known = dict.fromkeys(["<pad>", "<eos>", "<unk>", *characters, *words])
    vocabulary = {token: i for i, token in enumerate(known)}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    pieces = "|".join([*map(re.escape, words), r"[\s\S]"])
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(pieces), behavior="isolated")
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
