"""TRL's environment_factory: a thin class whose public methods are an environment's tools."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, get_type_hints

from ...verifiers import Status, Verdict
from ..episode import Episode
from ..policy import Completion
from ..state import State, last_text
from ..text_env import TextEnv
from ..tools.calls import written_call
from .portable import Portable

_RESERVED = ("reset", "get_reward")
_RESPONSE = re.compile(r"<tool_response>\n(.*)\n</tool_response>", re.DOTALL)


class ToolEpisode:
    """One episode after another, as TRL wants them: ``reset``, and the tools as methods.

    TRL shows the model every public method of the class, so there is no other. It makes
    an object once and resets it for ever. Each call of a tool is a turn of the environment's,
    in the form that environments read: a call in ``<tool_call>`` tags.
    """

    def __init__(self, environment: Portable) -> None:
        self._environment = environment
        self._env: TextEnv = environment.at()
        self._state: State | None = None

    def reset(self, **columns: Any) -> None:
        """Begin the episode of a row of the data set."""
        (task,) = named_tasks([columns.get("assay_task")])
        self._env = self._environment.at(columns.get("assay_split"))
        self._state = self._env.begin(self._env.task(task))

    def _call(self, name: str, arguments: Mapping[str, Any]) -> str:
        state = self._state
        if state is None or state.ended:
            raise RuntimeError("the episode is over: no tool answers any more")
        reply = written_call(name, arguments)
        before = len(state.turns) + 1
        try:
            self._env.advance([state], [Completion(reply)])
        except Exception as error:  # TRL would blame the model and go on
            state.ended = "done"
            state.verdict = Verdict.fault(
                Status.VERIFIER_ERROR, f"tool {name} raised {type(error).__name__}: {error}"
            )
            raise
        if len(state.turns) == before:
            return "The episode is over."
        answer = last_text(state)
        tagged = _RESPONSE.fullmatch(answer)  # TRL's chat template has tags of its own
        return tagged[1] if tagged else answer

    def _judged(self, completion: Sequence[Mapping[str, Any]] = ()) -> Episode:
        """Return the judged record of the episode; ``completion`` has the text of its last turn."""
        state = self._state
        if state is None:
            raise RuntimeError("there is no episode to judge: reset begins one")
        turns = [m for m in completion if m.get("role") == "assistant"]
        if turns and not state.ended:
            cut = bool(turns[-1].get("tool_calls"))  # TRL has left off before it made them
            words = Completion(text_of(turns[-1]), "length" if cut else "stop")
            self._env.advance([state], [words])
        state.ended = state.ended or "truncated"
        (verdict,) = self._env.verdicts([state])
        return state.episode(verdict)


def named_tasks(column: Sequence[Any] | None) -> list[int]:
    """Return the column of the rows' tasks, or raise if a row names none."""
    remedy = "train on the data set of the TRLSpec that this environment is of"
    tasks = [] if column is None else list(column)
    # A join turns a column with gaps into floats; NaN is then a gap.
    if column is None or any(task is None or task != task for task in tasks):
        raise ValueError(
            f"a row names its task in the column 'assay_task', which is missing: {remedy}"
        )
    for task in tasks:
        # Of tasks without end an index has 62 bits, which a float rounds to another task's.
        exact = not isinstance(task, float) or (task.is_integer() and abs(task) < 2**53)
        if not exact:
            raise ValueError(f"the column 'assay_task' holds whole numbers, got {task!r}: {remedy}")
    return [int(task) for task in tasks]


def judged(
    episodes: Sequence[Any], completions: Sequence[str | Sequence[Mapping[str, Any]]]
) -> list[Episode]:
    """Judge the episodes that TRL played with tools."""
    pairs = zip(episodes, completions, strict=True)
    return [e._judged(() if isinstance(c, str) else c) for e, c in pairs]


class ToolEnvironments:
    """TRL's environment_factory: each call gives one more :class:`ToolEpisode`.

    It pickles as the environment's id and arguments.

    Args:
        environment: one with tools.
        own_reward: give the class a ``get_reward``, which judges what the tools have done;
            the words of the last turn TRL does not tell it.
    """

    def __init__(self, environment: Portable, *, own_reward: bool = False) -> None:
        self.environment, self.own_reward = environment, own_reward
        self._class: type[ToolEpisode] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_class": None}  # made anew in each process

    def __call__(self) -> ToolEpisode:
        """Make an environment for TRL.

        Raises:
            TypeError: the environment has no tools, or one that TRL cannot show to a model.
        """
        if self._class is None:
            self._class = tool_class(self.environment, own_reward=self.own_reward)
        return self._class(self.environment)


def tool_class(environment: Portable, *, own_reward: bool = False) -> type[ToolEpisode]:
    """Make the class of an environment's episodes: named by its id, with a method for each tool.

    TRL names a column of rewards by it, so each id has its own.

    Raises:
        TypeError: the environment has no tools, or one that TRL cannot show to a model.
    """
    env = environment.at()
    tools: Mapping[str, Any] | None = getattr(env, "tools", None)
    if not tools:
        raise TypeError(f"{environment.env_id} has no tools: train it in another mode")
    ways = getattr(env, "ways", ("tags",))
    if "tags" not in ways:
        raise TypeError(
            f"{environment.env_id} reads calls as {', '.join(ways)}, and TRL's are handed to it in "
            "<tool_call> tags: make it with the way 'tags' too, or train it as mode='turns'"
        )
    methods = {name: _method(name, tool) for name, tool in tools.items()}
    own = {"get_reward": _get_reward} if own_reward else {}
    about = f"Episodes of {environment.env_id}."
    return type(environment.name, (ToolEpisode,), {"__doc__": about, **methods, **own})


def _get_reward(self: ToolEpisode) -> float | None:
    """Return the rubric's total, or None after an infrastructure failure."""
    return self._judged().reward


def _method(name: str, tool: Any) -> Callable[..., str]:
    """Make a method of a tool with its name, types and docstring, from which TRL makes a schema."""
    function = getattr(tool, "function", tool)
    if name in _RESERVED or not name.isidentifier() or name.startswith("_"):
        raise TypeError(f"TRL can have no tool called {name!r}: rename it")
    if not callable(function):
        raise TypeError(f"TRL takes Python functions, and {name!r} is a tool of an MCP server")
    about = inspect.getdoc(function) or ""
    hints = get_type_hints(function)
    shown = [p for p in inspect.signature(function).parameters.values() if _shown(p, hints)]
    for parameter in shown:
        if parameter.name not in hints or not re.search(rf"(?m)^\s*{parameter.name}\b.*:", about):
            raise TypeError(
                f"tool {name!r}: TRL describes each argument to the model, so "
                f"{parameter.name!r} needs a type, and a line under 'Args:' in the docstring"
            )
    if not about:
        raise TypeError(f"tool {name!r} needs a docstring: it describes the tool to the model")

    def call(self: ToolEpisode, **arguments: Any) -> str:
        return self._call(name, arguments)

    call.__name__, call.__qualname__, call.__doc__ = name, name, about
    call.__annotations__ = {p.name: hints[p.name] for p in shown} | {"return": str}
    first = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    keywords = [
        p.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=hints[p.name]) for p in shown
    ]
    call.__signature__ = inspect.Signature(  # type: ignore[attr-defined]  # functions may have one
        [first, *keywords], return_annotation=str
    )
    return call


def _shown(parameter: inspect.Parameter, hints: Mapping[str, Any]) -> bool:
    """Return whether the model fills a parameter: not ``self``, nor the episode's state."""
    if parameter.name in ("self", "cls"):
        return parameter.name in hints
    return hints.get(parameter.name) is not State


def text_of(message: Mapping[str, Any]) -> str:
    """Return a message's text, empty if it has none, such as a lone tool call."""
    content = message.get("content")
    parts = content if isinstance(content, list) else [{"text": content}]
    texts = [part.get("text") for part in parts if isinstance(part, Mapping)]
    return "".join(text for text in texts if isinstance(text, str))


def reply_of(completion: str | Sequence[Mapping[str, Any]]) -> str:
    """Return the text of the policy's last turn, empty if there is none.

    What a tool or the environment said is not its answer.
    """
    if isinstance(completion, str):
        return completion
    messages = completion if isinstance(completion, Sequence) else ()
    turns = [m for m in messages if isinstance(m, Mapping) and m.get("role") == "assistant"]
    return text_of(turns[-1]) if turns else ""
