"""Programs talk to the gateway by the clients they have: the openai SDK, curl, plain HTTP."""

from __future__ import annotations

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
import torch

from assay.gateway.engine import EngineError, Sampled
from assay.grpo.sampler import sample

openai = pytest.importorskip("openai")
GO = [{"role": "user", "content": "1+1="}]
LOOK = {
    "type": "function",
    "function": {
        "name": "look",
        "description": "Look up.",
        "parameters": {"type": "object", "properties": {"at": {"type": "string"}}},
    },
}


class Script:
    """An engine that writes given texts, or raises given errors, in turn."""

    name, longest = "script", None

    def __init__(self, tokenizer: Any, *texts: str | Exception) -> None:
        self.tokenizer, self.texts, self.requests = tokenizer, list(texts), []

    async def sample(self, request):
        self.requests.append(request)
        text = self.texts.pop(0)
        if isinstance(text, Exception):
            raise text
        ids = self.tokenizer(text, add_special_tokens=False)["input_ids"]
        return Sampled([*ids, self.tokenizer.eos_token_id], [-0.5] * (len(ids) + 1), "stop")

    async def close(self) -> None:
        pass


_clients: list[Any] = []


@pytest.fixture(autouse=True)
def close_clients():
    yield
    while _clients:
        _clients.pop().close()


def client(url: str, session, **more: Any):
    _clients.append(openai.OpenAI(base_url=f"{url}/v1", api_key=session.key, max_retries=0, **more))
    return _clients[-1]


def test_ids_and_logprobs_are_the_models_own(start, loaded) -> None:
    """Bit for bit on replay, and the teacher-forced ones to rounding, over a loop of turns."""
    model, _ = loaded
    gateway, url = start()
    session = gateway.open(seed=3)
    messages = list(GO)
    for _ in range(4):
        found = client(url, session).chat.completions.create(
            model="tiny", messages=messages, logprobs=True, extra_body={"return_token_ids": True}
        )
        (choice,) = found.choices
        turn = session.tree.turns[-1]
        assert tuple(choice.token_ids) == turn.ids
        assert [row.logprob for row in choice.logprobs.content] == list(turn.logprobs)
        assert found.usage.completion_tokens == len(turn.ids)
        messages += [choice.message.model_dump(), {"role": "user", "content": "on"}]
    (branch,) = session.tree.branches()
    assert len(branch.turns) == 4
    logits = model(torch.tensor([branch.ids])).logits[0, :-1].double().log_softmax(-1)
    own = logits[torch.arange(len(branch.ids) - 1), torch.tensor(branch.ids[1:])]
    mask = torch.tensor(branch.mask[1:]).bool()
    assert (own[mask] - torch.tensor(branch.logprobs[1:])[mask]).abs().max() < 2e-6
    for turn in branch.turns:
        seed = (
            gateway.open(seed=3)._requests(_chat(), turn.prompt)[0].seed
        )  # what the gateway derives for this prompt
        (again,) = sample(
            model,
            [turn.prompt.ids],
            max_new_tokens=8,
            eos_ids=gateway.engine._eos,
            rows=[seed],
        )
        assert (tuple(again.ids), tuple(again.logprobs)) == (turn.ids, turn.logprobs)


def _chat():
    from assay.gateway.episodes import Chat

    return Chat(messages=GO)


def test_streams_n_stop_and_seed(start) -> None:
    gateway, url = start()
    session = gateway.open()
    create = client(url, session).chat.completions.create
    asked: dict[str, Any] = {"model": "tiny", "messages": GO, "n": 3, "seed": 5, "stop": ["7", "a"]}
    whole = create(**asked)
    again = create(**asked)
    texts = [c.message.content for c in whole.choices]
    assert texts == [c.message.content for c in again.choices]
    assert len(set(texts)) > 1
    assert not any("7" in text or "a" in text for text in texts)
    streamed = ["", "", ""]
    usage = None
    for chunk in create(**asked, stream=True, stream_options={"include_usage": True}):
        for choice in chunk.choices:
            streamed[choice.index] += choice.delta.content or ""
        usage = chunk.usage or usage
    assert streamed == texts
    assert usage == whole.usage
    assert len(session.tree.turns) == 9


def test_calls_of_tools_by_three_dialects(start, loaded) -> None:
    """The same conversation in each: one branch, since what comes back is what was sent."""
    said = 'see\n<tool_call>\n{"name": "look", "arguments": {"at": "x"}}\n</tool_call>'
    for dialect in (_by_chat, _by_responses, _by_messages):
        engine = Script(loaded[1], said, "done")
        gateway, url = start(engine=engine, max_tokens=100)
        session = gateway.open()
        assert dialect(url, session) == ("see", "look", {"at": "x"}, "done")
        (branch,) = session.tree.branches()
        assert len(branch.turns) == 2
        text = loaded[1].decode(branch.ids)
        assert text.count("<tool_call>") == 1
        assert text.endswith(f"a:{said}<eos>\nt:seen<eos>\na:done<eos>")


def _by_chat(url: str, session):
    create = client(url, session).chat.completions.create
    first = create(model="m", messages=GO, tools=[LOOK]).choices[0]
    assert first.finish_reason == "tool_calls"
    (call,) = first.message.tool_calls
    after = [*GO, first.message, {"role": "tool", "tool_call_id": call.id, "content": "seen"}]
    last = create(model="m", messages=after, tools=[LOOK]).choices[0].message
    arguments = json.loads(call.function.arguments)
    return first.message.content, call.function.name, arguments, last.content


def _by_responses(url: str, session):
    create = client(url, session).responses.create
    tool = {"type": "function", **LOOK["function"]}
    first = create(model="m", input=GO, tools=[tool])
    call = first.output[-1]
    answer = {"type": "function_call_output", "call_id": call.call_id, "output": "seen"}
    stream = create(
        model="m", input=[answer], previous_response_id=first.id, tools=[tool], stream=True
    )
    *_, end = stream
    assert end.type == "response.completed"
    return first.output_text, call.name, json.loads(call.arguments), end.response.output_text


def _by_messages(url: str, session):
    tool = {**LOOK["function"], "input_schema": LOOK["function"]["parameters"]}
    del tool["parameters"]
    body = {"model": "m", "max_tokens": 100, "messages": GO, "tools": [tool]}
    headers = {"x-api-key": session.key}
    first = httpx.post(f"{url}/v1/messages", json=body, headers=headers).json()
    text, call = first["content"]
    result = {"type": "tool_result", "tool_use_id": call["id"], "content": "seen"}
    body["messages"] = [
        *GO,
        {"role": "assistant", "content": first["content"]},
        {"role": "user", "content": [result]},
    ]
    streamed = httpx.post(f"{url}/v1/messages", json={**body, "stream": True}, headers=headers)
    events = [json.loads(x[6:]) for x in streamed.text.splitlines() if x.startswith("data: ")]
    assert [e["type"] for e in events][-2:] == ["message_delta", "message_stop"]
    last = "".join(e["delta"]["text"] for e in events if e["type"] == "content_block_delta")
    return text["text"], call["name"], call["input"], last


@pytest.mark.parametrize("strict", [True, False])
def test_a_call_of_a_strict_tool_fits_its_schema(start, loaded, strict: bool) -> None:
    """One that does not stays text."""
    said = '<tool_call>\n{"name": "look", "arguments": {"at": 5}}\n</tool_call>'
    gateway, url = start(engine=Script(loaded[1], said, said.replace("5", '"x"')), max_tokens=100)
    tools = [{**LOOK, "function": {**LOOK["function"], "strict": strict}}]
    create = client(url, gateway.open()).chat.completions.create
    wrong, right = (create(model="m", messages=GO, tools=tools).choices[0] for _ in range(2))
    assert (wrong.message.tool_calls is None) == strict
    assert wrong.message.content == (said if strict else None)
    assert json.loads(right.message.tool_calls[0].function.arguments) == {"at": "x"}


def test_messages_by_anthropics_form(start, loaded) -> None:
    """Stop texts are named, and errors have its form."""
    gateway, url = start(engine=Script(loaded[1], "one two", "one two"))
    session = gateway.open()
    asked = {"model": "m", "max_tokens": 9, "messages": GO, "stop_sequences": ["x", " t"]}

    def post(**more: Any) -> httpx.Response:
        headers = {"x-api-key": session.key}
        return httpx.post(f"{url}/v1/messages", json={**asked, **more}, headers=headers)

    said = post().json()
    assert said["content"] == [{"type": "text", "text": "one"}]
    assert (said["stop_reason"], said["stop_sequence"]) == ("stop_sequence", " t")
    assert '"stop_sequence": " t"' in post(stream=True).text
    for more in ({"max_tokens": 0}, {"messages": [*GO, {"role": "assistant", "content": "a"}]}):
        refused = post(**more)
        assert (refused.status_code, refused.json()["type"]) == (400, "error")
        assert refused.json()["error"]["type"] == "invalid_request_error"
    gateway.end(session)
    assert post().json()["error"]["code"] == "episode_ended"


def test_text_completions_go_on_from_their_ids(start, loaded) -> None:
    engine = Script(loaded[1], "ab", "cd")
    gateway, url = start(engine=engine)
    session = gateway.open()
    loaded_eos = loaded[1].eos_token_id

    async def no_end(request):
        ids = loaded[1](engine.texts.pop(0))["input_ids"]
        return Sampled([i for i in ids if i != loaded_eos], [-1.0] * 2, "length")

    engine.sample = no_end
    create = client(url, session).completions.create
    first = create(model="m", prompt="1+1=", max_tokens=2).choices[0]
    second = create(model="m", prompt=f"1+1={first.text} so", max_tokens=2, logprobs=0).choices[0]
    assert second.logprobs.token_logprobs == [-1.0, -1.0]
    (branch,) = session.tree.branches()
    assert (len(branch.turns), sum(branch.mask)) == (2, 4)


def test_keys(start) -> None:
    gateway, url = start()
    session = gateway.open()
    assert client(url, session).models.list().data[0].id == "tiny"
    assert client(url, session).models.retrieve("tiny").id == "tiny"
    with pytest.raises(openai.NotFoundError):
        client(url, session).models.retrieve("another")
    gateway.end(session)
    with pytest.raises(openai.APIStatusError) as ended:
        client(url, session).models.list()
    assert (ended.value.status_code, ended.value.code) == (410, "episode_ended")
    session.key = "wrong"
    with pytest.raises(openai.AuthenticationError) as unknown:
        client(url, session).models.list()
    assert unknown.value.code == "invalid_api_key"


@pytest.mark.parametrize(
    ("more", "name"),
    [
        ({"presence_penalty": 0.5}, "presence_penalty"),
        ({"logit_bias": {"5": 1}}, "logit_bias"),
        ({"response_format": {"type": "json_object"}}, "response_format.type"),
        ({"tool_choice": "required", "tools": [LOOK]}, "tool_choice"),
        ({"stop": [5]}, "stop.0"),
        ({"max_tokens": "5"}, "max_tokens"),
        ({"reasoning_effort": "low"}, "reasoning_effort"),
        ({"top_logprobs": 3, "logprobs": True}, "top_logprobs"),
        ({"temperature": -1}, "temperature"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "messages.0"),
        ({"messages": [{"role": "user", "content": "?", "audio": {"id": 1}}]}, "messages.0.audio"),
    ],
)
def test_what_is_not_supported_is_refused_by_name(start, more, name: str) -> None:
    gateway, url = start()
    session = gateway.open()
    with pytest.raises(openai.BadRequestError) as refused:
        client(url, session).chat.completions.create(**{"model": "m", "messages": GO, **more})
    assert refused.value.param == name
    assert not session.tree.turns


def test_settings_without_effect_are_accepted(start) -> None:
    gateway, url = start()
    client(url, gateway.open()).chat.completions.create(
        model="m",
        messages=GO,
        user="me",
        presence_penalty=0.0,
        response_format={"type": "text"},
        metadata={"a": "b"},
    )


@pytest.mark.parametrize(
    "garbage",
    [
        b"",
        b"{",
        b"[]",
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"messages": "x"}',
        b'{"messages": [{"role": "user", "content": "\\ud800"}]}',
        b'{"messages": [{"role": "user", "content": 5}]}',
        b'{"messages": [{"role": {}, "content": "a"}]}',
        b'{"messages": [{"role": "assistant", "tool_calls": [7]}]}',
        b'{"messages": [{"role": "user", "content": "a"}], "tools": [{"type": "function"}]}',
        b'{"messages": [{"role": "user", "content": "a"}], "n": 1e9}',
        b'{"messages": [{"role": "user", "content": "a"}], "seed": -1}',
        b'{"prompt": [999999999]}',
    ],
)
def test_garbage_is_a_bad_request_on_every_route(start, garbage: bytes) -> None:
    gateway, url = start()
    session = gateway.open()
    for route in ("chat/completions", "completions", "responses", "messages"):
        found = httpx.post(f"{url}/e/{session.key}/v1/{route}", content=garbage)
        assert found.status_code == 400, (route, found.text)
        assert found.json()["error"]["message"]
    assert not session.faults
    assert not session.tree.turns


def test_an_engine_that_fails_is_a_fault_until_a_try_succeeds(start, loaded) -> None:
    engine = Script(loaded[1], EngineError("lost"), "fine", EngineError("lost"))
    gateway, url = start(engine=engine)
    session = gateway.open()
    create = client(url, session).chat.completions.create
    with pytest.raises(openai.InternalServerError) as failed:
        create(model="m", messages=GO)
    assert (failed.value.status_code, failed.value.code) == (503, "engine_error")
    assert session.faults
    create(model="m", messages=GO)
    assert not session.faults
    with pytest.raises(openai.InternalServerError):
        create(model="m", messages=[{"role": "user", "content": "other"}])
    assert list(session.faults.values()) == ["lost"]


def test_waiting_for_the_engine_stops_the_clock_and_has_a_limit(start, loaded) -> None:
    engine = Script(loaded[1])

    async def slow(request):
        await asyncio.sleep(60)

    engine.sample = slow
    gateway, url = start(engine=engine, timeout_s=3.0)
    session = gateway.open()
    session.clock.start()
    with pytest.raises(openai.InternalServerError) as late:
        client(url, session).chat.completions.create(model="m", messages=GO)
    assert late.value.code == "engine_timeout"
    assert session.clock.seconds < 2.5
    assert session.faults


def test_turns_and_context_are_limited(start) -> None:
    gateway, url = start(max_turns=1)
    session = gateway.open()
    create = client(url, session).chat.completions.create
    with pytest.raises(openai.BadRequestError) as long:
        create(model="m", messages=[{"role": "user", "content": "x" * 3000}])
    assert long.value.code == "context_length_exceeded"
    assert session.cut
    create(model="m", messages=GO)
    with pytest.raises(openai.PermissionDeniedError) as over:
        create(model="m", messages=GO)
    assert over.value.code == "turn_limit"


def test_many_at_once_are_sampled_together_and_as_if_alone(start, loaded) -> None:
    gateway, url = start(max_tokens=20)
    texts = {}
    with ThreadPoolExecutor(16) as pool:

        def play(i: int) -> tuple[int, str]:
            session = gateway.open(seed=i)
            said = client(url, session).chat.completions.create(model="m", messages=GO)
            return i, said.choices[0].message.content

        texts = dict(pool.map(play, range(16)))
    assert len(set(texts.values())) > 8
    for i in range(0, 16, 5):
        alone = client(url, gateway.open(seed=i)).chat.completions.create(model="m", messages=GO)
        assert alone.choices[0].message.content == texts[i]


def test_a_learners_distribution_replaces_that_of_requests(start, loaded) -> None:
    engine = Script(loaded[1], "a", "b")
    gateway, url = start(engine=engine, override={"temperature": 1.0, "top_p": 1.0})
    session = gateway.open()
    create = client(url, session).chat.completions.create
    for _ in range(2):
        create(model="m", messages=GO, temperature=0.0, top_p=0.5, seed=1)
    one, two = engine.requests
    assert (one.temperature, one.top_p) == (1.0, 1.0)
    assert one.seed != two.seed
