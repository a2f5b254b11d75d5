"""Replies in the form of each route: a body, or the events of a stream."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .episodes import Choice

Event = tuple[str, Any]
"""Name of an event, "" for none, and its data."""


def completion(
    choices: Sequence[Choice], model: str, *, chat: bool, logprobs: bool, ids: bool
) -> dict[str, Any]:
    """Return the body for ``/v1/chat/completions`` or ``/v1/completions``."""
    rows: list[dict[str, Any]] = []
    for i, choice in enumerate(choices):
        row: dict[str, Any] = {"index": i, "finish_reason": choice.finish, "logprobs": None}
        if chat:
            row["message"] = {"role": "assistant", "content": choice.text or None}
            if choice.calls:
                row["message"]["tool_calls"] = [as_text(call) for call in choice.calls]
            else:
                row["message"]["content"] = choice.text
        else:
            row["text"] = choice.text
        if logprobs:
            row["logprobs"] = _logprobs(choice, chat=chat)
        if ids:  # as vLLM gives them
            row["token_ids"] = list(choice.turn.ids)
        rows.append(row)
    about = "chat.completion" if chat else "text_completion"
    body = {
        "id": f"{'chatcmpl' if chat else 'cmpl'}-{secrets.token_hex(12)}",
        "object": about,
        "created": int(time.time()),
        "model": model,
        "choices": rows,
        "usage": _usage(choices, "prompt_tokens", "completion_tokens"),
    }
    if ids:
        body["prompt_token_ids"] = list(choices[0].turn.prompt.ids)
    return body


def completion_events(body: Mapping[str, Any], *, usage: bool) -> Iterator[Event]:
    """Yield the events of a streamed completion."""
    chat = body["object"] == "chat.completion"
    shared = {k: body[k] for k in ("id", "created", "model")}
    shared["object"] = "chat.completion.chunk" if chat else "text_completion"
    if usage:
        shared["usage"] = None
    for choice in body["choices"]:
        end = {k: v for k, v in choice.items() if k not in ("message", "text")}
        if chat:
            delta = {**choice["message"]}
            if "tool_calls" in delta:
                calls = [{"index": i, **call} for i, call in enumerate(delta["tool_calls"])]
                delta["tool_calls"] = calls
            begun = {"index": choice["index"], "delta": delta, "finish_reason": None}
            yield "", {**shared, "choices": [begun]}
            end["delta"] = {}
        else:
            end["text"] = choice["text"]
        yield "", {**shared, "choices": [end]}
    if usage:
        yield "", {**shared, "choices": [], "usage": body["usage"]}
    yield "", "[DONE]"


def response(choice: Choice, model: str, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return the body for ``/v1/responses``."""
    output: list[dict[str, Any]] = []
    if choice.text or not choice.calls:
        part = {"type": "output_text", "text": choice.text, "annotations": [], "logprobs": []}
        output.append(
            {
                "type": "message",
                "id": f"msg_{secrets.token_hex(12)}",
                "role": "assistant",
                "status": "completed",
                "content": [part],
            }
        )
    for call in choice.calls:
        function = as_text(call)["function"]
        output.append(
            {
                "type": "function_call",
                "id": f"fc_{secrets.token_hex(12)}",
                "call_id": call["id"],
                "status": "completed",
                **function,
            }
        )
    cut = choice.finish == "length"
    usage = _usage([choice], "input_tokens", "output_tokens")
    usage |= {
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": 0},
    }
    return {
        "id": f"resp_{secrets.token_hex(12)}",
        "object": "response",
        "created_at": int(time.time()),
        "status": "incomplete" if cut else "completed",
        "incomplete_details": {"reason": "max_output_tokens"} if cut else None,
        "error": None,
        "model": model,
        "output": output,
        "usage": usage,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "metadata": {},
        **asked,
    }


def response_events(body: Mapping[str, Any]) -> Iterator[Event]:
    """Yield the events of a streamed response."""
    number = iter(range(1 << 30))

    def event(kind: str, **data: Any) -> Event:
        return kind, {"type": kind, "sequence_number": next(number), **data}

    begun = {**body, "status": "in_progress", "output": [], "usage": None}
    yield event("response.created", response=begun)
    for i, item in enumerate(body["output"]):
        place = {"item_id": item["id"], "output_index": i}
        if item["type"] == "message":
            (part,) = item["content"]
            bare = {**item, "status": "in_progress", "content": []}
            yield event("response.output_item.added", output_index=i, item=bare)
            place["content_index"] = 0
            yield event("response.content_part.added", **place, part={**part, "text": ""})
            text = {**place, "logprobs": []}
            yield event("response.output_text.delta", **text, delta=part["text"])
            yield event("response.output_text.done", **text, text=part["text"])
            yield event("response.content_part.done", **place, part=part)
        else:
            bare = {**item, "status": "in_progress", "arguments": ""}
            yield event("response.output_item.added", output_index=i, item=bare)
            said = item["arguments"]
            yield event("response.function_call_arguments.delta", **place, delta=said)
            yield event(
                "response.function_call_arguments.done", **place, arguments=said, name=item["name"]
            )
        yield event("response.output_item.done", output_index=i, item=item)
    yield event(f"response.{body['status']}", response=dict(body))


_REASONS = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use"}


def message(choice: Choice, model: str) -> dict[str, Any]:
    """Return the body for ``/v1/messages``."""
    content: list[dict[str, Any]] = []
    if choice.text:
        content.append({"type": "text", "text": choice.text})
    for call in choice.calls:
        function = call["function"]
        made = {"id": call["id"], "name": function["name"], "input": function["arguments"]}
        content.append({"type": "tool_use", **made})
    usage = _usage([choice], "input_tokens", "output_tokens")
    del usage["total_tokens"]
    stopped = choice.stopped if choice.finish == "stop" else None
    return {
        "id": f"msg_{secrets.token_hex(12)}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": content,
        "stop_reason": "stop_sequence" if stopped else _REASONS[choice.finish],
        "stop_sequence": stopped,
        "usage": usage,
    }


def message_events(body: Mapping[str, Any]) -> Iterator[Event]:
    """Yield the events of a streamed message."""

    def event(kind: str, **data: Any) -> Event:
        return kind, {"type": kind, **data}

    begun = {**body, "content": [], "stop_reason": None, "stop_sequence": None}
    yield event("message_start", message=begun)
    for i, block in enumerate(body["content"]):
        if block["type"] == "text":
            bare, delta = {**block, "text": ""}, {"type": "text_delta", "text": block["text"]}
        else:
            said = json.dumps(block["input"])
            bare = {**block, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": said}
        yield event("content_block_start", index=i, content_block=bare)
        yield event("content_block_delta", index=i, delta=delta)
        yield event("content_block_stop", index=i)
    end = {name: body[name] for name in ("stop_reason", "stop_sequence")}
    usage = {"output_tokens": body["usage"]["output_tokens"]}
    yield event("message_delta", delta=end, usage=usage)
    yield event("message_stop")


def _usage(choices: Sequence[Choice], read: str, written: str) -> dict[str, Any]:
    prompt = len(choices[0].turn.prompt.ids)
    reply = sum(len(choice.turn.ids) for choice in choices)
    return {read: prompt, written: reply, "total_tokens": prompt + reply}


def as_text(call: Mapping[str, Any]) -> dict[str, Any]:
    """Return a call whose arguments are JSON text."""
    function = call["function"]
    return {**call, "function": {**function, "arguments": json.dumps(function["arguments"])}}


def _logprobs(choice: Choice, *, chat: bool) -> dict[str, Any]:
    """Return the log-probability of each sampled token."""
    tokens, logprobs = choice.pieces, list(choice.turn.logprobs)
    if not chat:
        starts = [sum(map(len, tokens[:i])) for i in range(len(tokens))]
        return {
            "tokens": list(tokens),
            "token_logprobs": logprobs,
            "top_logprobs": None,
            "text_offset": starts,
        }
    rows = [
        {"token": t, "logprob": p, "bytes": list(t.encode()), "top_logprobs": []}
        for t, p in zip(tokens, logprobs, strict=True)
    ]
    return {"content": rows, "refusal": None}
