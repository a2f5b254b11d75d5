"""PrimeIntellect's ``verifiers``: its tasksets as environments, and ours as its tasksets."""

from __future__ import annotations

import asyncio
import inspect
import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Any

from ..envs import Rows, Task, TextEnv
from ..sandbox.extras import missing_package
from ..verifiers import Status, Verdict, Verifier
from ..verifiers.text.words import replace_surrogates
from ..verifiers.verifier import same_length
from .judging import judge_replies, rows_of, verifier_of


def from_verifiers(
    taskset: Any,
    *,
    size: int | None = None,
    highest: float | None = None,
    render_mode: str | None = None,
) -> TextEnv:
    """Make a one-turn environment of a taskset of PrimeIntellect's ``verifiers`` (its v1 API).

    Its own rewards judge: the reply is put into a trace, and the task scores that. The total is
    its weighted sum over the highest that the weights allow; each reward is a named part, each
    metric one as ``metric/NAME``. An exception in a reward gives ``verifier_error`` and
    no score.

    Args:
        taskset: a Taskset, or the id of an installed package that exports one, ``owner/name``
            included.
        size: only the first so many tasks; needed if they never end.
        highest: the highest sum that the rewards can come to; by default the sum of the weights
            above 0, which is right if each reward is in [0, 1].
        render_mode: ``"ansi"`` or ``None``.

    Raises:
        ImportError: verifiers is missing: the extra ``verifiers``.
        TypeError: it is no taskset.
        ValueError: the tasks never end and there is no ``size``, or a task needs what one reply
            does not have: a container, tools, skills, files, a harness that opens the conversation,
            a model call that its task intercepts, an Env that scores it from other traces.
    """
    vf = _v1()
    if isinstance(taskset, str):
        from verifiers.v1.utils.loaders import load_taskset, taskset_config_type

        taskset = load_taskset(taskset_config_type(taskset)(id=taskset))
    if not isinstance(taskset, vf.Taskset):
        raise TypeError(
            f"expected a Taskset or its id, got {type(taskset).__name__}: an Env plays its turns "
            "by agents and harnesses of its own; run it with prime-rl"
        )
    if size is None and not taskset.bounded:
        raise ValueError(f"{type(taskset).__name__} has tasks without end: say how many by size=")
    tasks = list(islice(taskset, size))
    served = type(taskset).toolsets.__func__ is not vf.Taskset.toolsets.__func__
    for task in tasks:
        _refuse_more_than_a_reply(vf, task, served=served)
    name = type(taskset).__name__
    rows = [_task(task, row) for row, task in enumerate(tasks)]
    return TextEnv(
        Rows(rows),
        TasksetRewards(tasks, highest=highest, name=name),
        name=f"verifiers/{name}-v0",
        render_mode=render_mode,
    )


class TasksetRewards(Verifier):
    """The rewards of a taskset's own tasks.

    Reference: ``{"row": 3}``, the task's place in the taskset.

    Args:
        tasks: the package's.
        highest: the highest sum of the rewards; the sum of their weights by default.
        name: of the taskset.
    """

    def __init__(
        self, tasks: Sequence[Any], *, highest: float | None = None, name: str = ""
    ) -> None:
        if highest is not None and not highest > 0:
            raise ValueError(f"highest must be above 0, got {highest}")
        self.tasks, self.highest, self.name = list(tasks), highest, name

    def to_json(self) -> dict[str, Any]:
        """Return the taskset's name and size: enough to compare, not to load it."""
        return {
            "name": "TasksetRewards",
            "taskset": self.name,
            "tasks": len(self.tasks),
            "highest": self.highest,
        }

    def check_reference(self, reference: Any) -> str | None:
        """Require a row of the taskset."""
        row = reference.get("row") if isinstance(reference, dict) else None
        if type(row) is int and 0 <= row < len(self.tasks):
            return None
        return f"expected a row from 0 to {len(self.tasks) - 1}, got {reference!r:.80}"

    def verify_many(self, replies: Sequence[str], references: Sequence[Any]) -> list[Verdict]:
        """Score side by side, in one event loop of their own."""
        same_length(replies, references)
        # A thread, since the caller may be in an event loop; rewards that wait do so together.
        with ThreadPoolExecutor(1, thread_name_prefix="taskset-rewards") as thread:
            return thread.submit(asyncio.run, self._all(replies, references)).result()

    async def _all(self, replies: Sequence[str], references: Sequence[Any]) -> list[Verdict]:
        return list(await asyncio.gather(*map(self._one, replies, references)))

    async def _one(self, reply: str, reference: Any) -> Verdict:
        fault = self.check_reference(reference)
        if fault is not None:
            return Verdict.fault(Status.BAD_GOLD, fault)
        task = self.tasks[reference["row"]]
        try:
            trace = _trace(task, reply)
            async with asyncio.timeout(task.data.timeout.scoring):
                await task.score(trace)
        except Exception as error:
            cause = error.__cause__ or error
            return Verdict.fault(Status.VERIFIER_ERROR, f"{type(cause).__name__}: {cause}")
        return self._weighed(trace)

    def _weighed(self, trace: Any) -> Verdict:
        given = {name: reward for name, reward in trace.rewards.items() if reward is not None}
        if not given or len(given) < len(trace.rewards):
            unscored = sorted(set(trace.rewards) - set(given))
            return Verdict.fault(Status.VERIFIER_ERROR, f"unscored: {', '.join(unscored) or 'all'}")
        total = math.fsum(r.score * r.weight for r in given.values())
        highest = self.highest or math.fsum(max(r.weight, 0.0) for r in given.values())
        listed = ", ".join(f"{n} {r.score:g} x {r.weight:g}" for n, r in given.items())
        score = total / highest if highest > 0 else math.nan
        if not score <= 1.0 + 1e-9:
            return Verdict.fault(
                Status.VERIFIER_ERROR,
                f"{listed} come to {total:g} of {highest:g}: give highest= the highest sum",
            )
        score = min(max(score, 0.0), 1.0)  # a penalty is no less than nothing
        parts = {name: float(r.score) for name, r in given.items()}
        parts |= {f"metric/{n}": float(m) for n, m in trace.metrics.items() if m is not None}
        right = score == 1.0
        return Verdict(
            Status.CORRECT if right else Status.INCORRECT,
            score,
            listed,
            parts={name: value for name, value in parts.items() if math.isfinite(value)},
        )


def to_verifiers(
    env: TextEnv, *, size: int | None = None, seed: int = 0, retries: int = 2
) -> type[Any]:
    """Make a Taskset class of ``verifiers``, for prime-rl and vf-eval, of a one-turn environment.

    Put it into a package of its own, whose name is then the taskset's id::

        # my_sums/__init__.py
        from assay import make
        from assay.adapters import to_verifiers

        Sums = to_verifiers(make("assay/Arithmetic-v1"), size=1000)
        __all__ = ["Sums"]

    The rubric's total is the reward ``assay``, of weight 1; its parts are metrics. Where a fault
    of ours leaves no score the reward raises, so that the trace has an error and is not trained
    on. References are in the class and never in the task's data, which its traces write out.

    Args:
        env: an environment of one turn.
        size: how many tasks, in the order of training; by default every task once.
        seed: of that order.
        retries: further tries for a reply that an infrastructure failure left without a score.

    Raises:
        ImportError: verifiers is missing: the extra ``verifiers``.
        ValueError: the environment plays more than one reply, or has tasks without end and there
            is no ``size``.
    """
    vf = _v1()
    verifier, indices = verifier_of(env), rows_of(env, size, seed)

    class AssayData(vf.TaskData):  # type: ignore[misc, name-defined]  # the package's are Any here
        """Which task it is."""

        assay_task: int

    class AssayTask(vf.Task[AssayData]):  # type: ignore[misc, name-defined]  # as above
        """Judged by the environment's rubric."""

        @property
        def key(self) -> str:
            return f"{env.name}/{self.data.assay_task}"

        async def _verdict(self, trace: Any) -> Verdict:
            reference = env.task(self.data.assay_task).reference

            def ask() -> Verdict:
                return judge_replies(verifier, [trace.last_reply], [reference], retries=retries)[0]

            return await asyncio.to_thread(ask)

        @vf.reward  # type: ignore[untyped-decorator]  # the package's are Any here
        async def assay(self, trace: Any) -> float:
            """Return the rubric's total; its parts are metrics."""
            verdict = await self._verdict(trace)
            trace.info["assay"] = {"status": verdict.status.value, "reason": verdict.reason}
            trace.record_metrics({n: s for n, s in verdict.parts.items() if s is not None})
            return float(verdict.score or 0.0)

    class AssayTaskset(vf.Taskset[AssayTask, vf.TasksetConfig]):  # type: ignore[misc, name-defined]  # as above
        """The environment's tasks."""

        def load(self) -> list[Any]:
            return [
                AssayTask(AssayData(assay_task=i, name=task.id, **_asked(task)), self.config.task)
                for i, task in zip(indices, map(env.task, indices), strict=True)
            ]

    AssayTaskset.__name__ = env.name.partition("/")[2].partition("-v")[0] or "AssayTaskset"
    return AssayTaskset


def _v1() -> Any:
    try:
        import verifiers.v1 as vf
    except ImportError as error:
        missing = missing_package("assay.adapters.prime_verifiers", "verifiers", error)
        raise ImportError(f"{missing}, apart from openai 3") from error
    return vf


def _asked(task: Task) -> dict[str, Any]:
    """Return a prompt as the package stores it: the system message apart."""
    system = [m["content"] for m in task.messages if m["role"] == "system"]
    rest = [dict(m) for m in task.messages if m["role"] != "system"]
    lone = len(rest) == 1 and rest[0]["role"] == "user"
    return {
        "prompt": rest[0]["content"] if lone else rest,
        "system_prompt": "\n\n".join(system) or None,
    }


def _task(task: Any, row: int) -> Task:
    """Convert a task of the package; of its data only the prompt is kept."""
    data = task.data
    messages = [{"role": "system", "content": data.system_prompt}] if data.system_prompt else []
    if isinstance(data.prompt, str):
        messages.append({"role": "user", "content": data.prompt})
    else:
        messages += [{"role": m.role, "content": _words(m.content)} for m in data.prompt]
    return Task(messages, reference={"row": row}, id=str(data.id or row))


def _words(content: Any) -> str:
    if isinstance(content, str):
        return content
    if any(part.type != "text" for part in content or ()):
        raise ValueError("a prompt with pictures cannot be put as text: leave out such tasks")
    return "\n".join(part.text for part in content or ())


def _refuse_more_than_a_reply(vf: Any, task: Any, *, served: bool) -> None:
    from verifiers.v1.utils.decorators import discover_decorated

    kind = type(task)
    lacks = []
    if task.NEEDS_CONTAINER or task.data.image:
        lacks.append("a container")
    if served or kind.toolsets.__func__ is not vf.Task.toolsets.__func__:
        lacks.append("tool servers")
    for name in ("skills", "artifacts"):
        if getattr(task.data, name, None):
            lacks.append(name)
    for hook in ("setup", "finalize", "stage_verifier"):
        if getattr(kind, hook) is not getattr(vf.Task, hook):
            lacks.append(f"a run for its {hook}()")
    if not task.data.prompt:
        lacks.append("a prompt")
    lacks += [
        f"a model call whose messages {hook.__name__}() rewrites"
        for hook in discover_decorated(task, "intercept")
    ]
    rewards = task.hooks("reward")
    if not rewards and not task.plugged_judges():
        lacks.append("an Env that scores its traces, since the task itself has no reward")
    for function in rewards:
        runtime = inspect.signature(function).parameters.get("runtime")
        if runtime is not None and runtime.default is inspect.Parameter.empty:
            lacks.append(f"a runtime for the reward {function.__name__}")
    if lacks:
        raise ValueError(
            f"{kind.__name__} needs {', '.join(lacks)}, which one reply in this process does not "
            "have, so none could win: run it with prime-rl, or leave out such tasks"
        )


def _trace(task: Any, reply: str) -> Any:
    """Return what the package would have recorded of one model call."""
    import verifiers.v1 as vf
    from verifiers.v1.state import state_cls
    from verifiers.v1.trace import AgentInfo, TraceTask
    from verifiers.v1.types import AssistantMessage, SystemMessage, UserMessage

    data = task.data
    trace = vf.Trace(
        task=TraceTask(type=type(task).__name__, data=data, key=task.key, hash=task.hash),
        agent=AgentInfo.model_construct(config=None),
        state=state_cls(type(task))(),
    )
    before = [SystemMessage(content=data.system_prompt)] if data.system_prompt else []
    asked = [UserMessage(content=data.prompt)] if isinstance(data.prompt, str) else data.prompt
    said = AssistantMessage(content=replace_surrogates(reply))
    for message in [*before, *asked, said]:
        parent = len(trace.nodes) - 1 if trace.nodes else None
        node = vf.MessageNode(parent=parent, message=message, sampled=message is said)
        trace.nodes.append(node)
    trace.is_completed = trace.ok = True
    return trace
