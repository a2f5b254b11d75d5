"""What the gateway adds to a request, beside its engine alone, in turn.

    python benchmarks/gateway.py [--turns 20] [--rounds 5] [--max-tokens 32]

A loop of turns asks a small untrained model through HTTP, and the engine is then asked for the very
prompts of that loop. Medians of milliseconds for each request, and by how much the first is longer.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
import time

import httpx
import torch

from assay.gateway import Gateway, GatewayConfig, SampleRequest, served
from assay.gateway.transformers_engine import TransformersEngine
from assay.grpo import load_model, tiny_model

CHAT = (
    "{% for m in messages %}{{ m.role }}:{{ m.content }}<eos>\n{% endfor %}"
    "{% if add_generation_prompt %}assistant:{% endif %}"
)


def through_http(
    gateway: Gateway, client: httpx.Client, url: str, turns: int
) -> tuple[list[float], list[SampleRequest]]:
    """Milliseconds of each turn of a loop, and what the engine was asked."""
    session = gateway.open()
    messages = [{"role": "user", "content": "1+1="}]
    took, asked = [], []
    for _ in range(turns):
        started = time.perf_counter()
        found = client.post(
            f"{url}/e/{session.key}/v1/chat/completions", json={"messages": messages}
        )
        took.append(1000 * (time.perf_counter() - started))
        messages += [found.json()["choices"][0]["message"], {"role": "user", "content": "on"}]
        turn = session.tree.turns[-1]
        asked.append(SampleRequest(turn.prompt.ids, len(turn.ids)))
    gateway.end(session)
    return took, asked


async def alone(engine: TransformersEngine, asked: list[SampleRequest]) -> list[float]:
    """Milliseconds of the same prompts, for as many tokens, by the engine alone."""
    took = []
    for request in asked:
        started = time.perf_counter()
        await engine.sample(request)
        took.append(1000 * (time.perf_counter() - started))
    return took


def main() -> None:
    """Measure, and print one line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--turns", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--max-tokens", type=int, default=32)
    options = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        model, tokenizer = load_model(tiny_model(folder, max_length=4096))
    tokenizer.chat_template = CHAT
    tokenizer.eos_token_id = None  # replies of one length
    model.generation_config.eos_token_id = None
    engine = TransformersEngine(model, tokenizer)
    gateway = Gateway(engine, GatewayConfig(max_tokens=options.max_tokens))
    with served(gateway) as url, httpx.Client() as client:
        through_http(gateway, client, url, 2)  # compiles what is compiled once
        http: list[float] = []
        bare: list[float] = []
        for _ in range(options.rounds):
            took, asked = through_http(gateway, client, url, options.turns)
            http += took
            bare += asyncio.run(alone(engine, asked))
    asyncio.run(engine.close())
    with_gateway, without = statistics.median(http), statistics.median(bare)
    more = statistics.median(a - b for a, b in zip(http, bare, strict=True))
    print(
        f"{len(http)} requests of {options.max_tokens} tokens: gateway {with_gateway:.1f} ms, "
        f"engine {without:.1f} ms, overhead {more:.1f} ms ({100 * more / without:.0f} %)"
    )


if __name__ == "__main__":
    main()
