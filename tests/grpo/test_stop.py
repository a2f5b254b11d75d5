"""Stop strings: found across tokens, and the reply ends with the token that completes one."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from assay.grpo import ModelPolicy
from assay.grpo.draw import StopStrings

torch.set_num_threads(1)


def byte_tokenizer() -> Any:
    """Bytes, and a few longer pieces: a character may take several tokens."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    pieces = [*alphabet, "st", "op", "stop", "p!"]
    vocabulary = {token: i for i, token in enumerate(["<eos>", *pieces])}
    merges = [("s", "t"), ("o", "p"), ("st", "op"), ("p", "!")]
    raw = Tokenizer(models.BPE(vocabulary, merges))
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=raw, eos_token="<eos>")


@pytest.mark.parametrize(
    ("pieces", "stops", "at"),
    [
        (["a", "st", "op", "b"], ["stop"], 3),
        (["stop", "b"], ["stop"], 1),
        (["s", "t", "o", "p!", "b"], ["stop"], 4),  # the token says more than the stop string
        (["st", "o", "st", "op"], ["stop"], 4),
        (["a", "b"], ["stop"], None),
        (["a", "st", "b"], ["x", "st"], 2),
    ],
)
def test_where_a_reply_ends(pieces: list[str], stops: list[str], at: int | None) -> None:
    tokenizer = byte_tokenizer()
    ids = tokenizer.convert_tokens_to_ids(pieces)
    stop = StopStrings(tokenizer, stops)
    found = next((n for n in range(1, len(ids) + 1) if stop.complete(ids[:n])), None)
    assert found == at


def test_a_character_of_several_tokens_can_be_a_stop() -> None:
    tokenizer = byte_tokenizer()
    ids = tokenizer("x→é y")["input_ids"]
    stop = StopStrings(tokenizer, ["→é"])
    assert [stop.complete(ids[:n]) for n in range(1, len(ids) + 1)].index(True) == 5
    assert tokenizer.decode(ids[:6]) == "x→é"


def test_a_policy_ends_replies_there(model: Any, tokenizer: Any) -> None:
    """With the same tokens, up to the end, as without."""
    ask = [[{"role": "user", "content": "1+1="}]] * 60
    free = ModelPolicy(model, tokenizer, max_new_tokens=12, seed=1)(ask)
    texts = [c.text for c in free if len(c.text) == 12]
    stops = [texts[0][3:5], texts[1][0]]
    found = ModelPolicy(model, tokenizer, max_new_tokens=12, seed=1, stop=stops)(ask)
    cut = 0
    for a, b in zip(free, found, strict=True):
        ends = [a.text.index(s) + len(s) for s in stops if s in a.text]
        wanted = a.text[: min(ends)] if ends else a.text
        assert b.text == wanted
        assert b.ids == a.ids[: len(b.ids)]
        assert b.logprobs == pytest.approx(a.logprobs[: len(b.ids)], abs=1e-5)
        assert b.finish == ("stop" if ends else a.finish)
        cut += bool(ends)
    assert 2 <= cut < 60


@pytest.mark.parametrize("stop", ["END", ["a", ""]])
def test_stops_are_a_list_of_texts(tokenizer: Any, stop: Any) -> None:
    with pytest.raises(ValueError, match="list of texts, none empty"):
        StopStrings(tokenizer, stop)
