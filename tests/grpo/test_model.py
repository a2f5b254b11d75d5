"""Model directories: the tiny one, and what is wrong with others."""

from __future__ import annotations

import json
import os
import shutil
import string
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    Qwen2Config,
    Qwen2ForCausalLM,
)

from assay.grpo import ModelError, load_model, tiny_model
from assay.grpo.model import computed_dtype


def test_plain_transformers_loads_the_tiny_model(model_dir: Path) -> None:
    model = AutoModelForCausalLM.from_pretrained(model_dir)
    tokenizer = AutoTokenizer.from_pretrained(model_dir)
    assert model.get_input_embeddings().weight is model.get_output_embeddings().weight
    assert model.config.vocab_size == len(tokenizer) == 100
    assert tokenizer.pad_token_id != tokenizer.eos_token_id


def test_tokenizer_keeps_every_character(tokenizer: Any) -> None:
    text = "".join(c for c in string.printable if c not in "\r\x0b\x0c") + "  a  b "
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    assert len(ids) == len(text)
    assert tokenizer.decode(ids) == text
    assert tokenizer("é", add_special_tokens=False)["input_ids"] == [tokenizer.unk_token_id]


def test_chat_template_adds_nothing(tokenizer: Any) -> None:
    messages = [{"role": "system", "content": "Add.\n"}, {"role": "user", "content": "1+1="}]
    assert tokenizer.apply_chat_template(messages, tokenize=False) == "Add.\n1+1="


def test_same_seed_same_weights(tmp_path: Path) -> None:
    small = {"hidden_size": 16, "heads": 2, "layers": 1, "intermediate_size": 16}
    a, b, c = (
        load_model(tiny_model(tmp_path / name, seed=seed, **small))[0]
        for name, seed in (("a", 1), ("b", 1), ("c", 2))
    )
    weights = [m.get_input_embeddings().weight for m in (a, b, c)]
    assert weights[0].equal(weights[1])
    assert not weights[0].equal(weights[2])


@pytest.mark.parametrize(
    ("kept", "message"),
    [
        ("", r"it has no config\.json"),
        ("config.json model.safetensors", r"has no tokenizer: .*tokenizer\.save_pretrained"),
        ("config.json tokenizer.json tokenizer_config.json", "holds no causal LM"),
    ],
)
def test_a_directory_that_lacks_something(
    model_dir: Path, tmp_path: Path, kept: str, message: str
) -> None:
    for name in kept.split():
        shutil.copy(model_dir / name, tmp_path)
    with pytest.raises(ModelError, match=message):
        load_model(tmp_path)


def test_a_directory_that_is_not_there_or_broken(model_dir: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"no model directory at '.*nowhere'\. Give a directory"):
        load_model(tmp_path / "nowhere")
    shutil.copytree(model_dir, tmp_path, dirs_exist_ok=True)
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(ModelError, match=str(tmp_path)):
        load_model(tmp_path)


def test_weights_that_are_cut_short_or_missing(model_dir: Path, tmp_path: Path) -> None:
    """Transformers would fill the missing ones with random numbers."""
    shutil.copytree(model_dir, tmp_path, dirs_exist_ok=True)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, "num_hidden_layers": 3}))
    with pytest.raises(ModelError, match=r"9 tensors are missing, 'model\.layers\.2\.input_layern"):
        load_model(tmp_path)
    weights = tmp_path / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    with pytest.raises(ModelError, match="holds no causal LM that transformers can load: Error"):
        load_model(tmp_path)


@pytest.mark.slow
def test_a_model_of_the_hub(tmp_path: Path) -> None:
    """Offline: one that is in the cache, by its name; and one that is not."""
    commit = "0" * 40
    kept = tmp_path / "hub" / "models--some--Model"
    tiny_model(kept / "snapshots" / commit, hidden_size=16, heads=2, intermediate_size=16)
    (kept / "refs").mkdir()
    (kept / "refs" / "main").write_text(commit)
    script = """
from assay.grpo import LoRA, ModelError, load_model
load_model("some/Model", lora=LoRA(rank=2))[0].save_pretrained("adapters")
load_model("some/Model")[1].save_pretrained("adapters")
print(load_model("adapters")[0].peft_config["default"].base_model_name_or_path)
try:
    load_model("some/Modle")
except ModelError as error:
    print(error)
"""
    env = {**os.environ, "HF_HOME": str(tmp_path), "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", script], env=env, cwd=tmp_path, capture_output=True, text=True
    )
    name, refusal = done.stdout.splitlines()
    assert name == "some/Model"
    for words in ("no model directory at 'some/Modle'", "Hugging Face hub", "HF_HUB_OFFLINE=0"):
        assert words in refusal


def test_without_torch_the_remedy_is_named() -> None:
    """In a fresh interpreter that cannot import torch; the other rooms do not need it."""
    program = (
        "import sys; sys.modules['torch'] = None\n"
        "import assay.envs\n"
        "from assay.grpo import GRPOConfig\n"
        "try:\n    from assay.grpo import Learner\n"
        "except ImportError as error:\n    print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=True
    )
    assert done.stdout.strip() == (
        "assay.grpo needs torch, which is not installed: "
        "run pip install '.[train]' in a checkout of Assay"
    )


@pytest.mark.parametrize("device", ["tpu", "", "meta", "cpu:x"])
def test_a_device_that_is_not_there_is_named(model_dir: Path, device: str) -> None:
    with pytest.raises(ModelError, match=f"cannot use device '{device}': .* Use 'cpu'"):
        load_model(model_dir, device=device)


def test_bfloat16_is_the_default_on_cuda_alone(model_dir: Path) -> None:
    model, _ = load_model(model_dir, device="auto", autocast=None)
    on_gpu = torch.cuda.is_available()
    assert model.device.type == ("cuda" if on_gpu else "cpu")
    assert computed_dtype(model) is (torch.bfloat16 if on_gpu else torch.float32)
    assert computed_dtype(load_model(model_dir, autocast=True)[0]) is torch.bfloat16


def test_a_tokenizer_is_what_its_file_says(model_dir: Path, tmp_path: Path) -> None:
    """Beside a Qwen2 config transformers reads every tokenizer as Qwen2's, without spaces."""
    config = Qwen2Config(
        vocab_size=100,
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=2,
        intermediate_size=16,
    )
    Qwen2ForCausalLM(config).save_pretrained(tmp_path)
    _, mine = load_model(model_dir)
    mine.save_pretrained(tmp_path)
    with pytest.warns(UserWarning, match=r"reads the tokenizer in .* as Qwen2Tokenizer"):
        _, tokenizer = load_model(tmp_path)
    ids = tokenizer("1 + 1", add_special_tokens=False)["input_ids"]
    assert ids == mine("1 + 1", add_special_tokens=False)["input_ids"]
    assert tokenizer.decode(ids) == "1 + 1"
    assert (tokenizer.eos_token_id, tokenizer.pad_token_id) == (1, 0)
    messages = [{"role": "user", "content": "1+1="}]
    assert tokenizer.apply_chat_template(messages, tokenize=False) == "1+1="
