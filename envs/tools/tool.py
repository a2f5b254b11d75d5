"""A tool: a typed Python function that a policy may call, and what such a function may give."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ...sandbox import Sandbox
from ..state import State
from ..task import Task
from .arguments import Misfit, fitted
from .signature import BadTool, described, hidden_parameter, parameters

_HIDDEN = (State,)


class ToolError(Exception):
    """Raised by a tool to report the policy's mistake, such as a missing file."""


@dataclass(frozen=True)
class Work:
    """Returned by a tool instead of a result, if it needs the sandbox.

    The work of all episodes that are waiting is done together, over all slots.

    Attributes:
        run: called in another thread with the environment's sandbox. It touches nothing else.
        finish: called with what ``run`` gave; its answer is the tool's, or more work. By default
            what ``run`` gave is the answer.
    """

    run: Callable[[Sandbox], Any]
    finish: Callable[[Any], Any] = lambda found: found


@dataclass(frozen=True)
class Answer:
    """Returned by a tool to end the episode: the rubric judges this text, not the reply.

    Attributes:
        text: the answer.
    """

    text: str


@dataclass(frozen=True)
class Tool:
    """A function with its schema for a policy.

    Attributes:
        function: a plain function, or a method as its class has it.
        owner: position of the toolset it belongs to; ``None`` for a plain function.
        schema: its JSON schema, in the form of OpenAI's and ``transformers``' tools.
    """

    function: Callable[..., Any]
    owner: int | None = None
    schema: Mapping[str, Any] = field(init=False)
    _takes: Mapping[str, tuple[Any, bool]] = field(init=False, repr=False)
    _state: str | None = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if inspect.iscoroutinefunction(self.function):
            raise BadTool(f"{self.name} is a coroutine: tools are called in turn, so use def")
        object.__setattr__(self, "schema", described(self.function, _HIDDEN))
        object.__setattr__(self, "_takes", parameters(self.function, _HIDDEN))
        object.__setattr__(self, "_state", hidden_parameter(self.function, State))

    @property
    def name(self) -> str:
        """The name by which it is called."""
        return self.function.__name__

    def fitted(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Convert arguments to the function's types.

        Args:
            arguments: plain JSON, by name.

        Raises:
            ToolError: one is unknown, missing or of another type.
        """
        takes = self._takes
        unknown = [name for name in arguments if name not in takes]
        if unknown:
            known = f"it takes {', '.join(takes)}" if takes else "it takes none"
            raise ToolError(f"{self.name} takes no argument {unknown[0]!r:.80}: {known}")
        missing = [n for n, (_, optional) in takes.items() if not optional and n not in arguments]
        if missing:
            raise ToolError(f"{self.name} needs the argument {missing[0]!r}")
        try:
            return {n: fitted(takes[n][0], value, n) for n, value in arguments.items()}
        except Misfit as misfit:
            raise ToolError(f"{self.name}: {misfit}") from misfit

    def call(self, state: State, toolsets: tuple[Any, ...], arguments: Mapping[str, Any]) -> Any:
        """Call the function for an episode.

        Args:
            state: the episode; the function gets it if it has a parameter of this type.
            toolsets: the episode's own.
            arguments: as :meth:`fitted` gives them.
        """
        given = dict(arguments)
        if self._state is not None:
            given[self._state] = state
        if self.owner is None:
            return self.function(**given)
        return self.function(toolsets[self.owner], **given)


class Toolset:
    """Tools that share what an episode has done so far: derive from it and write methods.

    Its public methods are the tools. An environment keeps one object as it was made, and each
    episode plays with a copy of its own (toolsets that share an object share it in the copies
    too); so all that belongs to an episode is in ``self``, and can be copied by ``deepcopy``.
    """

    def begin(self, task: Task) -> None:
        """Prepare the copy for a task; by default there is nothing to do. It is no tool."""

    def _tools(self, position: int) -> list[Tool]:
        """Return the tools of the toolset at this position of an environment's."""
        return [Tool(function, position) for function in self.functions()]

    @classmethod
    def functions(cls) -> list[Callable[..., Any]]:
        """Return the methods that are tools in order of definition, bases first."""
        found: dict[str, Callable[..., Any]] = {}
        for kind in reversed(cls.__mro__):
            for name, member in vars(kind).items():
                if name.startswith("_") or hasattr(Toolset, name):
                    continue
                if inspect.isfunction(member):
                    found[name] = member
                elif name in found:
                    del found[name]
        return list(found.values())


def tools_of(given: tuple[Callable[..., Any] | Toolset, ...]) -> dict[str, Tool]:
    """Return tools by name.

    Args:
        given: functions and toolsets.

    Raises:
        BadTool: one cannot be a tool, or two have one name.
    """
    found: dict[str, Tool] = {}
    for position, each in enumerate(given):
        for tool in _tools(each, position):
            if tool.name in found:
                raise BadTool(f"two tools are called {tool.name!r}: rename one")
            found[tool.name] = tool
    return found


def _tools(given: Callable[..., Any] | Toolset, position: int) -> list[Tool]:
    if isinstance(given, Toolset):
        tools = given._tools(position)
        if not tools:
            raise BadTool(f"{type(given).__name__} has no tools: give it public methods")
        return tools
    if isinstance(given, type):
        raise BadTool(f"{given.__name__} is a class: give an object, {given.__name__}()")
    return [Tool(given)]
