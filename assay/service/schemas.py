"""Requests and responses, the same over HTTP and WebSocket, as pydantic models."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal, NotRequired, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    FiniteFloat,
    InstanceOf,
    WithJsonSchema,
    model_validator,
)
from typing_extensions import TypedDict

from ..verifiers import Status

PROTOCOL = 1
"""Version of the messages; client and server must agree."""

HEADER = "assay-serves"
"""Header with the hash that a client expects; the server refuses another one."""

_T = TypeVar("_T")
Many = Annotated[list[_T], Field(fail_fast=True)]  # a body may have millions of errors
Index = Annotated[int, Field(ge=0, lt=2**63, strict=True)]
Count = Annotated[int, Field(ge=1, strict=True)]
Name = Annotated[str, Field(max_length=100, strict=True)]
TaskKey = Annotated[
    Index | Annotated[str, Field(max_length=1000, strict=True)],
    Field(description="A task's number from 0 or, of a data set, its id."),
]
Text = Annotated[InstanceOf[str], WithJsonSchema({"type": "string"})]
"""Any text: as ``str``, halves of surrogate pairs would be refused, and neighbours with them."""

_FIELDS = 16


class Message(BaseModel):
    """A model without extra fields; of too many only the first are reported."""

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _few(cls, given: Any) -> Any:
        if isinstance(given, dict) and len(given) > _FIELDS:
            raise ValueError(f"{len(given)} fields are more than any message has")
        return given


def _finite(value: list[Any] | None) -> list[Any] | None:
    try:
        json.dumps(value, allow_nan=False)
    except (ValueError, RecursionError) as error:
        raise ValueError("must be JSON by the standard: without NaN and Infinity") from error
    return value


class Score(Message):
    """Judge replies, each to a task or against a reference of the client's own."""

    replies: Many[Text]
    tasks: Many[TaskKey] | None = None
    references: Annotated[list[Any] | None, AfterValidator(_finite)] = Field(
        None, description="In place of tasks, if the server allows it."
    )


class Reset(Message):
    """Begin episodes: ``group_size`` of each task, next to each other."""

    tasks: Many[TaskKey] | None = None
    count: Count = Field(1, description="Without tasks: how many to draw.")
    seed: Index | None = Field(
        None, description="Of the draw. One task of a seed is the one that reset(seed=...) puts."
    )
    group_size: Count = 1


class OneStep(Message):
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


class Steps(Message):
    """A turn of the policy in each of several episodes."""

    steps: Many[Step]
    reset: Reset | None = Field(
        None,
        description="Episodes to start after the steps, returned in the same response: so one "
        "episode after the other costs a single round trip each.",
    )


class Close(Message):
    """Forget episodes."""

    episodes: Many[Name]


class Tasks(Message):
    """Ask for tasks: prompts and ids."""

    tasks: Many[TaskKey]


class SpanGiven(Message):
    """A run of tokens with one author; log-probabilities stay where they are."""

    author: Literal["model", "environment"]
    ids: Many[Index]


class VerdictGiven(Message):
    """The verdict of an episode before the group's rewards."""

    status: Status
    score: FiniteFloat | None
    reason: Text = ""
    extracted: Text | None = None
    parts: Annotated[dict[Name, FiniteFloat | None], Field(max_length=200)] = {}


class EpisodeGiven(Message):
    """An episode that was played and judged."""

    turns: Many[Annotated[dict[Name, Text], Field(max_length=20)]]
    verdict: VerdictGiven
    step_rewards: Many[FiniteFloat | None] = []
    truncated: bool = False
    spans: Many[SpanGiven] = []


class GroupGiven(Message):
    """The episodes of one task."""

    task: TaskKey
    episodes: Many[EpisodeGiven]


class Groups(Message):
    """Ask for what the group's rewards make of episodes that were judged one by one."""

    groups: Many[GroupGiven]


class Envelope(BaseModel):
    """What a WebSocket message has besides the fields of its ``op``."""

    op: Literal["score", "reset", "step", "close", "tasks", "groups"]
    id: (
        Annotated[int, Field(strict=True, ge=-(2**63), lt=2**63)]
        | Annotated[str, Field(strict=True, max_length=100)]
    )


OPS: dict[str, type[Message]] = {
    "score": Score, "reset": Reset, "step": Steps, "close": Close, "tasks": Tasks, "groups": Groups
}  # fmt: skip


class ErrorBody(TypedDict):
    """The reason for an error response."""

    code: str
    message: str
    retry_s: NotRequired[float]


class Failed(TypedDict):
    """A request that was not answered."""

    error: ErrorBody


class VerdictBody(TypedDict):
    """A verdict. ``score`` is null exactly if the failure is the server's: never a 0."""

    status: str
    score: float | None
    reason: Annotated[str, Field(description="Empty unless the server sends reasons.")]
    extracted: str | None
    parts: dict[str, float | None]


class Verdicts(TypedDict):
    """One verdict for each reply, in order."""

    verdicts: list[VerdictBody]


class GroupsBody(TypedDict):
    """A verdict for each episode of each group, in order."""

    groups: list[list[VerdictBody]]


class TaskBody(TypedDict):
    """A task, without its reference."""

    id: str
    index: int | None
    messages: list[dict[str, Any]]
    metadata: dict[str, Any]


class TasksBody(TypedDict):
    """Tasks, in order."""

    tasks: list[TaskBody]


class Begun(TypedDict):
    """An episode that has begun."""

    episode: str
    task: TaskBody


class Episodes(TypedDict):
    """Episodes that have begun; the copies of a task next to each other."""

    episodes: list[Begun]


class Outcome(TypedDict, total=False):
    """The result of a step, or ``error`` in its place."""

    episode: str
    turn: int
    messages: list[dict[str, Any]]
    reward: Annotated[float | None, Field(description="The environment's own, of this turn.")]
    done: bool
    truncated: bool
    verdict: Annotated[VerdictBody | None, Field(description="If the episode is over.")]
    error: ErrorBody


class Outcomes(TypedDict):
    """One outcome for each step, in order; and the episodes that were begun with it."""

    outcomes: list[Outcome]
    episodes: NotRequired[Annotated[list[Begun], Field(description="If the message has a reset.")]]
    not_begun: NotRequired[
        Annotated[ErrorBody, Field(description="In place of episodes: why there are none.")]
    ]


class Closed(TypedDict):
    """The number of episodes closed."""

    closed: int


class Described(TypedDict):
    """The served environment and its limits."""

    name: str
    sha256: Annotated[str, Field(description="Of tasks, verifiers, version; see Assay-Serves.")]
    protocol: int
    size: int | None
    split: str
    max_turns: int
    lone_replies: Annotated[bool, Field(description="Whether /v1/score judges its tasks.")]
    group_rubric: bool
    score_range: tuple[float, float]
    tools: Annotated[list[dict[str, Any]] | None, Field(description="Schemas, if any.")]
    references: bool
    reasons: bool
    version: str
    limits: dict[str, float]
