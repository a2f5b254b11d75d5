"""The sampler: what it draws, with which log-probabilities, and that batches do not matter."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np
import pytest
import torch

from assay.grpo import Batch, ModelPolicy, Row, sample
from assay.grpo.draw import derive_seed, uniforms
from assay.grpo.logprobs import full_forward

torch.set_num_threads(1)
PROMPTS = [[5, 6, 7], [5, 6, 7], [8], [9, 10, 11, 12, 13], [9, 10, 11, 12, 13], [5, 6, 7]]
EOS = tuple(range(40, 60))  # a fifth of the vocabulary: replies end at different times


def test_logprobs_are_those_of_the_training_forward(model: Any) -> None:
    """So they can stand for the old log-probabilities without another pass."""
    found = sample(model, PROMPTS, max_new_tokens=9, eos_ids=EOS, temperature=0.8, seed=3)
    assert len({len(s.ids) for s in found}) > 1
    for prompt, s in zip(PROMPTS, found, strict=True):
        n = len(s.ids)
        row = Row(tuple(prompt), tuple(s.ids), (True,) * n, tuple(s.logprobs), (0.0,) * len(s.ids))
        batch = Batch.of([[row]])
        wanted, _ = full_forward(model, batch, 0.8)
        assert torch.allclose(batch.old_logprobs, wanted, atol=1e-5)


def test_a_split_batch_draws_the_same(model: Any) -> None:
    whole = sample(model, PROMPTS, max_new_tokens=8, eos_ids=EOS, seed=7)
    parts = [
        s
        for first in range(len(PROMPTS))
        for s in sample(
            model,
            PROMPTS[first : first + 1],
            max_new_tokens=8,
            eos_ids=EOS,
            seed=7,
            rows=[first],
        )
    ]
    assert [s.ids for s in parts] == [s.ids for s in whole]
    assert whole[0].ids != whole[1].ids  # equal prompts, other rows
    other = sample(model, PROMPTS, max_new_tokens=8, eos_ids=EOS, seed=8)
    assert [s.ids for s in other] != [s.ids for s in whole]


def test_finish_says_whether_an_end_came(model: Any) -> None:
    found = sample(model, [[5]] * 40, max_new_tokens=3, eos_ids=EOS, seed=0)
    for s in found:
        ended = s.ids[-1] in EOS
        assert s.finish == ("stop" if ended else "length")
        assert ended or len(s.ids) == 3
        assert not any(i in EOS for i in s.ids[:-1])
    assert {s.finish for s in found} == {"stop", "length"}


def test_temperature_zero_takes_the_most_likely(model: Any) -> None:
    a, b = (sample(model, [[5, 6]], max_new_tokens=4, temperature=0, seed=s)[0] for s in (1, 2))
    assert a.ids == b.ids
    assert a.ids[0] == model(torch.tensor([[5, 6]])).logits[0, -1].argmax()
    assert a.logprobs == [0.0] * 4


def test_random_numbers_are_uniform_and_depend_on_their_address_only() -> None:
    u = uniforms(1, np.arange(400), 50)
    assert u.min() >= 0
    assert u.max() < 1
    assert abs(u.mean() - 0.5) < 0.01
    assert abs(np.corrcoef(u[:-1].ravel(), u[1:].ravel())[0, 1]) < 0.03
    assert abs(np.corrcoef(u[:, :-1].ravel(), u[:, 1:].ravel())[0, 1]) < 0.03
    assert np.array_equal(uniforms(1, np.array([7]), 3), u[7:8, :3])
    assert not np.array_equal(uniforms(2, np.array([7]), 3), u[7:8, :3])
    assert len({derive_seed(0, i, j) for i in range(50) for j in range(50)}) == 2500


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_broken_weights_are_named(model: Any, temperature: float) -> None:
    with torch.no_grad():
        model.get_output_embeddings().weight.fill_(float("nan"))
    with pytest.raises(ValueError, match="logits are not finite"):
        sample(model, [[5]], max_new_tokens=1, temperature=temperature)


@pytest.mark.parametrize(
    ("prompt", "message"),
    [([], "at least one token"), ([5, 100], "has the token 100, and the model knows 100")],
)
def test_prompts_that_are_none(model: Any, prompt: list[int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        sample(model, [[1], prompt], max_new_tokens=1)
    assert sample(model, [], max_new_tokens=1) == []


def conversation(text: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text}]


def test_policy_answers_conversations(model: Any, tokenizer: Any) -> None:
    """Calls and batches may be split: rows are numbered over all of them."""
    texts = ["1+1=", "1+1=", "2+2=", "13+4="]
    policy = ModelPolicy(model, tokenizer, max_new_tokens=5, seed=4)
    found = policy([conversation(t) for t in texts])
    for text, completion in zip(texts, found, strict=True):
        assert tokenizer.decode(completion.prompt_ids) == text
        assert len(completion.ids) == len(completion.logprobs) <= 5
        assert "<eos>" not in completion.text
        ended = completion.ids[-1] == tokenizer.eos_token_id
        assert completion.finish == ("stop" if ended else "length")
    policy.reseed(4)
    assert [c.ids for t in texts for c in policy([conversation(t)])] == [c.ids for c in found]
    small = ModelPolicy(model, tokenizer, max_new_tokens=5, seed=4, rows_per_batch=3)
    assert [c.ids for c in small([conversation(t) for t in texts])] == [c.ids for c in found]


def test_policy_without_a_chat_template_joins_contents(model: Any, tokenizer: Any) -> None:
    bare = deepcopy(tokenizer)
    bare.chat_template = None
    policy = ModelPolicy(model, bare, max_new_tokens=1)
    messages = [{"role": "system", "content": "Add. "}, {"role": "user", "content": "1+1="}]
    assert tokenizer.decode(policy([messages])[0].prompt_ids) == "Add. 1+1="


@pytest.mark.parametrize(
    "settings",
    [{"max_new_tokens": 0}, {"temperature": -1.0}, {"top_k": -1}, {"min_p": 1.5}, {"top_p": 0.0}],
)
def test_policy_settings_are_checked(model: Any, tokenizer: Any, settings: Any) -> None:
    with pytest.raises(ValueError, match=next(iter(settings))):
        ModelPolicy(model, tokenizer, **{"max_new_tokens": 1, **settings})
