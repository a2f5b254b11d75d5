"""Bodies of requests: what each route supports. All else is refused by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PrivateAttr,
    ValidationError,
)
from pydantic_core import from_json

from ..verifiers.form.schema_cache import schema_of
from .episodes import Chat, Refused

_Zero = Annotated[float, Field(ge=0, le=0)]
_One = Annotated[float, Field(ge=1, le=1)]
_Temperature = Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)]
_TopP = Annotated[float, Field(gt=0, le=1)]
_Count = Annotated[int, Field(ge=1)]
_StopText = Annotated[str, Field(min_length=1, max_length=1000)]
_Stop = Annotated[
    list[_StopText],
    Field(max_length=16),
    BeforeValidator(lambda given: [given] if isinstance(given, str) else given),
]
_Seed = Annotated[int, Field(ge=0, lt=2**63)]
_TOOLS = 128
_FAULTS = 100  # to list many takes seconds, in which nobody else is answered
_Messages = Annotated[list[dict[str, Any]], Field(min_length=1, fail_fast=True)]
_Name = Annotated[str, Field(min_length=1, max_length=256)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class Body(_Strict):
    """Fields that every route knows; those without effect on the reply are accepted."""

    model: str = ""
    stream: bool = False
    temperature: _Temperature = 1.0
    top_p: _TopP = 1.0
    metadata: Any = None
    user: Any = None
    service_tier: Any = None
    store: Any = None
    prompt_cache_key: Any = None
    safety_identifier: Any = None

    def sampling(self) -> dict[str, Any]:
        """Return the fields of a Chat that are about sampling."""
        return {"temperature": self.temperature, "top_p": self.top_p}

    @classmethod
    def read(cls, given: Any) -> Any:
        """Validate a body; fields that are null count as missing.

        Raises:
            Refused: a field is unsupported, missing or of another type.
        """
        if not isinstance(given, dict):
            raise Refused(400, "invalid_value", "the body must be a JSON object")
        try:
            return cls.model_validate({k: v for k, v in given.items() if v is not None})
        except ValidationError as error:
            if error.error_count() > _FAULTS:
                message = f"{error.error_count()} parts of the body are not supported"
                raise Refused(400, "invalid_value", message) from None
            faults = error.errors(include_url=False, include_context=False, include_input=False)
            # Of a union, the member that fits best.
            fault = max(faults, key=lambda f: len(f["loc"]))
            field, *rest = map(str, fault["loc"])
            name = ".".join([field, *(part for part in rest if part != "str" and "[" not in part)])
            code, what = "invalid_value", fault["msg"]
            if fault["type"] == "extra_forbidden":
                code, what = "unsupported_parameter", "is not supported"
            raise Refused(400, code, f"{name}: {what}", name) from error


class _Function(_Strict):
    name: _Name
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None
    _schema: Any = PrivateAttr(None)

    def model_post_init(self, context: Any, /) -> None:
        """Compile the schema of a strict tool; one that cannot be used is a ValueError."""
        if self.strict:
            self._schema = schema_of(self.parameters or {"type": "object"})

    def shown(self) -> dict[str, Any]:
        """Return the schema as chat templates take it."""
        kept = self.model_dump(exclude_none=True, include={"name", "description", "parameters"})
        return {"type": "function", "function": kept}


class _ChatTool(_Strict):
    type: Literal["function"]
    function: _Function


class _Text(_Strict):
    type: Literal["text"]


def _tools(given: Sequence[_Function | _AnthropicTool], choice: str) -> dict[str, Any]:
    """Return the fields of a Chat that are about tools."""
    shown = given if choice == "auto" else ()
    strict = {t.name: t._schema for t in shown if isinstance(t, _Function) and t.strict}
    return {"tools": [tool.shown() for tool in shown], "strict": strict}


class _SampledBody(Body):
    """Fields of OpenAI's older routes, which return several replies."""

    n: Annotated[int, Field(ge=1, le=64)] = 1
    stop: _Stop = []
    seed: _Seed | None = None
    presence_penalty: _Zero = 0
    frequency_penalty: _Zero = 0
    repetition_penalty: _One = 1
    logit_bias: Annotated[dict[str, float], Field(max_length=0)] = {}
    stream_options: dict[str, bool] | None = None
    return_token_ids: bool = False

    def sampling(self) -> dict[str, Any]:
        """Return the fields of a Chat that are about sampling."""
        more = {"n": self.n, "seed": self.seed, "stop": tuple(self.stop)}
        return super().sampling() | more


class ChatBody(_SampledBody):
    """``/v1/chat/completions``."""

    messages: _Messages
    tools: Annotated[list[_ChatTool], Field(max_length=_TOOLS)] = []
    tool_choice: Literal["auto", "none"] = "auto"
    parallel_tool_calls: Literal[True] = True
    max_tokens: _Count | None = None
    max_completion_tokens: _Count | None = None
    logprobs: bool = False
    top_logprobs: _Zero = 0
    response_format: _Text | None = None

    def chat(self) -> Chat:
        """Return what is asked."""
        return Chat(
            messages=[_message(m, f"messages.{i}") for i, m in enumerate(self.messages)],
            max_tokens=self.max_completion_tokens or self.max_tokens,
            logprobs=self.logprobs,
            **self.sampling(),
            **_tools([tool.function for tool in self.tools], self.tool_choice),
        )


class CompletionBody(_SampledBody):
    """``/v1/completions``."""

    prompt: str | Annotated[list[int], Field(fail_fast=True)]
    max_tokens: _Count = 16
    logprobs: Literal[0] | None = None
    echo: Literal[False] = False
    best_of: Literal[1] = 1

    def chat(self) -> Chat:
        """Return what is asked."""
        if not self.prompt:
            raise Refused(400, "invalid_value", "prompt: at least one token is needed", "prompt")
        return Chat(
            messages=self.prompt if isinstance(self.prompt, str) else tuple(self.prompt),
            max_tokens=self.max_tokens,
            logprobs=self.logprobs is not None,
            **self.sampling(),
        )


class _ResponseTool(_Function):
    type: Literal["function"]


class _ResponseText(_Strict):
    format: _Text | None = None


class ResponseBody(Body):
    """``/v1/responses``."""

    input: str | _Messages
    instructions: str | None = None
    previous_response_id: str | None = None
    tools: Annotated[list[_ResponseTool], Field(max_length=_TOOLS)] = []
    tool_choice: Literal["auto", "none"] = "auto"
    parallel_tool_calls: Literal[True] = True
    max_output_tokens: _Count | None = None
    text: _ResponseText | None = None
    truncation: Literal["disabled"] = "disabled"
    background: Literal[False] = False
    include: Annotated[list[str], Field(max_length=0)] = []
    top_logprobs: _Zero = 0
    stream_options: dict[str, bool] | None = None

    def chat(self, before: Sequence[Mapping[str, Any]]) -> Chat:
        """Return what is asked.

        Args:
            before: the conversation of ``previous_response_id``.
        """
        new = [{"role": "user", "content": self.input}]
        if not isinstance(self.input, str):
            new = _items(self.input)
        messages = [*before, *new]
        if self.instructions:
            messages.insert(0, {"role": "system", "content": self.instructions})
        return Chat(
            messages=messages,
            max_tokens=self.max_output_tokens,
            **self.sampling(),
            **_tools(self.tools, self.tool_choice),
        )


class _AnthropicTool(_Strict):
    name: _Name
    description: str | None = None
    input_schema: dict[str, Any]
    type: Literal["custom"] = "custom"
    cache_control: Any = None

    def shown(self) -> dict[str, Any]:
        """Return the schema as chat templates take it."""
        found: dict[str, Any] = {"name": self.name, "parameters": self.input_schema}
        if self.description is not None:
            found["description"] = self.description
        return {"type": "function", "function": found}


class _AnthropicChoice(_Strict):
    type: Literal["auto", "none"]
    disable_parallel_tool_use: Literal[False] = False


class _NoThinking(_Strict):
    type: Literal["disabled"]


class MessagesBody(Body):
    """``/v1/messages``, Anthropic's."""

    messages: _Messages
    max_tokens: _Count
    system: str | list[dict[str, Any]] | None = None
    stop_sequences: _Stop = []
    tools: Annotated[list[_AnthropicTool], Field(max_length=_TOOLS)] = []
    tool_choice: _AnthropicChoice = _AnthropicChoice(type="auto")
    thinking: _NoThinking | None = None

    def chat(self) -> Chat:
        """Return what is asked."""
        messages: list[dict[str, Any]] = []
        if self.system:
            messages.append({"role": "system", "content": _text(self.system, "system")})
        for i, message in enumerate(self.messages):
            messages += _from_anthropic(message, f"messages.{i}")
        if messages[-1]["role"] == "assistant":
            why = "messages: the beginning of a reply cannot be given; the last must be the user's"
            raise Refused(400, "unsupported_parameter", why, "messages")
        return Chat(
            messages=messages,
            max_tokens=self.max_tokens,
            stop=tuple(self.stop_sequences),
            **self.sampling(),
            **_tools(self.tools, self.tool_choice.type),
        )


_TEXTS = ("text", "input_text", "output_text")
_ROLES = ("system", "user", "assistant", "tool")


def _message(given: Mapping[str, Any], place: str) -> dict[str, Any]:
    """Return an OpenAI message as chat templates take it."""
    role = given.get("role")
    role = "system" if role == "developer" else role
    if role not in _ROLES:
        raise Refused(400, "invalid_value", f"{place}.role: must be one of {_ROLES}", place)
    content = given.get("content")
    if content is None and role == "assistant":
        content = ""  # beside calls
    found: dict[str, Any] = {"role": role, "content": _text(content, place)}
    for name, value in given.items():
        if name in ("role", "content") or not value:
            continue
        if name == "tool_calls" and role == "assistant" and isinstance(value, list):
            found[name] = [_call(call, place) for call in value]
        elif name in ("name", "tool_call_id") and isinstance(value, str):
            found[name] = value
        elif name != "provider_specific_fields":  # a client's own notes
            raise Refused(
                400, "unsupported_parameter", f"{place}.{name}: is not supported", f"{place}.{name}"
            )
    return found


def _dicts(parts: Any) -> list[dict[str, Any]]:
    """Return parts of a content; what is none becomes an empty one, which nothing supports."""
    given = parts if isinstance(parts, list) else [None]
    return [part if isinstance(part, dict) else {} for part in given]


def _text(content: Any, place: str) -> str:
    """Return content that is text, or parts that are."""
    if isinstance(content, str):
        return content
    texts = []
    for part in _dicts(content):
        if part.get("type") not in _TEXTS or not isinstance(part.get("text"), str):
            raise Refused(400, "unsupported_parameter", f"{place}: only text is supported", place)
        texts.append(part["text"])
    return "".join(texts)


def _call(given: Any, place: str) -> dict[str, Any]:
    """Return a call with parsed arguments."""
    try:
        function, id_ = given["function"], given.get("id") or ""
        arguments = function.get("arguments") or "{}"
        if isinstance(arguments, str):
            arguments = from_json(arguments, allow_inf_nan=False)
        name, kind = function["name"], given.get("type", "function")
        if not (isinstance(name, str) and isinstance(arguments, dict) and isinstance(id_, str)):
            raise TypeError
        if kind != "function":
            raise ValueError
    except (TypeError, KeyError, ValueError, AttributeError) as error:
        raise Refused(
            400, "invalid_value", f"{place}.tool_calls: a call needs a name and JSON", place
        ) from error
    return {"id": id_, "type": "function", "function": {"name": name, "arguments": arguments}}


def _items(given: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return messages for items of the Responses API; calls join the message before them."""
    found: list[dict[str, Any]] = []
    for i, item in enumerate(given):
        place, kind = f"input.{i}", item.get("type", "message")
        if kind == "message":
            kept = {k: v for k, v in item.items() if k not in ("type", "id", "status")}
            found.append(_message(kept, place))
        elif kind == "function_call":
            call = _call({"id": item.get("call_id"), "function": item}, place)
            if not found or found[-1]["role"] != "assistant":
                found.append({"role": "assistant", "content": ""})
            found[-1].setdefault("tool_calls", []).append(call)
        elif kind == "function_call_output":
            text = _text(item.get("output"), place)
            found.append({"role": "tool", "content": text, "tool_call_id": item.get("call_id", "")})
        else:
            raise Refused(400, "unsupported_parameter", f"{place}: {kind!r:.80} items", place)
    return found


def _from_anthropic(given: Mapping[str, Any], place: str) -> list[dict[str, Any]]:
    """Return messages for one of Anthropic's, whose blocks may hold several."""
    role, content = given.get("role"), given.get("content")
    if role not in ("user", "assistant") or set(given) - {"role", "content"}:
        raise Refused(400, "invalid_value", f"{place}: needs role and content alone", place)
    if isinstance(content, str):
        return [{"role": role, "content": content}]
    results, texts, calls = [], [], []
    for block in _dicts(content):
        kind = block.get("type")
        if kind == "tool_result" and role == "user":
            text = _text(block.get("content") or "", place)
            id_ = str(block.get("tool_use_id", ""))
            results.append({"role": "tool", "content": text, "tool_call_id": id_})
        elif kind == "tool_use" and role == "assistant":
            function = {"name": block.get("name"), "arguments": block.get("input")}
            calls.append(_call({"id": block.get("id"), "function": function}, place))
        else:
            texts.append(_text([block], place))
    message = {"role": role, "content": "".join(texts), **({"tool_calls": calls} if calls else {})}
    return [*results, *([message] if texts or calls or not results else [])]
