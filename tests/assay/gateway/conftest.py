"""A tiny model whose chat template shows tools, behind a gateway that listens."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

for package in ("torch", "transformers", "fastapi", "uvicorn"):
    pytest.importorskip(package)

import torch

from assay.gateway.app import served
from assay.gateway.episodes import Gateway, GatewayConfig
from assay.gateway.transformers_engine import TransformersEngine
from assay.grpo import VLLMServer, load_model, tiny_model
from assay.sandbox import Sandbox
from assay.sandbox.sessions.bwrap import sessions_fault

torch.set_num_threads(1)
ASK = """
import json, os, signal, socket, subprocess, sys, time, urllib.request
def ask(messages, key=os.environ["OPENAI_API_KEY"], **more):
    request = urllib.request.Request(
        os.environ["OPENAI_BASE_URL"] + "/chat/completions",
        json.dumps({"model": os.environ["OPENAI_MODEL"], "messages": messages, **more}).encode(),
        {"Authorization": "Bearer " + key},
    )
    with urllib.request.urlopen(request) as found:
        return json.load(found)["choices"][0]["message"]
"""
PROGRAM = """
prompt = sys.stdin.read()
assert prompt == json.load(open("task.json"))["prompt"][0]["content"] == sys.argv[1]
kind, _, number = prompt.partition(" ")
messages = [{"role": "user", "content": prompt}]
if kind == "silent":
    sys.exit(0)
if kind == "garbage":
    urllib.request.urlopen(os.environ["OPENAI_BASE_URL"] + "/chat/completions", b"{{{")
for turn in range(3):
    messages += [ask(messages), {"role": "user", "content": "on"}]
    if kind == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if kind == "fails":
        sys.exit("it broke")
    while kind == "forever":
        time.sleep(1)
open("answer.txt", "w").write(kind)
"""

SDK = """
import openai, sys
client = openai.OpenAI()
messages = [{"role": "user", "content": sys.stdin.read()}]
for _ in range(2):
    said = client.chat.completions.create(model="m", messages=messages).choices[0].message
    messages += [said, {"role": "user", "content": "on"}]
"""

TEMPLATE = (
    "{% if tools %}T{{ tools | tojson }}<eos>{% endif %}"
    "{% for m in messages %}{{ m.role[0] }}:{{ m.content }}<eos>\n{% endfor %}"
    "{% if add_generation_prompt %}a:{% endif %}"
)


@pytest.fixture(scope="session")
def model_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tiny_model(
        tmp_path_factory.mktemp("model"),
        hidden_size=32,
        heads=4,
        intermediate_size=48,
        max_length=2048,
    )
    _, tokenizer = load_model(folder)
    tokenizer.chat_template = TEMPLATE
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def loaded(model_dir: Path) -> tuple[Any, Any]:
    return load_model(model_dir)


Start = Callable[..., tuple[Gateway, str]]


@pytest.fixture
def start(loaded: tuple[Any, Any]) -> Iterator[Start]:
    """Start a gateway; its settings, or an engine, may be given."""
    with ExitStack() as stack:

        def begin(*, engine: Any = None, **settings: Any) -> tuple[Gateway, str]:
            engine = engine or TransformersEngine(*loaded, name="tiny")
            gateway = Gateway(engine, GatewayConfig(**{"max_tokens": 8, **settings}))
            return gateway, stack.enter_context(served(gateway))

        yield begin


@pytest.fixture(
    scope="session",
    params=[pytest.param(name, marks=getattr(pytest.mark, name)) for name in ("docker", "bwrap")],
)
def box(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    """A sandbox that opens sessions with a shell and Python, under each backend."""
    if request.param == "bwrap":
        if fault := sessions_fault():
            pytest.skip(fault)
        with Sandbox(backend="bwrap") as found:
            yield found
        return
    with Sandbox(request.getfixturevalue("shell_image"), backend="docker") as found:
        yield found


@pytest.fixture
def written(tmp_path: Path) -> Callable[[str], Path]:
    """Write a program of a text that may ask the model by ``ask``."""

    def write(text: str) -> Path:
        (tmp_path / "program.py").write_text(ASK + text)
        return tmp_path / "program.py"

    return write


@pytest.fixture
def program(written: Callable[[str], Path]) -> list[str]:
    """The command of a program that ends as the first word of its prompt says."""
    return [sys.executable, str(written(PROGRAM)), "{prompt}"]


@pytest.fixture
def by_sdk() -> list[str]:
    """The command of a program that asks twice by OpenAI's package."""
    return [sys.executable, "-c", SDK]


@pytest.fixture(scope="session")
def folder(model_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of a head size that vLLM takes on a CPU, with the other one's chat template."""
    made = tiny_model(
        tmp_path_factory.mktemp("model"),
        hidden_size=64,
        heads=2,
        intermediate_size=96,
        max_length=8192,
    )
    _, tokenizer = load_model(made)
    tokenizer.chat_template = load_model(model_dir)[1].chat_template
    tokenizer.save_pretrained(made)
    return made


@pytest.fixture(scope="session")
def server(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[VLLMServer]:
    python = os.environ.get("ASSAY_VLLM_PYTHON", "")
    if not python:
        pytest.skip("ASSAY_VLLM_PYTHON names no python that has vllm")
    made = VLLMServer(
        folder,
        tmp_path_factory.mktemp("server") / "vllm.log",
        executable=str(Path(python).parent / "vllm"),
        dtype="float32",
        max_model_len=8192,
        # A CPU's engine dies of a seeded prompt that it computes in parts.
        options=("--enforce-eager", "--block-size", "32", "--max-num-batched-tokens", "65536"),
        env={"VLLM_CPU_KVCACHE_SPACE": "1", "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"},
        start_s=500,
    )
    with made:
        yield made
