"""Episodes in which the policy may call tools before it answers."""

from __future__ import annotations

import copy
from collections.abc import Awaitable, Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, SupportsFloat

from ...sandbox import BadTests, Sandbox, SandboxError
from ...verifiers import Status, Verdict, Verifier
from ...verifiers.exits import reraise_termination
from ...verifiers.form.call import Call
from ...verifiers.form.json_text import NotJson
from ...verifiers.text.words import replace_surrogates
from ..datasets.source import Source
from ..state import State, Turn
from ..task import Message, Task
from ..text_env import TextEnv
from .calls import checked_ways, read_calls
from .messages import as_text, hermes, prompted, shortened
from .signature import BadTool
from .tool import Answer, Tool, ToolError, Toolset, Work, tools_of


@dataclass(slots=True)
class ToolData:
    """The state of a :class:`ToolEnv` in an episode.

    Attributes:
        toolsets: by their position among the environment's tools; ``None`` for plain functions.
        calls: how many calls were answered, failed ones too.
        answer: what is judged, if a tool gave it.
    """

    toolsets: tuple[Toolset | None, ...]
    calls: int = 0
    answer: str | None = None


class ToolEnv(TextEnv):
    """Put a task, run the tools that the policy calls, and judge the reply that calls none.

    Observation: the prompt, with a system message with the tools; then their results.
    Action: a reply. With calls in it (Hermes' and Qwen's tags by default), they are made in their
    order and answered in messages of role ``tool``. Without, it is the answer.
    Reward: the rubric's total for the answer.
    End: with the answer; after ``max_turns`` turns ``truncated``, scored as it stands.

    A call that cannot be parsed, of an unknown tool or with wrong arguments, and a
    :class:`~assay.envs.tools.ToolError`, become messages to the policy, which may try again. Any
    other exception of a tool, and a failure of the sandbox, end the episode without a score. So a
    tool must report wrong arguments by ToolError.

    Args:
        source: the source of tasks.
        rubric: what judges the answer; a lone verifier will do.
        tools: functions with types and a Google docstring, and toolsets. A parameter of type
            State is hidden from the policy and gets the episode.
        max_turns: of the policy's, in one episode.
        max_calls: in one turn; a turn with more makes none.
        longest: characters of one tool's answer; of longer ones the middle is left out.
        tell: ``"system"`` puts the schemas into a system message; ``"template"`` leaves that to
            a chat template that is given :attr:`schemas` (``info["tools"]``).
        role: of the messages with answers: ``"user"`` for chat templates without ``tool``; they
            then have ``<tool_response>`` tags.
        ways: how calls may be written, as for :class:`~assay.verifiers.ToolCall`.
        sandbox: where tools' programs run; ``None`` opens one on first use.
        name: what to call it in errors.
        render_mode: ``"ansi"`` or ``None``.

    Attributes:
        tools: by name.

    Raises:
        BadTool: a function cannot be a tool; the message says what to do.
        ValueError: a row's reference cannot be used, or an option is out of range.
    """

    def __init__(
        self,
        source: Source,
        rubric: Verifier,
        *,
        tools: Sequence[Callable[..., Any] | Toolset],
        max_turns: int = 10,
        max_calls: int = 8,
        longest: int = 8000,
        tell: Literal["system", "template"] = "system",
        role: Literal["tool", "user"] = "tool",
        ways: Sequence[str] = ("tags",),
        sandbox: Sandbox | None = None,
        name: str = "",
        render_mode: str | None = None,
    ) -> None:
        if tell not in ("system", "template"):
            raise ValueError(f"tell must be 'system' or 'template', got {tell!r}")
        if role not in ("tool", "user"):
            raise ValueError(f"role must be 'tool' or 'user', got {role!r}")
        if not 1 <= max_calls <= 32:
            raise ValueError(f"max_calls must be from 1 to 32, got {max_calls}")
        if longest < 100:
            raise ValueError(f"longest must be at least 100 characters, got {longest}")
        self._given = tuple(tools)
        self.tools = tools_of(self._given)
        if not self.tools:
            raise BadTool("tools is empty: give a function or a Toolset, or make a TextEnv")
        self.max_calls, self.longest, self.role = max_calls, longest, role
        self.ways, self.sandbox = checked_ways(ways), sandbox
        self._own: Sandbox | None = None
        if tell == "system":
            source = prompted(source, hermes(self.schemas))
        super().__init__(source, rubric, name=name, max_turns=max_turns, render_mode=render_mode)

    @property
    def schemas(self) -> list[dict[str, Any]]:
        """The tools' JSON schemas, in the form of a chat template's ``tools``."""
        return [dict(tool.schema) for tool in self.tools.values()]

    def begin(self, task: Task) -> State:
        """Begin an episode with its own toolsets."""
        kept = tuple(each if isinstance(each, Toolset) else None for each in self._given)
        try:  # together: what they share they share in the copies
            data = ToolData(copy.deepcopy(kept))
        except Exception as error:
            names = ", ".join(type(each).__name__ for each in kept if each is not None)
            raise BadTool(
                f"each episode plays with copies of {names}, and deepcopy raised "
                f"{type(error).__name__}: {error}. Keep what cannot be copied in a module, or "
                "write __deepcopy__"
            ) from error
        for toolset in data.toolsets:
            if toolset is not None:
                toolset.begin(task)
        return State(task, data=data)

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Put a task, as for a TextEnv; ``info["tools"]`` has the schemas."""
        text, info = super().reset(seed=seed, options=options)
        return text, info | {"tools": self.schemas}

    def step(self, action: str) -> tuple[str, SupportsFloat, bool, bool, dict[str, Any]]:
        """Take the policy's turn, as for a TextEnv; ``info["tools"]`` has the schemas."""
        text, reward, terminated, truncated, info = super().step(action)
        return text, reward, terminated, truncated, info | {"tools": self.schemas}

    def respond(self, state: State, reply: str) -> Turn:
        """Make the calls of a reply, or end the episode if it has none."""
        return self.respond_many([state], [reply])[0]

    def respond_many(self, states: Sequence[State], replies: Sequence[str]) -> list[Turn]:
        """Make the calls of all replies; what needs the sandbox in one batch over its slots."""
        turns: list[Turn] = [Turn()] * len(states)
        playing = {
            at: self._turn(state, reply)
            for at, (state, reply) in enumerate(zip(states, replies, strict=True))
        }
        found: dict[int, Any] = dict.fromkeys(playing)
        while playing:
            waiting: dict[int, Work] = {}
            for at, turn in list(playing.items()):
                outcome = found[at]
                try:
                    if isinstance(outcome, _Raised):
                        waiting[at] = turn.throw(outcome.error)
                    else:
                        waiting[at] = turn.send(outcome)
                except StopIteration as end:
                    turns[at] = end.value
                    del playing[at]
            if waiting:
                found = dict(zip(waiting, self._done(list(waiting.values())), strict=True))
        return turns

    def answer(self, state: State) -> str:
        """Return what the rubric judges: the last reply, or a tool's :class:`Answer`.

        A reply that makes calls, or tries to, is no answer, whatever its arguments hold.
        """
        if state.data.answer is not None:
            return str(state.data.answer)
        try:
            calls = read_calls(state.reply, self.tools, self.ways, self.schemas)
        except NotJson:
            return ""
        return "" if calls else state.reply

    # -- what a subclass may change ------------------------------------------------------------

    def answered(self, state: State, reply: str) -> Turn:
        """Handle a reply without calls: by default it is the answer."""
        return Turn.end()

    def misread(self, state: State, fault: str) -> Turn:
        """Handle calls that cannot be parsed or are too many: by default with a message."""
        return Turn((self._message(f"error: {fault}"),))

    def misfit(self, state: State, call: Call, fault: str) -> str | Turn:
        """Handle a call of an unknown tool or with wrong arguments: by default with a message."""
        return f"error: {fault}"

    # -- one turn ------------------------------------------------------------------------------

    def _turn(self, state: State, reply: str) -> Generator[Work, Any, Turn]:
        """Play one turn as a generator: it yields work for the sandbox and receives the results."""
        try:
            calls = read_calls(reply, self.tools, self.ways, self.schemas)
        except NotJson as fault:
            return self.misread(state, f"the call cannot be read: {fault}")
        if not calls:
            return self.answered(state, reply)
        if len(calls) > self.max_calls:
            return self.misread(
                state, f"{len(calls)} calls in one turn, at most {self.max_calls}: none was made"
            )
        try:
            return (yield from self._answers(state, calls))
        except SandboxError as error:
            return _fault(Status.SANDBOX_ERROR, str(error))
        except BadTests as error:
            return _fault(Status.BAD_GOLD, str(error))
        except (Exception, SystemExit) as error:  # a bug in a tool is ours; the cause is kept
            reraise_termination(error)
            return _fault(Status.VERIFIER_ERROR, f"{type(error).__name__}: {error}")

    def _answers(self, state: State, calls: Sequence[Call]) -> Generator[Work, Any, Turn]:
        said: list[Message] = []
        rewards: list[float] = []
        for call in calls:
            state.data.calls += 1
            answer = yield from self._answer(state, call)
            if isinstance(answer, Answer):
                state.data.answer = answer.text
                answer = Turn.end()
            if isinstance(answer, Turn):
                said.extend(answer.messages)
                rewards += [] if answer.reward is None else [answer.reward]
                if answer.done or answer.verdict is not None:
                    return Turn(tuple(said), True, _sum(rewards), answer.verdict)
            else:
                said.append(self._message(as_text(answer), call.name))
        return Turn(tuple(said), reward=_sum(rewards))

    def _answer(self, state: State, call: Call) -> Generator[Work, Any, Any]:
        tool = self.tools.get(call.name)
        try:
            if tool is None:
                known = ", ".join(self.tools)
                raise ToolError(f"there is no tool {call.name!r:.80}; there are {known}")
            arguments = tool.fitted(call.arguments)
        except ToolError as error:
            return self.misfit(state, call, str(error))
        try:
            answer = tool.call(state, state.data.toolsets, arguments)
            while isinstance(answer, Work):
                answer = answer.finish((yield answer))
        except ToolError as error:
            return f"error: {error}"
        if isinstance(answer, Awaitable | Iterator):
            raise TypeError(
                f"{call.name} gave a {type(answer).__name__}: a tool returns its result"
            )
        return answer

    def _message(self, text: str, tool: str = "") -> Message:
        text = replace_surrogates(shortened(text, self.longest))
        if self.role == "user":
            return {"role": "user", "content": f"<tool_response>\n{text}\n</tool_response>"}
        named = {"name": tool} if tool in self.tools else {}
        return {"role": "tool", **named, "content": text}

    # -- the sandbox ---------------------------------------------------------------------------

    def _done(self, work: Sequence[Work]) -> list[Any]:
        """Return the sandbox's result for each; an exception stays with its episode."""
        box = self._sandbox()

        def do(each: Work) -> Any:
            try:
                return each.run(box)
            except (Exception, SystemExit) as error:
                return _Raised(error)

        try:
            return list(box.map(do, work))
        except SandboxError as error:  # no host says how many slots there are
            return [_Raised(error)] * len(work)

    def _sandbox(self) -> Sandbox:
        if self.sandbox is not None:
            return self.sandbox
        if self._own is None:
            self._own = Sandbox()
        return self._own

    def close(self) -> None:
        """Give back what rubric and tools hold."""
        super().close()
        own, self._own = self._own, None
        if own is not None:
            own.close()


@dataclass(frozen=True)
class _Raised:
    """An exception, on its way to the episode that it belongs to."""

    error: BaseException


def _sum(rewards: Sequence[float]) -> float | None:
    return sum(rewards) if rewards else None


def _fault(status: Status, reason: str) -> Turn:
    return Turn.end(Verdict.fault(status, reason))


__all__ = ["Tool", "ToolData", "ToolEnv"]
