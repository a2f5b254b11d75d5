"""Holds an environment or a verifier to what its rewards are trusted for.

Every reply is judged in a copy of the verifier in another process, which is killed where a reply
never ends. So nothing that an audit tries can harm the process that asks for it.
"""

from __future__ import annotations

import time as clock
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ...verifiers import FunctionVerifier, Verifier
from ..text_env import TextEnv
from . import correct, cost, data, exploits, splits
from .canary import canary
from .context import Check, NotChecked, Panel, Tried
from .harness import Bench, Bounds, CannotCopy, OutOfOrder, TooManyOverruns
from .report import SHOWN, AuditReport, Failure, Finding
from .samples import samples_for
from .subject import Sample, Sibling, Subject, of_environment, of_verifier, without

CHECKS: tuple[Check, ...] = (
    Check(
        "references",
        "every reference can be used",
        "correct or remove these rows",
        data.references,
    ),
    Check(
        "gold",
        "a known answer earns full marks",
        "mend the verifier, or the answer that is not one",
        correct.gold,
    ),
    Check(
        "long",
        "a known answer earns the same after long reasoning",
        "read the end of a reply, whatever its length",
        correct.long,
    ),
    Check(
        "repeated",
        "a known answer given twice earns the same",
        "refuse answers that differ, not an answer that is repeated",
        correct.repeated,
    ),
    Check(
        "null",
        "a reply without content earns nothing",
        "score 0 where nothing is extracted; pay form only behind a gate",
        exploits.null,
    ),
    Check(
        "near",
        "a near miss of the answer earns nothing",
        "compare exactly, or declare the tolerance",
        exploits.near,
    ),
    Check(
        "final",
        "an answer that is taken back or left in the thought earns nothing",
        "judge the last answer after the thought",
        exploits.final,
    ),
    Check(
        "spam",
        "many candidates earn nothing, though the answer is among them",
        "judge one answer that the reply commits to, never any of several",
        exploits.spam,
    ),
    Check(
        "hedge",
        "the answer with a way out earns nothing",
        "refuse 'or', 'not', ranges and free symbols around an answer",
        exploits.hedge,
    ),
    Check(
        "echo",
        "the prompt given back earns nothing",
        "extract from the form that was asked for; keep answers out of prompts",
        exploits.echo,
    ),
    Check(
        "neighbour",
        "the answer to another task earns nothing",
        "compare whole answers, not parts or shapes of them",
        exploits.neighbour,
    ),
    Check(
        "injection",
        "orders and payloads earn nothing, and none is run",
        "never eval, unpickle or format a reply; run programs in a sandbox",
        exploits.injection,
    ),
    Check(
        "determinism",
        "a reply gets one verdict: again, in any batch, in a new process",
        "no clock, no global random numbers, no order of sets, no state",
        exploits.determinism,
    ),
    Check(
        "time",
        "a reply takes time in proportion to its length, and ends",
        "bound what is read; no backtracking patterns; algebra in a worker",
        cost.time,
    ),
    Check(
        "memory",
        "a reply takes memory in proportion to its length",
        "bound what is kept of a reply",
        cost.memory,
    ),
    Check(
        "leakage",
        "what the policy sees does not hold the answer",
        "take the answer out of prompt, observation and metadata",
        data.leakage,
    ),
    Check(
        "canary",
        "a program that looks everywhere does not find what is expected",
        "keep expected results out of the program's process",
        canary,
    ),
    Check(
        "splits",
        "train and test share no prompt, seeds put other tasks, ids are unique",
        "split by the prompt's hash; make every draw from seed and counter",
        splits.splits,
    ),
    Check(
        "fuzz",
        "no reply raises or is left without a score",
        "catch what a reply can cause, and score it 0: None is for our faults",
        exploits.fuzz,
    ),
)
"""The panel. ``fuzz`` and ``time`` also report what other checks' replies brought about."""

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
    """Try everything on the panel.

    Args:
        subject: an environment; or a verifier, or a plain function of reply and reference.
        samples: known answers, where the subject is a verifier. Those that come with Assay have
            some already.
        tasks: how many tasks are sampled from an environment.
        seed: of the sample and of the replies; the same seed tries the same.
        checks: names of the checks to make, from :data:`CHECKS`; all where ``None``.
        skip: names of checks to leave out.
        floor: the most that a reply without the answer may earn: above 0 for partial credit.
        tolerance: the relative error of a number that is right by design.
        seconds: CPU time within which every reply must be judged.
        budget_s: wall-clock seconds after which no further check is begun.
        sibling: makes another split and seed of the environment; found out where it can be.
        other: the environment over the other split, where it has data of its own.
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
    if prompts < 20:
        raise ValueError(f"prompts must be at least 20, got {prompts}")
    if longest < 1 << 14:
        raise ValueError(f"longest must be at least {1 << 14} characters, got {longest}")
    chosen = _chosen(checks, skip)
    found = _subject(subject, samples, tasks, seed, sibling)
    bounds = Bounds(cpu_s=seconds)
    try:
        bench = Bench(found.rubric, bounds)
        faults = bench.reference_faults([task.reference for task in found.tasks])
    except CannotCopy as error:
        note = f"the verifier cannot be copied to another process ({error})"
        findings = tuple(Finding(c.name, c.promise, None, note=note) for c in chosen)
        return AuditReport(found.name, seed, len(found.tasks), findings, _untried(subject))
    usable = without(found, [t for t, f in zip(found.tasks, faults, strict=True) if f is not None])
    there = None if other is None else splits.prompts_of(other, prompts)
    panel = Panel(
        usable,
        bench,
        found,
        seed,
        floor,
        tolerance,
        min(5.0, seconds),
        other=there,
        prompts=prompts,
        longest=longest,
        measure=cost.long_replies,
    )
    try:
        if any(check.name == "determinism" for check in chosen):
            bench.expect_fresh()
        findings = _findings(panel, chosen, budget_s, progress)
    finally:
        bench.close()
    return AuditReport(found.name, seed, len(found.tasks), findings, _untried(subject))


def _untried(subject: object) -> str:
    """What no check tries."""
    if isinstance(subject, TextEnv) and subject.max_turns > 1:
        return (
            "Replies were put to the rubric, as the answer of an episode. Its turns were not "
            "played: what respond, answer and tools make of a reply is not checked here, but in "
            "part by assay.envs.check, which plays solutions and silence"
        )
    if isinstance(subject, TextEnv) and subject.group_rubric is not None:
        return "Replies were judged one by one: what the group rubric pays is not checked"
    return ""


def _chosen(checks: Iterable[str] | None, skip: Iterable[str]) -> list[Check]:
    known = [check.name for check in CHECKS]
    wanted = known if checks is None else list(checks)
    for name in [*wanted, *skip]:
        if name not in known:
            raise ValueError(f"there is no check {name!r}; the checks are {', '.join(known)}")
    return [check for check in CHECKS if check.name in wanted and check.name not in set(skip)]


def _subject(
    subject: TextEnv | Verifier | Callable[[str, Any], Any],
    samples: Sequence[Sample],
    tasks: int,
    seed: int,
    sibling: Sibling | None,
) -> Subject:
    if tasks < 1:
        raise ValueError(f"tasks must be at least 1, got {tasks}")
    if isinstance(subject, TextEnv):
        sibling = sibling or splits.sibling_of(subject.source)
        return of_environment(subject, sample=tasks, seed=seed, sibling=sibling)
    verifier = subject if isinstance(subject, Verifier) else FunctionVerifier(subject)
    return of_verifier(verifier, samples or samples_for(verifier))


def _findings(
    panel: Panel,
    checks: Sequence[Check],
    budget_s: float | None,
    progress: Progress | None,
) -> tuple[Finding, ...]:
    started = clock.monotonic()
    results: dict[str, Tried | str] = {}
    for place, check in enumerate(checks):
        if progress is not None:
            progress(check.name, place, len(checks))
        if budget_s is not None and clock.monotonic() - started > budget_s:
            results[check.name] = "the time budget was spent"
        elif not panel.subject.tasks and check.name != "references":
            results[check.name] = "no task has a usable reference"
        else:
            results[check.name] = _tried(check, panel)
    return tuple(_finding(check, results[check.name], panel) for check in checks)


def _tried(check: Check, panel: Panel) -> Tried | str:
    try:
        return check.run(panel)
    except (NotChecked, TooManyOverruns) as why:
        return str(why)
    except OutOfOrder as error:
        return f"what judges is out of order: {error}"


def _finding(check: Check, result: Tried | str, panel: Panel) -> Finding:
    also = {"fuzz": panel.bench.faults, "time": panel.bench.overruns}.get(check.name, [])
    if isinstance(result, str) and not also:
        return Finding(check.name, check.promise, None, note=result)
    tried = Tried(0, note=result) if isinstance(result, str) else result
    cases = panel.bench.tried if also else tried.cases
    failures = _once([*tried.failures, *also])
    return Finding(
        check.name,
        check.promise,
        not failures,
        cases,
        len(failures),
        tuple(failures[:SHOWN]),
        tried.note,
        check.remedy if failures else "",
        tried.measured,
    )


def _once(failures: Sequence[Failure]) -> list[Failure]:
    """Each failing input once."""
    return list({(f.task, f.reply, f.found): f for f in failures}.values())
