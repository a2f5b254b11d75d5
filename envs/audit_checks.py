"""The promises about replies: what earns nothing, and that a reply always gets one verdict."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

from ..verifiers import read_number
from . import audit_replies as replies
from .audit_bench import Trial
from .audit_near import constant_programs, near_misses
from .audit_panel import NotChecked, Panel, Tried, says
from .audit_report import Failure
from .audit_subject import known_answer, parts
from .task import Task

_FEW = 4
"""Tasks for replies that do not depend on the task."""
_ORDERS = 4
"""Choices of wrong replies beside the right one, where tasks have many answers."""
_RIGHT_FOR_TWO = 0.75
"""The largest share of other tasks' answers that may be right, where there are many answers."""


def null(panel: Panel) -> Tried:
    """Replies without content earn nothing."""
    trials = []
    for task in panel.subject.tasks[:_FEW]:
        answer = known_answer(task)
        trials += [
            Trial(task, reply, what)
            for what, reply in replies.NULL.items()
            if answer is None or answer.strip() not in (reply.strip(), replies.bare(reply).strip())
            if not (panel.subject.judges_form and what in replies.ANSWERLESS)
        ]
    return panel.earn_nothing(trials)


def spam(panel: Panel) -> Tried:
    """Many candidates earn nothing, though the known answer is among them."""
    panel.need_an_answer()
    return _but_by_chance(panel, list(_spam(panel)))


def _spam(panel: Panel) -> Iterator[Trial]:
    rng = panel.rng("spam")
    code = panel.subject.code is not None
    for task, winner in panel.won[:_FEW]:
        answer = known_answer(task)
        if answer is not None:
            many = replies.spam(answer, panel.wrong(answer), panel.answers, winner, rng)
            yield from (Trial(task, reply, what) for what, reply in many)
            continue
        for losers in _orders(panel, _losers(panel, task, winner)):
            many = replies.spam_of_replies(winner, losers, code=code)
            yield from (Trial(task, reply, what) for what, reply in many)


def _orders(panel: Panel, losers: list[str]) -> Iterator[list[str]]:
    """Wrong replies as they are; beginning with others too, where chance may make one right."""
    for first in range(min(_ORDERS, len(losers)) if panel.subject.many_answers else 1):
        yield [*losers[first:], *losers[:first]]


def _but_by_chance(panel: Panel, trials: list[Trial]) -> Tried:
    """What these earn. Where tasks have many answers, two after each other may happen to be one.

    Such as two ways of filling jugs. So it is a failure only of a kind of reply that nearly
    always wins, as it does where the known answer in it is what is paid for.
    """
    found = panel.earn_nothing(trials)
    single = any(known_answer(task) is not None for task in panel.subject.tasks)
    if single or not panel.subject.many_answers:
        return found
    tried = Counter(trial.what for trial in trials)
    won = Counter(failure.what for failure in found.failures)
    failures = [f for f in found.failures if won[f.what] > _RIGHT_FOR_TWO * tried[f.what]]
    chance = len(found.failures) - len(failures)
    note = f"{chance} happen to be right as a whole, as many answers are" if chance else ""
    return Tried(found.cases, failures, note)


def _losers(panel: Panel, task: Task, winner: str) -> list[str]:
    """Replies that do not win a task: winners of tasks with another answer, and nonsense."""
    others = [(t, w) for t, w in panel.won if t.reference != task.reference and w != winner]
    trials = [Trial(task, reply, "another task's answer") for _, reply in others]
    lost = [
        trial.reply
        for trial, verdict in zip(trials, panel.bench.judge(trials), strict=True)
        if verdict is not None and verdict.score is not None and verdict.score <= panel.limit
    ]
    return lost or ["def nothing():\n    return None" if panel.subject.code else "none of these"]


def hedge(panel: Panel) -> Tried:
    """A known answer with a way out earns nothing."""
    panel.need_an_answer()
    if panel.subject.code is not None:
        raise NotChecked("a program says one thing: there is no way to hedge it")
    trials = []
    for task, winner in panel.won:
        answer = known_answer(task)
        if answer is not None:
            hedged = list(replies.hedges(answer, panel.wrong(answer), winner))
        else:
            orders = _orders(panel, _losers(panel, task, winner))
            hedged = [h for o in orders for h in replies.hedges_of_replies(winner, o[0])]
        trials += [Trial(task, reply, what) for what, reply in hedged]
    return _but_by_chance(panel, trials)


def final(panel: Panel) -> Tried:
    """A known answer earns nothing if another follows it, or if only the thought has it."""
    panel.need_an_answer()
    trials = []
    for task, winner in panel.won:
        answer = panel.answer(task)
        trials += [Trial(task, reply, what) for what, reply in replies.in_thought(winner)]
        if answer is not None:
            back = replies.taken_back(answer, panel.wrong(answer), winner)
            trials += [Trial(task, reply, what) for what, reply in back]
    return panel.earn_nothing(trials)


def near(panel: Panel) -> Tried:
    """Near misses of a known answer earn nothing; a program's near miss is a constant output."""
    panel.need_an_answer()
    trials = []
    for task, winner in panel.won:
        answer = panel.answer(task)
        if answer is not None:
            trials += [
                Trial(task, reply, what)
                for what, text in near_misses(answer)
                if not _tolerated(panel, answer, text)
                for reply in replies.in_forms(text, answer, winner)
            ]
    code = panel.subject.code
    if code is not None:
        for task, _ in panel.won[:_FEW]:
            programs = constant_programs(task.reference)
            trials += [Trial(task, code.reply_of(p), "a constant output") for p in programs]
    if not trials:
        raise NotChecked("no known answer has a near miss that is surely wrong")
    return panel.earn_nothing(trials)


def _tolerated(panel: Panel, answer: str, text: str) -> bool:
    """Whether the subject declares that an answer as close as this one is right."""
    right, given = read_number(answer), read_number(text)
    if right is None or given is None:
        return False
    off = abs(given.value - right.value)
    for part in parts(panel.subject.rubric):
        enough = getattr(getattr(part, "conventions", None), "rounded_digits", None)
        places = len(text.partition(".")[2])
        if enough is not None and places >= enough and off <= Fraction(1, 10**places):
            return True
        declared = getattr(part, "tolerance", 0.0)
        if isinstance(declared, float) and off <= Fraction(declared) * abs(right.value):
            return True
    return off <= Fraction(panel.tolerance) * abs(right.value)


def echo(panel: Panel) -> Tried:
    """The prompt given back earns nothing."""
    if panel.subject.env is None:
        raise NotChecked("a verifier by itself has no prompt")
    trials = [
        Trial(task, reply, what)
        for task in panel.subject.tasks
        for what, reply in replies.echoes(task.text, [m["content"] for m in task.messages])
    ]
    return panel.earn_nothing(trials)


def neighbour(panel: Panel) -> Tried:
    """The answer to another task earns nothing, unless both have the same.

    Where tasks have many answers, one may be right for two: then it is only too often that counts.
    """
    panel.need_an_answer()
    pairs = panel.won
    if len(pairs) < 2:
        raise NotChecked("this takes two tasks with known answers")
    trials, same = [], 0
    for i, (task, _) in enumerate(pairs):
        for step in (1, 2, 3):
            other, winner = pairs[(i + step) % len(pairs)]
            if _same_answer(task, other):
                same += other is not task
            else:
                trials.append(Trial(task, winner, f"the answer to task {other.id}"))
    found = panel.earn_nothing(trials)
    note = f"{same} more pairs have the same answer" if same else ""
    right = len(found.failures)
    if panel.subject.many_answers and 0 < right <= _RIGHT_FOR_TWO * found.cases:
        return Tried(found.cases, [], f"{right} are right for two tasks, as many answers are")
    return Tried(found.cases, found.failures, note)


def _same_answer(a: Task, b: Task) -> bool:
    if a.reference == b.reference or (a.solution is not None and a.solution == b.solution):
        return True
    numbers = [read_number(known_answer(task) or "") for task in (a, b)]
    return None not in numbers and numbers[0].value == numbers[1].value  # type: ignore[union-attr]  # neither is None


def injection(panel: Panel) -> Tried:
    """Orders and forged verdicts earn nothing, and code in a reply is not run.

    An order in the form that is asked for has that form: where nothing else counts, only what is
    run is a failure.
    """
    with tempfile.TemporaryDirectory(prefix="assay-audit-") as folder:
        marker = Path(folder) / "ran"
        trials = []
        for task in panel.subject.tasks[:_FEW]:
            answer = known_answer(task)
            trials += [
                Trial(task, reply, what) for what, reply in replies.injections(answer, str(marker))
            ]
        found = panel.earn_nothing(trials, floor=panel.full if panel.subject.judges_form else None)
        failures = list(found.failures)
        if any(Path(folder).iterdir()):
            harm = [t for t in trials if str(marker) in t.reply]
            failures += [t.failure("was run: it made a file") for t in _who(panel, marker, harm)]
    # the folder's name is chance, and a report must not hang on it
    hidden = [
        Failure(f.task, f.what, f.reply.replace(folder, "/tmp/audit"), f.found)  # noqa: S108  # a text, not a place
        for f in failures
    ]
    return Tried(len(trials), hidden)


def _who(panel: Panel, marker: Path, trials: list[Trial]) -> Iterator[Trial]:
    """Which of these replies make the file."""
    for trial in trials:
        marker.unlink(missing_ok=True)
        panel.bench.judge([trial])
        if marker.exists():
            yield trial


def fuzz(panel: Panel) -> Tried:
    """No reply, whatever it holds, raises or is left without a score."""
    rng = panel.rng("fuzz")
    winners = list(panel.winners.items())
    tasks = {task.id: task for task in panel.subject.tasks}
    many = 12 if panel.subject.code is not None else 150
    trials = [
        Trial(rng.choice(panel.subject.tasks), replies.nonsense(rng), "nonsense")
        for _ in range(many)
    ]
    for _ in range(2 * many if winners else 0):
        id_, winner = rng.choice(winners)
        trials.append(Trial(tasks[id_], replies.mutated(winner, rng), "a known answer, damaged"))
    panel.bench.judge(trials)
    return Tried(len(trials))


def determinism(panel: Panel) -> Tried:
    """The same reply gets the same verdict: again, in any batch, and in another process."""
    trials = _mixture(panel)
    order = list(range(len(trials)))
    panel.rng("determinism").shuffle(order)
    shuffled = [trials[i] for i in order]
    few = trials[:: max(1, len(trials) // 24)]
    first = panel.bench.judge(trials)
    again = {
        "again": (trials, panel.bench.judge(trials)),
        "in another order": (shuffled, panel.bench.judge(shuffled)),
        "alone": (few, panel.bench.judge(few, together=False)),
    }
    with panel.bench.fresh():
        again["in a fresh process"] = (trials, panel.bench.judge(trials))
    said = {(t.task.id, t.reply): verdict for t, verdict in zip(trials, first, strict=True)}
    failures = []
    for when, (tried, verdicts) in again.items():
        for trial, verdict in zip(tried, verdicts, strict=True):
            before = said[trial.task.id, trial.reply]
            if verdict is not None and before is not None and verdict != before:
                found = f"is {says(before)}; {when}: {says(verdict)}"
                failures.append(trial.failure(found))
    return Tried(sum(len(tried) for tried, _ in again.values()), failures)


def _mixture(panel: Panel) -> list[Trial]:
    """Winning, losing and odd replies, each once."""
    rng = panel.rng("mixture")
    trials = []
    winners = {t.id: [*panel.subject.winners(t)] for t in panel.subject.tasks}
    for task in panel.subject.tasks:
        trials += [Trial(task, reply, "a known answer") for reply in winners[task.id]]
        trials += [Trial(task, replies.mutated(w, rng), "damaged") for w in winners[task.id][:1]]
        trials.append(Trial(task, "The answer is 7.", "a guess"))
    task = panel.subject.tasks[0]
    trials += [Trial(task, reply, what) for what, reply in replies.NULL.items()]
    return list({(t.task.id, t.reply): t for t in trials}.values())
