"""Requests and responses, the same over HTTP and WebSocket."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    FiniteFloat,
    InstanceOf,
    TypeAdapter,
    ValidationError,
    WithJsonSchema,
    model_validator,
)

from ..verifiers import Status

Index = Annotated[int, Field(ge=0, lt=2**63, strict=True)]
TaskKey = Annotated[
    Index | Annotated[str, Field(max_length=1000, strict=True)],
    Field(description="A task's number from 0 or, of a data set, its id."),
]
Text = Annotated[InstanceOf[str], WithJsonSchema({"type": "string"})]
"""Any text: as ``str``, halves of surrogate pairs would be refused, and neighbours with them."""

Texts = Annotated[
    list[Text], Field(fail_fast=True)
]  # a body may have millions of errors; the first is enough
TaskKeys = Annotated[list[TaskKey], Field(fail_fast=True)]
Name = Annotated[str, Field(max_length=100, strict=True)]


class _Message(BaseModel):
    """A model without extra fields; of too many only the first are reported."""

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _few(cls, given: Any) -> Any:
        if isinstance(given, dict) and len(given) > _FIELDS:
            raise ValueError(f"{len(given)} fields are more than any message has")
        return given


_FIELDS = 16


def _finite(value: list[Any] | None) -> list[Any] | None:
    try:
        json.dumps(value, allow_nan=False)
    except (ValueError, RecursionError) as error:
        raise ValueError("must be JSON by the standard: without NaN and Infinity") from error
    return value


class Score(_Message):
    """Judge replies, each to a task or against a reference of the client's own."""

    replies: Texts
    tasks: TaskKeys | None = None
    references: Annotated[list[Any] | None, AfterValidator(_finite)] = Field(
        None, description="In place of tasks, if the server allows it."
    )


class Reset(_Message):
    """Begin episodes: ``group_size`` of each task, next to each other."""

    tasks: TaskKeys | None = None
    count: Annotated[int, Field(ge=1, strict=True)] = Field(
        1, description="Without tasks: how many to draw."
    )
    seed: Index | None = Field(
        None, description="Of the draw. One task of a seed is the one that reset(seed=...) puts."
    )
    group_size: Annotated[int, Field(ge=1, strict=True)] = 1


class OneStep(_Message):
    """The policy's turn in an episode."""

    reply: Text
    turn: Index | None = Field(
        None,
        description="The policy's turns before this one. With it a step may be sent again: it is "
        "answered as before, and not taken twice.",
    )
    truncated: bool = Field(False, description="The policy was cut off: the episode ends with it.")


class Step(OneStep):
    """The policy's turn, and in which episode."""

    episode: Name


class Steps(_Message):
    """A turn of the policy in each of several episodes."""

    steps: Annotated[list[Step], Field(fail_fast=True)]
    reset: Reset | None = Field(
        None,
        description="Episodes to start after the steps, returned in the same response: so one "
        "episode after the other costs a single round trip each.",
    )


class Close(_Message):
    """Forget episodes."""

    episodes: Annotated[list[Name], Field(fail_fast=True)]


class Tasks(_Message):
    """Ask for tasks: prompts and ids."""

    tasks: TaskKeys


class SpanGiven(_Message):
    """A run of tokens with one author; log-probabilities stay where they are."""

    author: Literal["model", "environment"]
    ids: Annotated[list[Index], Field(fail_fast=True)]


class VerdictGiven(_Message):
    """The verdict of an episode before the group's rewards."""

    status: Status
    score: FiniteFloat | None
    reason: Text = ""
    extracted: Text | None = None
    parts: Annotated[dict[Name, FiniteFloat | None], Field(max_length=200)] = {}


class EpisodeGiven(_Message):
    """An episode that was played and judged."""

    turns: Annotated[list[Annotated[dict[Name, Text], Field(max_length=20)]], Field(fail_fast=True)]
    verdict: VerdictGiven
    step_rewards: Annotated[list[FiniteFloat | None], Field(fail_fast=True)] = []
    truncated: bool = False
    spans: Annotated[list[SpanGiven], Field(fail_fast=True)] = []


class GroupGiven(_Message):
    """The episodes of one task."""

    task: TaskKey
    episodes: Annotated[list[EpisodeGiven], Field(fail_fast=True)]


class Groups(_Message):
    """Ask for what the group's rewards make of episodes that were judged one by one."""

    groups: Annotated[list[GroupGiven], Field(fail_fast=True)]


Id = Annotated[int | str, Field(description="Given back with the answer.")]
_SocketId = Annotated[
    Annotated[int, Field(strict=True, ge=-(2**63), lt=2**63)]
    | Annotated[str, Field(strict=True, max_length=100)],
    Field(description="Given back with the answer."),
]


class SocketScore(Score):
    """``score`` over WebSocket."""

    op: Literal["score"]
    id: _SocketId


class SocketReset(Reset):
    """``reset`` over WebSocket."""

    op: Literal["reset"]
    id: _SocketId


class SocketSteps(Steps):
    """``step`` over WebSocket."""

    op: Literal["step"]
    id: _SocketId


class SocketClose(Close):
    """``close`` over WebSocket."""

    op: Literal["close"]
    id: _SocketId


class SocketTasks(Tasks):
    """``tasks`` over WebSocket."""

    op: Literal["tasks"]
    id: _SocketId


class SocketGroups(Groups):
    """``groups`` over WebSocket."""

    op: Literal["groups"]
    id: _SocketId


SocketMessage = SocketScore | SocketReset | SocketSteps | SocketClose | SocketTasks | SocketGroups
SOCKET: TypeAdapter[SocketMessage] = TypeAdapter(
    Annotated[SocketMessage, Field(discriminator="op")]
)
_Read = TypeVar("_Read")


def read(kind: TypeAdapter[_Read], text: str | bytes) -> _Read:
    """Return a message; one with halves of surrogate pairs too, which pydantic's parser refuses.

    Raises:
        ValidationError: it is not of that kind.
    """
    try:
        return kind.validate_json(text)
    except ValidationError as error:
        if error.errors(include_url=False, include_input=False)[0]["type"] != "json_invalid":
            raise
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            raise error from None
        return kind.validate_python(value)


class ErrorTold(BaseModel):
    """The reason for an error response."""

    code: str
    message: str
    retry_s: float | None = None


class VerdictTold(BaseModel):
    """A verdict. ``score`` is null exactly if the failure is the server's: never a 0."""

    status: str
    score: float | None
    reason: str = Field(description="Empty unless the server sends reasons.")
    extracted: str | None
    parts: dict[str, float | None]


class GroupsTold(BaseModel):
    """A verdict for each episode of each group, in order."""

    groups: list[list[VerdictTold]]


class TaskTold(BaseModel):
    """A task, without its reference."""

    id: str
    index: int | None
    messages: list[dict[str, Any]]
    metadata: dict[str, Any]


class Verdicts(BaseModel):
    """One verdict for each reply, in order."""

    verdicts: list[VerdictTold]


class Begun(BaseModel):
    """An episode that has begun."""

    episode: str
    task: TaskTold


class Episodes(BaseModel):
    """Episodes that have begun; the copies of a task next to each other."""

    episodes: list[Begun]


class Outcome(BaseModel):
    """The result of a step, or ``error`` in its place."""

    episode: str
    turn: int | None = None
    messages: list[dict[str, Any]] = []
    reward: float | None = Field(None, description="The environment's own, of this turn.")
    done: bool = False
    truncated: bool = False
    verdict: VerdictTold | None = Field(None, description="Where the episode is over.")
    error: dict[str, Any] | None = None


class Outcomes(BaseModel):
    """One outcome for each step, in order; and the episodes that were begun with it."""

    outcomes: list[Outcome]
    episodes: list[Begun] | None = Field(None, description="Where the message has a reset.")
    not_begun: ErrorTold | None = Field(
        None, description="In place of episodes: why there are none."
    )


class TasksTold(BaseModel):
    """Tasks, in order."""

    tasks: list[TaskTold]


class Closed(BaseModel):
    """The number of episodes closed."""

    closed: int


class Described(BaseModel):
    """The served environment and its limits."""

    name: str
    sha256: str = Field(description="Of tasks, verifiers and version; ask for it by Assay-Serves.")
    protocol: int
    size: int | None
    max_turns: int
    lone_replies: bool = Field(description="Whether /v1/score judges replies to its tasks.")
    group_rubric: bool
    score_range: tuple[float, float] = Field(description="Of /v1/score: lowest and highest score.")
    tools: list[dict[str, Any]] | None = Field(description="Schemas, if policies call tools.")
    references: bool
    reasons: bool
    version: str
    limits: dict[str, float]


class Failed(BaseModel):
    """A request that was not answered."""

    error: ErrorTold
