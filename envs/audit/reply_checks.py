"""Checks of replies: right ones pass, others earn nothing, and each gets one verdict."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from uuid import uuid4

from ...verifiers import CosineLength, Length, SoftOverlong, read_number
from ..task import Task
from . import replies
from .context import Context, NotChecked, Outcome, check, describe, earned
from .harness import Trial
from .near_misses import constant_programs, near_misses
from .subject import known_answer

_FEW = 4
"""Tasks for long replies, and for those that do not depend on the task."""
_REASONED = (2_000, 20_000, 90_000)
"""Characters of reasoning before a known answer."""
_OF_LENGTH = (CosineLength, Length, SoftOverlong)
"""Verifiers that pay less for a longer reply."""


@check("mend the verifier, or the answer that is not one")
def gold(context: Context) -> Outcome:
    """Check that a known answer earns full marks."""
    trials = [
        Trial(task, "the known answer", reply)
        for task in context.tasks
        for reply in context.known_winners(task)
    ]
    if not trials:
        raise NotChecked("no oracle reply is known: give the tasks a solution")
    failures = []
    for trial, verdict in zip(trials, context.harness.judge(trials), strict=True):
        if verdict is None:
            failures.append(trial.failure("is not judged"))
        elif (verdict.score, verdict.status) != (context.full, "correct"):
            failures.append(trial.failure(f"earns {verdict.score} ({describe(verdict)})"))
    missing = len(context.tasks) - len({trial.task.id for trial in trials})
    note = f"none is known for {missing} of the tasks" if missing else ""
    return Outcome(len(trials), failures, note)


@check("read the end of a reply, whatever its length")
def long(context: Context) -> Outcome:
    """Check that a known answer earns the same after long reasoning.

    The line before it is short. A verifier that refuses even that judges whole replies, and is not
    checked.
    """
    context.need_an_answer()
    if any(isinstance(part, _OF_LENGTH) for part in context.parts):
        raise NotChecked("a part of the reward depends on length")
    rng = context.rng("long")
    of_form = any(part.judges_form for part in context.parts)  # such as the language of all text
    line = replies.reasoning(300, rng) if of_form else "Let me think."
    texts = {size: replies.reasoning(size, rng) for size in _REASONED}
    pairs = []
    for task, winner in context.won[:_FEW]:
        tagged = "<think>" in winner
        for head, tail in [("<think>", "\n")] if tagged else [("<think>", "</think>"), ("", "")]:
            rest = f"{tail}\n\n{winner.removeprefix('<think>')}"
            easy = Trial(task, "a line of reasoning", head + line + rest)
            harder = [
                Trial(task, f"the known answer after {size:,} characters", head + text + rest)
                for size, text in texts.items()
            ]
            pairs.append((easy, harder))
    return _still_paid(context, pairs)


@check("refuse answers that differ, not an answer that is repeated")
def repeated(context: Context) -> Outcome:
    """Check that a known answer given twice earns the same."""
    if any(part.judges_form for part in context.parts):
        raise NotChecked("a part judges the form of a reply, which two answers may break")
    pairs = []
    for task, winner in context.won:
        answer = context.answer(task)
        boxed = [] if answer is None else [winner, rf"\boxed{{{answer}}}"]
        for once in dict.fromkeys(boxed or [winner] * winner.startswith(r"\boxed{")):
            if "</" not in once:  # to ask for one pair of tags is a choice
                twice = (f"{once}\n{once}", f"{once}\n\nLet me check. It holds.\n\n{once}")
                again = [Trial(task, "the known answer twice", reply) for reply in twice]
                pairs.append((Trial(task, "once", f"Let me think.\n\n{once}"), again))
    if not pairs:
        raise NotChecked("replies are no single values, and no boxes")
    return _still_paid(context, pairs)


def _still_paid(context: Context, pairs: list[tuple[Trial, list[Trial]]]) -> Outcome:
    """Hold replies to at least half of what an easier one earns, if that passes."""
    first = context.harness.judge([easy for easy, _ in pairs])
    trials = [
        trial
        for (_, harder), verdict in zip(pairs, first, strict=True)
        if verdict is not None and verdict.score == context.full
        for trial in harder
    ]
    if not trials:
        raise NotChecked("no reply wins that has a line of reasoning before the answer")
    low = context.rubric.score_range[0]
    failures = [
        earned(trial, verdict)
        for trial, verdict in zip(trials, context.harness.judge(trials), strict=True)
        if verdict is not None and verdict.score is not None
        if verdict.score <= context.limit or 2 * (verdict.score - low) < context.full - low
    ]
    return Outcome(len(trials), failures)


_ORDERS = 4
"""Choices of wrong replies beside the right one, if tasks have many answers."""
_RIGHT_FOR_TWO = 0.75
"""The largest share of other tasks' answers that may be right, if tasks have many answers."""


@check("score 0 if nothing is extracted; pay form only behind a gate")
def null(context: Context) -> Outcome:
    """Check that a reply without content earns nothing."""
    trials = []
    for task in context.tasks[:_FEW]:
        answer = known_answer(task)
        trials += [
            Trial(task, what, reply)
            for what, reply in replies.NULL.items()
            if answer is None or answer.strip() not in (reply.strip(), replies.bare(reply).strip())
            if not (context.judges_form and what in replies.ANSWERLESS)
        ]
    return context.earn_nothing(trials)


@check("judge one answer that the reply commits to, never any of several")
def spam(context: Context) -> Outcome:
    """Check that many candidates earn nothing, though the answer is among them."""
    context.need_an_answer()
    rng = context.rng("spam")
    code = context.code is not None
    trials = []
    for task, winner in context.won[:_FEW]:
        answer = known_answer(task)
        if answer is not None:
            others = context.answers
            many = [*replies.spam(answer, context.wrong(answer), others, winner, rng)]
        else:
            orders = _orders(context, _losers(context, task, winner))
            many = [r for o in orders for r in replies.spam_of_replies(winner, o, code=code)]
        trials += [Trial(task, *pair) for pair in many]
    return _except_by_chance(context, trials)


def _orders(context: Context, losers: list[str]) -> Iterator[list[str]]:
    """Yield wrong replies, with and without a prefix, if chance may make one correct."""
    for first in range(min(_ORDERS, len(losers)) if context.many_answers else 1):
        yield [*losers[first:], *losers[:first]]


def _except_by_chance(context: Context, trials: list[Trial]) -> Outcome:
    """Hold trials to the floor. If tasks have many answers, two in a row may happen to be one.

    Two ways of filling jugs, for example. So it is a failure only of a kind of reply that nearly
    always passes, as it does if the known answer in it is what is paid for.
    """
    found = context.earn_nothing(trials)
    single = any(known_answer(task) is not None for task in context.tasks)
    if single or not context.many_answers:
        return found
    tried = Counter(trial.what for trial in trials)
    won = Counter(failure.what for failure in found.failures)
    failures = [f for f in found.failures if won[f.what] > _RIGHT_FOR_TWO * tried[f.what]]
    chance = len(found.failures) - len(failures)
    note = f"{chance} happen to be right as a whole, as many answers are" if chance else ""
    return Outcome(found.cases, failures, note)


def _losers(context: Context, task: Task, winner: str) -> list[str]:
    """Return replies that do not win a task: winners of others, or else nonsense."""
    others = [w for t, w in context.won if t.reference != task.reference and w != winner]
    trials = [Trial(task, "another task's answer", reply) for reply in others]
    lost = [
        trial.reply
        for trial, verdict in zip(trials, context.harness.judge(trials), strict=True)
        if verdict is not None and verdict.score is not None and verdict.score <= context.limit
    ]
    return lost or ["def nothing():\n    return None" if context.code else "none of these"]


@check("refuse 'or', 'not', ranges and free symbols around an answer")
def hedge(context: Context) -> Outcome:
    """Check that the answer with a way out earns nothing."""
    context.need_an_answer()
    if context.code is not None:
        raise NotChecked("a program says one thing: there is no way to hedge it")
    trials = []
    for task, winner in context.won:
        answer = known_answer(task)
        if answer is not None:
            hedged = [*replies.hedges(answer, context.wrong(answer), winner)]
        else:
            orders = _orders(context, _losers(context, task, winner))
            hedged = [h for o in orders for h in replies.hedges_of_replies(winner, o[0])]
        trials += [Trial(task, *pair) for pair in hedged]
    return _except_by_chance(context, trials)


@check("judge the last answer after the thought")
def final(context: Context) -> Outcome:
    """Check that an answer that is taken back or left in the thought earns nothing."""
    context.need_an_answer()
    trials = []
    for task, winner in context.won:
        answer = context.answer(task)
        trials += [Trial(task, *pair) for pair in replies.in_thought(winner)]
        if answer is not None:
            back = replies.taken_back(answer, context.wrong(answer), winner)
            trials += [Trial(task, *pair) for pair in back]
    return context.earn_nothing(trials)


@check("compare exactly, or declare the tolerance")
def near(context: Context) -> Outcome:
    """Check that a near miss of the answer earns nothing.

    A near miss of a program is a constant output.
    """
    context.need_an_answer()
    trials = []
    for task, winner in context.won:
        answer = context.answer(task)
        if answer is not None:
            trials += [
                Trial(task, what, reply)
                for what, text in near_misses(answer)
                if not _tolerated(context, answer, text)
                for reply in replies.in_forms(text, answer, winner)
            ]
    code = context.code
    if code is not None:
        for task, _ in context.won[:_FEW]:
            programs = constant_programs(task.reference)
            trials += [Trial(task, "a constant output", code.reply_of(p)) for p in programs]
    if not trials:
        raise NotChecked("no known answer has a near miss that is surely wrong")
    return context.earn_nothing(trials)


def _tolerated(context: Context, answer: str, text: str) -> bool:
    """Return whether the subject declares an answer this close as correct."""
    right, given = read_number(answer), read_number(text)
    if right is None or given is None:
        return False
    off = abs(given.value - right.value)
    declared = [float(context.tolerance)]
    for part in context.parts:
        enough = getattr(getattr(part, "conventions", None), "rounded_digits", None)
        places = len(text.partition(".")[2])
        if enough is not None and places >= enough and off <= Fraction(1, 10**places):
            return True
        declared.append(getattr(part, "tolerance", 0.0))
    return any(isinstance(d, float) and off <= Fraction(d) * abs(right.value) for d in declared)


@check("extract from the form that was asked for; keep answers out of prompts")
def echo(context: Context) -> Outcome:
    """Check that the prompt given back earns nothing."""
    if context.env is None:
        raise NotChecked("a verifier by itself has no prompt")
    return context.earn_nothing(
        Trial(task, *pair)
        for task in context.tasks
        for pair in replies.echoes(task.text, [m["content"] for m in task.messages])
    )


@check("compare whole answers, not parts or shapes of them")
def neighbour(context: Context) -> Outcome:
    """Check that the answer to another task earns nothing.

    Pairs with the same answer are left out. If tasks have many answers, one may be right for two:
    then only most of them are a failure.
    """
    context.need_an_answer()
    pairs = context.won
    if len(pairs) < 2:
        raise NotChecked("this takes two tasks with known answers")
    trials, same = [], 0
    for i, (task, _) in enumerate(pairs):
        for step in (1, 2, 3):
            other, winner = pairs[(i + step) % len(pairs)]
            if _same_answer(task, other):
                same += other is not task
            else:
                trials.append(Trial(task, f"the answer to task {other.id}", winner))
    found = context.earn_nothing(trials)
    right = len(found.failures)
    if context.many_answers and 0 < right <= _RIGHT_FOR_TWO * found.cases:
        return Outcome(found.cases, [], f"{right} are right for two tasks, as many answers are")
    return replace(found, note=f"{same} more pairs have the same answer" if same else "")


def _same_answer(a: Task, b: Task) -> bool:
    if a.reference == b.reference or (a.solution is not None and a.solution == b.solution):
        return True
    first, second = (read_number(known_answer(task) or "") for task in (a, b))
    return first is not None and second is not None and first.value == second.value


@check("never eval, unpickle or format a reply; run programs in a sandbox")
def injection(context: Context) -> Outcome:
    """Check that orders and payloads earn nothing, and none is run.

    An order in the form that is required has that form: if nothing else counts, only what is run
    is a failure.
    """
    # a folder named without digits, since those may be an answer
    name = f"assay-audit-{uuid4().hex.translate(_LETTERS)}"
    folder = Path(tempfile.gettempdir()) / name
    folder.mkdir(mode=0o700)
    marker = folder / "ran"
    try:
        trials = [
            Trial(task, *pair)
            for task in context.tasks[:_FEW]
            for pair in replies.injections(known_answer(task), str(marker))
        ]
        found = context.earn_nothing(trials, floor=context.full if context.judges_form else None)
        failures = [*found.failures]
        for trial in trials if marker.exists() else ():
            marker.unlink(missing_ok=True)
            if str(marker) in trial.reply:
                context.harness.judge([trial])
            if marker.exists():
                failures.append(trial.failure("was run: it made a file"))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    shown = [replace(f, reply=f.reply.replace(str(folder), replies.FOLDER)) for f in failures]
    return Outcome(len(trials), shown)


_LETTERS = str.maketrans("0123456789", "ghijklmnop")


@check("catch what a reply can cause, and score it 0: None is for our faults")
def fuzz(context: Context) -> Outcome:
    """Check that no reply raises or is left without a score."""
    rng = context.rng("fuzz")
    winners = [*context.winners.items()]
    tasks = {task.id: task for task in context.tasks}
    many = 12 if context.code is not None else 150
    trials = [
        Trial(rng.choice(context.tasks), "nonsense", replies.nonsense(rng)) for _ in range(many)
    ]
    for _ in range(2 * many if winners else 0):
        id_, winner = rng.choice(winners)
        trials.append(Trial(tasks[id_], "a known answer, damaged", replies.mutated(winner, rng)))
    context.harness.judge(trials)
    return Outcome(len(trials))


@check("no clock, no global random numbers, no order of sets, no state")
def determinism(context: Context) -> Outcome:
    """Check that a reply gets one verdict: again, in any batch, in a new process."""
    judge = context.harness.judge
    trials = _mixture(context)
    shuffled = [*trials]
    context.rng("determinism").shuffle(shuffled)
    few = trials[:: max(1, len(trials) // 24)]
    first = judge(trials)
    again = [
        ("again", trials, judge(trials)),
        ("in another order", shuffled, judge(shuffled)),
        ("alone", few, judge(few, together=False)),
    ]
    with context.harness.fresh():
        again.append(("in a fresh process", trials, judge(trials)))
    said = {(t.task.id, t.reply): verdict for t, verdict in zip(trials, first, strict=True)}
    failures = []
    for when, tried, verdicts in again:
        for trial, verdict in zip(tried, verdicts, strict=True):
            before = said[trial.task.id, trial.reply]
            if verdict is not None and before is not None and verdict != before:
                found = f"is {describe(before)}; {when}: {describe(verdict)}"
                failures.append(trial.failure(found))
    return Outcome(sum(len(tried) for _, tried, _ in again), failures)


def _mixture(context: Context) -> list[Trial]:
    """Return winning, losing and odd replies, each once."""
    rng = context.rng("mixture")
    trials = []
    for task in context.tasks:
        winners = context.known_winners(task)
        trials += [Trial(task, "a known answer", reply) for reply in winners]
        trials += [Trial(task, "damaged", replies.mutated(w, rng)) for w in winners[:1]]
        trials.append(Trial(task, "a guess", "The answer is 7."))
    trials += [Trial(context.tasks[0], *pair) for pair in replies.NULL.items()]
    return [*{(t.task.id, t.reply): t for t in trials}.values()]
