"""What the gateway adds to a request, beside its engine alone, in turn.

    python benchmarks/gateway.py [--turns 20] [--rounds 5] [--max-tokens 32] [--vllm EXECUTABLE]

A loop of turns asks a small untrained model through HTTP, and after each turn the engine alone for
the same prompt. Medians of milliseconds for each request, and by how much the first is longer.
The engine is transformers, or with ``--vllm`` a vLLM that is started here.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import torch

from assay.gateway import Gateway, GatewayConfig, SampleRequest, VLLMEngine, served
from assay.gateway.transformers_engine import TransformersEngine
from assay.grpo import VLLMServer, load_model, tiny_model

CHAT = (
    "{% for m in messages %}{{ m.role }}:{{ m.content }}<eos>\n{% endfor %}"
    "{% if add_generation_prompt %}assistant:{% endif %}"
)


def play(
    gateway: Gateway, client: httpx.Client, url: str, turns: int, runner: asyncio.Runner
) -> list[tuple[float, float]]:
    """Milliseconds of each turn of a loop by HTTP, and of the same reply by the engine alone."""
    session = gateway.open()
    messages = [{"role": "user", "content": "1+1="}]
    took = []
    for _ in range(turns):
        started = time.perf_counter()
        found = client.post(
            f"{url}/e/{session.key}/v1/chat/completions", json={"messages": messages}
        )
        by_http = time.perf_counter() - started
        messages += [found.json()["choices"][0]["message"], {"role": "user", "content": "on"}]
        turn = session.tree.turns[-1]
        request = SampleRequest(turn.prompt.ids, len(turn.ids))
        started = time.perf_counter()
        runner.run(gateway.engine.sample(request))
        took.append((1000 * by_http, 1000 * (time.perf_counter() - started)))
    gateway.end(session)
    return took


def main() -> None:
    """Measure, and print one line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--turns", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--max-tokens", type=int, default=32)
    parser.add_argument("--vllm", metavar="EXECUTABLE")
    options = parser.parse_args()
    torch.set_num_threads(1)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        model, tokenizer = load_model(tiny_model(folder / "model", max_length=4096))
        tokenizer.chat_template = CHAT
        tokenizer.eos_token_id = None  # replies of one length
        model.generation_config.eos_token_id = None
        engine: Any = TransformersEngine(model, tokenizer)
        if options.vllm:
            env = {"VLLM_CPU_KVCACHE_SPACE": "1", "OMP_NUM_THREADS": "1"}
            server = VLLMServer(
                folder / "model", folder / "log", executable=options.vllm, dtype="float32", env=env
            )
            engine = VLLMEngine(stack.enter_context(server).url, tokenizer, processed=True)
        gateway = Gateway(engine, GatewayConfig(max_tokens=options.max_tokens))
        url, client, runner = map(
            stack.enter_context, (served(gateway), httpx.Client(), asyncio.Runner())
        )
        play(gateway, client, url, 2, runner)  # compiles what is compiled once
        took = [
            pair
            for _ in range(options.rounds)
            for pair in play(gateway, client, url, options.turns, runner)
        ]
        runner.run(engine.close())
    with_gateway, without = (statistics.median(column) for column in zip(*took, strict=True))
    more = statistics.median(a - b for a, b in took)
    print(
        f"{len(took)} requests of {options.max_tokens} tokens: gateway {with_gateway:.1f} ms, "
        f"engine {without:.1f} ms, overhead {more:.1f} ms ({100 * more / without:.0f} %)"
    )


if __name__ == "__main__":
    main()
