"""Log-probabilities: the chunked head, and the three forwards against each other."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import (
    AutoModelForCausalLM,
    Gemma2Config,
    GPT2Config,
    LlamaConfig,
    MistralConfig,
    Qwen3Config,
)

from assay.grpo import Batch, Row, choose_forward, chosen_logprobs
from assay.grpo.logprobs import FORWARDS, full_forward
from assay.grpo.prefix import Layout, attend_by_blocks, attend_by_copies

torch.set_num_threads(1)


@settings(deadline=None, derandomize=True, max_examples=40)
@given(
    st.integers(0, 9),
    st.integers(1, 7),
    st.booleans(),
    st.sampled_from([0.5, 1.0, 2.0]),
    st.integers(1, 40),
)
def test_chunked_head_equals_full_logits(
    n: int, v: int, with_bias: bool, temperature: float, chunk: int
) -> None:
    """Values, and the gradients of hidden states, weights and bias, in float64."""
    generator = torch.Generator().manual_seed(n * 100 + v)

    def leaf(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64, requires_grad=True)

    hidden, weight, bias = leaf(n, 3), leaf(v, 3), leaf(v)
    inputs = [hidden, weight, *([bias] if with_bias else [])]
    targets = torch.randint(v, (n,), generator=generator)
    upstream, of_entropy = torch.randn(2, n, generator=generator, dtype=torch.float64)

    z = (torch.nn.functional.linear(hidden, weight, bias if with_bias else None)) / temperature
    plain = z.log_softmax(-1)
    wanted = plain.gather(1, targets[:, None])[:, 0]
    wanted_entropy = -(plain.exp() * plain).sum(-1)
    found, entropy = chosen_logprobs(
        hidden,
        weight,
        targets,
        bias=bias if with_bias else None,
        temperature=temperature,
        chunk_elements=chunk,
    )
    assert torch.allclose(found, wanted, atol=1e-12)
    assert torch.allclose(entropy, wanted_entropy, atol=1e-12)
    for losses in (  # of log-probabilities alone, of entropies alone, of both
        ((found * upstream).sum(), (wanted * upstream).sum()),
        ((entropy * of_entropy).sum(), (wanted_entropy * of_entropy).sum()),
        ((found * upstream + entropy).sum(), (wanted * upstream + wanted_entropy).sum()),
    ):
        ours, plain_ones = (torch.autograd.grad(x, inputs, retain_graph=True) for x in losses)
        for a, b in zip(ours, plain_ones, strict=True):
            assert torch.allclose(a, b, atol=1e-12)


def test_a_token_that_cannot_come_has_no_entropy() -> None:
    """A bias of minus infinity: p = (1/2, 1/2, 0), of entropy log 2, and no NaN comes back."""
    hidden = torch.zeros(1, 2, dtype=torch.float64, requires_grad=True)
    weight = torch.ones(3, 2, dtype=torch.float64)
    bias = torch.tensor([0.0, 0.0, -torch.inf], dtype=torch.float64)
    logprobs, entropy = chosen_logprobs(hidden, weight, torch.tensor([0]), bias=bias)
    assert entropy.item() == pytest.approx(0.6931471805599453)
    (logprobs + 3 * entropy).sum().backward()  # 3 times the least number is infinite
    assert hidden.grad is not None
    assert hidden.grad.isfinite().all()


def test_entropy_has_a_gradient_where_a_probability_underflows(model: Any) -> None:
    """At a temperature of 1e-3 some tokens have a probability of 0 in float32."""
    batch = Batch.of([rows([4, 5, 6], [7, 8])])
    found = []
    for name in ("full", "padded"):
        _, entropy = FORWARDS[name](model, batch, 1e-3)
        entropy.sum().backward()
        weight = model.get_output_embeddings().weight
        found.append(weight.grad.clone())
        model.zero_grad()
    assert found[0].isfinite().all()
    torch.testing.assert_close(*found, rtol=1e-2, atol=1e-2 * float(found[1].abs().max()))


def test_a_frozen_head_gets_no_gradient() -> None:
    hidden, weight = torch.ones(2, 3, requires_grad=True), torch.ones(4, 3)
    chosen_logprobs(hidden, weight, torch.tensor([0, 1]))[0].sum().backward()
    assert weight.grad is None
    assert hidden.grad is not None


def rows(prompt: list[int], *replies: list[int], hole: bool = False) -> list[Row]:
    """Rows of one prompt; with a hole, their second token is the environment's."""
    made = []
    for reply in replies:
        written = tuple(not (hole and i == 1) for i in range(len(reply)))
        made.append(
            Row(tuple(prompt), tuple(reply), written, (0.0,) * len(reply), (0.0,) * len(reply))
        )
    return made


GROUPS = [
    rows([5, 6, 7, 8, 9], [10, 11, 12, 13], [14], [10, 15, 16]),
    rows([20, 21], [22, 23], [24, 25, 26, 27, 28]),
    rows([30, 31, 32], [33, 34, 35], [36, 37, 38], hole=True),
]


def padded(batch: Batch) -> Batch:
    """The batch with five more columns of padding, of another token."""
    names = ("prompts", "replies", "mask", "old_logprobs", "advantages")
    fills = {"prompts": 3, "replies": 3}
    wider = {
        n: torch.nn.functional.pad(getattr(batch, n), (0, 5), value=fills.get(n, 0)) for n in names
    }
    return replace(batch, **wider)


def outcome(model: Any, forward: Any, batch: Batch) -> tuple[torch.Tensor, list[torch.Tensor]]:
    """Log-probabilities, and the gradient of a fixed weighting of them and of the entropies."""
    model.zero_grad()
    logprobs, entropy = forward(model, batch, 0.7)
    found = logprobs[batch.mask]
    weights = torch.linspace(-1, 1, len(found))
    (found * weights + 0.1 * entropy[batch.mask]).sum().backward()
    grads = [p.grad.clone() for p in model.parameters() if p.grad is not None]
    return found.detach(), grads


def assert_same(a: Any, b: Any) -> None:
    assert torch.allclose(a[0], b[0], atol=1e-5)
    for x, y in zip(a[1], b[1], strict=True):
        assert torch.allclose(x, y, atol=2e-5 * max(1.0, float(y.abs().max())))


@pytest.mark.parametrize("name", ["padded", "shared"])
@pytest.mark.parametrize(
    ("groups", "tokens"),
    [(GROUPS, 4 + 1 + 3 + 2 + 5 + 2 + 2), ([rows([5, 6], [7], [8]), rows([9], [10])], 3)],
    ids=["ragged", "one token each"],
)
def test_forward_equals_full_logits(model: Any, groups: Any, tokens: int, name: str) -> None:
    """Ragged prompts, replies and groups, and a token of the environment's in the middle."""
    batch = Batch.of(groups)
    wanted = outcome(model, full_forward, batch)
    found = outcome(model, FORWARDS[name], batch)
    assert found[0].numel() == tokens
    assert_same(found, wanted)


@pytest.mark.parametrize("name", list(FORWARDS))
def test_padding_changes_nothing(model: Any, name: str) -> None:
    plain = outcome(model, FORWARDS[name], Batch.of(GROUPS))
    assert_same(outcome(model, FORWARDS[name], padded(Batch.of(GROUPS))), plain)


def test_full_forward_equals_one_row_at_a_time(model: Any) -> None:
    """The yardstick itself, against the model on unpadded single rows."""
    batch = Batch.of(GROUPS)
    found, entropy = full_forward(model, batch, 1.0)
    for i, group in enumerate(GROUPS):
        for j, row in enumerate(group):
            logits = model(torch.tensor([[*row.prompt, *row.reply]])).logits[0]
            table = logits.log_softmax(-1)
            for t, token in enumerate(row.reply):
                at = len(row.prompt) + t - 1
                if row.written[t]:
                    assert found[i, j, t].item() == pytest.approx(table[at, token].item(), abs=1e-5)
                    assert entropy[i, j, t].item() == pytest.approx(
                        -(table[at].exp() * table[at]).sum().item(), abs=1e-4
                    )
                else:
                    assert found[i, j, t] == 0.0


SMALL: dict[str, Any] = {
    "vocab_size": 50,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 48,
    "head_dim": 8,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}


@pytest.mark.parametrize(
    ("config", "wanted"),
    [
        (LlamaConfig(**SMALL), "shared"),
        (Qwen3Config(**SMALL), "shared"),
        (MistralConfig(**SMALL, sliding_window=4), "shared"),
        (Gemma2Config(**SMALL, final_logit_softcapping=1.0), "full"),  # the head has a cap
        (Gemma2Config(**SMALL, final_logit_softcapping=30.0), "full"),  # one that shows later
        (GPT2Config(vocab_size=50, n_embd=32, n_layer=2, n_head=4), "shared"),
    ],
    ids=["llama", "qwen3", "mistral-window", "gemma2-cap", "gemma2-wide-cap", "gpt2"],
)
def test_the_forward_is_chosen_by_what_is_right(config: Any, wanted: str) -> None:
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(config).eval()
    with torch.no_grad():
        for p in model.parameters():
            p.mul_(3)  # attention of an untrained model hardly looks at anything
    name, forward = choose_forward(model)
    assert name == wanted
    batch = Batch.of(GROUPS)
    assert torch.allclose(
        forward(model, batch, 1.0)[0], full_forward(model, batch, 1.0)[0], atol=1e-3
    )


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
@pytest.mark.parametrize("window", [None, 3])
@pytest.mark.parametrize("way", ["copies", "blocks"])
def test_attention_to_a_shared_prompt_is_that_of_each_row(way: str, window: int | None) -> None:
    """Ragged prompts and replies, grouped queries; values and gradients."""

    def row(prompt: int, n: int) -> Row:
        return Row((1,) * prompt, (2,) * n, (True,) * n, (0.0,) * n, (0.0,) * n)

    lengths = [(5, [5, 2, 1]), (2, [4, 3])]
    batch = Batch.of([[row(p, n) for n in replies] for p, replies in lengths])
    layout, _ = Layout.of(batch)
    generator = torch.Generator().manual_seed(0)
    n = len(layout.ids)
    heads = (4, 2, 2)  # of queries, keys and values
    given = [
        torch.randn(n, h, 8, generator=generator, dtype=torch.float64, requires_grad=True)
        for h in heads
    ]
    upstream = torch.randn(n, 4, 8, generator=generator, dtype=torch.float64)
    if way == "blocks":  # its gradients need an accelerator
        given = [x.detach() for x in given]
    if way == "copies":
        found = attend_by_copies(*given, layout, 0.3, window)
    else:
        packed = (x.transpose(0, 1)[None] for x in given)
        found = attend_by_blocks(*packed, layout, 0.3, window, None)[0]

    wanted = torch.zeros_like(upstream)
    first, begins = 0, []
    for prompt, _ in lengths:
        begins.append(first)
        first += prompt
    for (prompt, replies), begin in zip(lengths, begins, strict=True):
        own = list(range(begin, begin + prompt))
        for reply in replies:
            places = own + list(range(first, first + reply - 1))
            first += reply - 1
            q, k, v = (x[places] for x in given)
            k, v = (x.repeat_interleave(2, dim=1) for x in (k, v))
            scores = torch.einsum("qhe,khe->hqk", q, k) * 0.3
            apart = torch.arange(len(places))[:, None] - torch.arange(len(places))
            seen = (apart >= 0) & (apart < (window or n))
            weights = scores.masked_fill(~seen, -torch.inf).softmax(-1)
            out = torch.einsum("hqk,khe->qhe", weights, v)
            wanted = wanted.index_copy(0, torch.tensor(places), out)
    assert torch.allclose(found, wanted, atol=1e-9)
    if way == "blocks":
        return
    for a, b in zip(
        torch.autograd.grad(found, given, upstream),
        torch.autograd.grad(wanted, given, upstream),
        strict=True,
    ):
        assert torch.allclose(a, b, atol=1e-9)
