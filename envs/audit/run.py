"""Hold an environment or a verifier to what its rewards are trusted for.

Every reply is judged by a copy of the verifier in another process, which is killed if a reply
never ends. So nothing that an audit tries can harm the process that asks for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from time import monotonic
from typing import Any

from ...verifiers import FunctionVerifier, Verifier
from ..task import Task
from ..text_env import TextEnv
from .canary import canary
from .context import Check, Context, NotChecked, Outcome
from .cost import memory, time
from .data_checks import leakage, prompts_of, references, sibling_of, splits
from .harness import Harness, InfrastructureError, TooManyOverruns
from .reply_checks import (
    determinism,
    echo,
    final,
    fuzz,
    gold,
    hedge,
    injection,
    long,
    near,
    neighbour,
    null,
    repeated,
    spam,
)  # fmt: skip
from .report import SHOWN, AuditReport, Finding
from .subject import Sample, Sibling, name_of, sample_tasks, samples_for, tasks_of
from .worker import Bounds, NotCopyable

CHECKS: tuple[Check, ...] = (
    references, gold, long, repeated, null, near, final, spam, hedge, echo, neighbour, injection,
    determinism, time, memory, leakage, canary, splits, fuzz,
)  # fmt: skip
"""All checks. ``fuzz`` and ``time`` also report what other checks' replies brought about."""

Progress = Callable[[str, int, int], None]


def audit(
    subject: TextEnv | Verifier | Callable[[str, Any], Any],
    *,
    samples: Sequence[Sample] = (),
    tasks: int = 12,
    seed: int = 0,
    checks: Iterable[str] | None = None,
    skip: Iterable[str] = (),
    floor: float = 0.0,
    tolerance: float = 0.0,
    seconds: float = 10.0,
    budget_s: float | None = None,
    sibling: Sibling | None = None,
    other: TextEnv | None = None,
    prompts: int = 1000,
    longest: int = 1 << 20,
    progress: Progress | None = None,
) -> AuditReport:
    """Make every check.

    Args:
        subject: an environment; or a verifier, or a plain function of reply and reference.
        samples: known answers if the subject is a verifier. Those that come with Assay have some
            already.
        tasks: how many tasks are sampled from an environment.
        seed: of the sample and of the replies; the same seed tries the same.
        checks: names of the checks to make, from :data:`CHECKS`; ``None`` for all.
        skip: names of checks to leave out.
        floor: the most that a reply without the answer may earn: above 0 for partial credit.
        tolerance: the relative error of a number that is right by design.
        seconds: CPU time within which every reply must be judged.
        budget_s: wall-clock seconds after which no further check is begun.
        sibling: makes another split and seed of the environment; found out if possible.
        other: the environment over the other split, if it has data of its own.
        prompts: how many of a generator's prompts are compared for the splits.
        longest: characters of the longest reply that is tried.
        progress: called with a check's name, its place and how many there are, before each.

    Raises:
        ValueError: a check is unknown, a number is out of range, or a verifier has no samples.

    Example:
        >>> from assay.verifiers import Exact
        >>> audit(Exact(), tasks=2, checks=["gold", "null"]).failing
        []
    """
    for name, value, least in (("prompts", prompts, 20), ("tasks", tasks, 1)):
        if value < least:
            raise ValueError(f"{name} must be at least {least}, got {value}")
    if longest < 1 << 14:
        raise ValueError(f"longest must be at least {1 << 14} characters, got {longest}")
    chosen = _chosen(checks, skip)
    env, rubric, name, sample = _subject(subject, samples, tasks, seed)
    if env is not None:
        sibling = sibling or sibling_of(env.source)
    untried = _untried(env)
    try:
        harness = Harness(rubric, Bounds(cpu_s=seconds))
        faults = harness.reference_faults([task.reference for task in sample.values()])
    except NotCopyable as error:
        note = f"the verifier cannot be copied to another process ({error})"
        findings = [Finding(c.name, c.promise, None, note=note) for c in chosen]
        return AuditReport(name, seed, len(sample), tuple(findings), untried)
    context = Context(
        name,
        rubric,
        harness,
        {i: t for (i, t), fault in zip(sample.items(), faults, strict=True) if fault is None},
        [*sample.values()],
        env,
        sibling,
        None if other is None else prompts_of(other, prompts),
        seed,
        floor,
        tolerance,
        growth_s=min(5.0, seconds),
        prompts=prompts,
        longest=longest,
    )
    try:
        findings = _findings(context, chosen, budget_s, progress)
    finally:
        harness.close()
    return AuditReport(name, seed, len(sample), tuple(findings), untried)


def _untried(env: TextEnv | None) -> str:
    """Say what no check tries."""
    if env is not None and env.max_turns > 1:
        return (
            "Replies were put to the rubric, as the answer of an episode. Its turns were not "
            "played: what respond, answer and tools make of a reply is not checked here, but in "
            "part by assay.envs.check, which plays solutions and silence"
        )
    if env is not None and env.group_rubric is not None:
        return "Replies were judged one by one: what the group rubric pays is not checked"
    return ""


def _chosen(checks: Iterable[str] | None, skip: Iterable[str]) -> list[Check]:
    known = [check.name for check in CHECKS]
    wanted, skipped = known if checks is None else list(checks), list(skip)
    for name in [*wanted, *skipped]:
        if name not in known:
            raise ValueError(f"there is no check {name!r}; the checks are {', '.join(known)}")
    return [check for check in CHECKS if check.name in wanted and check.name not in skipped]


def _subject(
    subject: TextEnv | Verifier | Callable[[str, Any], Any],
    samples: Sequence[Sample],
    tasks: int,
    seed: int,
) -> tuple[TextEnv | None, Verifier, str, Mapping[int, Task]]:
    if isinstance(subject, TextEnv):
        return subject, subject.rubric, subject.name, sample_tasks(subject, tasks, seed)
    verifier = subject if isinstance(subject, Verifier) else FunctionVerifier(subject)
    return None, verifier, name_of(verifier), tasks_of(verifier, samples or samples_for(verifier))


def _findings(
    context: Context, checks: Sequence[Check], budget_s: float | None, progress: Progress | None
) -> list[Finding]:
    started = monotonic()
    outcomes: list[Outcome | str] = []
    for place, check in enumerate(checks):
        if progress is not None:
            progress(check.name, place, len(checks))
        if budget_s is not None and monotonic() - started > budget_s:
            outcomes.append("the time budget was spent")
        elif not context.tasks and check.name != "references":
            outcomes.append("no task has a usable reference")
        else:
            outcomes.append(_outcome(check, context))
    return [_finding(c, o, context.harness) for c, o in zip(checks, outcomes, strict=True)]


def _outcome(check: Check, context: Context) -> Outcome | str:
    try:
        return check.run(context)
    except (NotChecked, NotCopyable, TooManyOverruns) as why:
        return str(why)
    except InfrastructureError as error:
        return f"what judges is out of order: {error}"


def _finding(check: Check, outcome: Outcome | str, harness: Harness) -> Finding:
    also = {"fuzz": harness.faults, "time": harness.overruns}.get(check.name, [])
    if isinstance(outcome, str):
        if not also:
            return Finding(check.name, check.promise, None, note=outcome)
        outcome = Outcome(0, note=outcome)
    once = {(f.task, f.reply, f.found): f for f in [*outcome.failures, *also]}
    return Finding(
        check.name,
        check.promise,
        not once,
        harness.tried if also else outcome.cases,
        len(once),
        tuple(once.values())[:SHOWN],
        outcome.note,
        check.remedy if once else "",
        outcome.measured,
    )
