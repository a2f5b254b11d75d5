"""What clients send and get: the same words over HTTP and over WebSocket."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

Index = Annotated[int, Field(ge=0, lt=2**63, strict=True)]
TaskKey = Annotated[
    Index | Annotated[str, Field(max_length=1000, strict=True)],
    Field(description="A task's number from 0 or, of a data set, its id."),
]
Text = Annotated[str, Field(strict=True)]


class _Message(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Score(_Message):
    """Judge replies, each to a task or against a reference of the client's own."""

    replies: list[Text]
    tasks: list[TaskKey] | None = None
    references: list[Any] | None = Field(
        None, description="In place of tasks; only where the server allows it."
    )


class Reset(_Message):
    """Begin episodes: ``group_size`` of each task, next to each other."""

    tasks: list[TaskKey] | None = None
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

    episode: Annotated[str, Field(max_length=100, strict=True)]


class Steps(_Message):
    """A turn of the policy in each of several episodes."""

    steps: list[Step]


class Close(_Message):
    """Forget episodes."""

    episodes: list[Annotated[str, Field(max_length=100, strict=True)]]


class Tasks(_Message):
    """Ask for tasks: prompts and ids."""

    tasks: list[TaskKey]


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


SocketMessage = SocketScore | SocketReset | SocketSteps | SocketClose | SocketTasks
SOCKET: TypeAdapter[SocketMessage] = TypeAdapter(
    Annotated[SocketMessage, Field(discriminator="op")]
)


class VerdictTold(BaseModel):
    """A finding. ``score`` is null exactly where the fault is the server's: never a 0."""

    status: str
    score: float | None
    reason: str = Field(description="Empty unless the server tells reasons.")
    extracted: str | None
    parts: dict[str, float | None]


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
    """What came of a step; ``error`` in its place where there was none."""

    episode: str
    turn: int | None = None
    messages: list[dict[str, Any]] = []
    reward: float | None = Field(None, description="The environment's own, of this turn.")
    done: bool = False
    truncated: bool = False
    verdict: VerdictTold | None = Field(None, description="Where the episode is over.")
    error: dict[str, Any] | None = None


class Outcomes(BaseModel):
    """One outcome for each step, in order."""

    outcomes: list[Outcome]


class TasksTold(BaseModel):
    """Tasks, in order."""

    tasks: list[TaskTold]


class Closed(BaseModel):
    """How many episodes there were to forget."""

    closed: int


class Described(BaseModel):
    """What is served, and its limits."""

    name: str
    size: int | None
    max_turns: int
    group_rubric: bool
    references: bool
    reasons: bool
    version: str
    limits: dict[str, float]


class ErrorTold(BaseModel):
    """Why a request was not answered."""

    code: str
    message: str
    retry_s: float | None = None


class Failed(BaseModel):
    """A request that was not answered."""

    error: ErrorTold
