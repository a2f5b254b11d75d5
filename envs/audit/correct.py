"""The promises about right replies: a known answer wins, also late in a reply or given twice."""

from __future__ import annotations

from ...verifiers import CosineLength, Length, SoftOverlong
from .context import NotChecked, Panel, Tried, says
from .harness import Trial
from .replies import reasoning
from .subject import parts

_FEW = 4
"""Tasks for long replies."""
_REASONED = (2_000, 20_000, 90_000)
"""Characters of reasoning before a known answer."""
_OF_LENGTH = (CosineLength, Length, SoftOverlong)
"""Verifiers that pay less for a longer reply."""


def gold(panel: Panel) -> Tried:
    """Known answers earn full marks."""
    trials = [
        Trial(task, reply, "the known answer")
        for task in panel.subject.tasks
        for reply in panel.subject.winners(task)
    ]
    if not trials:
        raise NotChecked("no winning reply is known: give the tasks a solution")
    failures = []
    for trial, verdict in zip(trials, panel.bench.judge(trials), strict=True):
        if verdict is None:
            failures.append(trial.failure("is not judged"))
        elif (verdict.score, verdict.status) != (panel.full, "correct"):
            failures.append(trial.failure(f"earns {verdict.score} ({says(verdict)})"))
    known = len({trial.task.id for trial in trials})
    missing = len(panel.subject.tasks) - known
    return Tried(
        len(trials), failures, f"none is known for {missing} of the tasks" if missing else ""
    )


def long(panel: Panel) -> Tried:
    """A known answer earns as much after long reasoning as after a line of it.

    A verifier that refuses even the line judges whole replies, and is not checked.
    """
    panel.need_an_answer()
    made_of = parts(panel.subject.rubric)
    if any(isinstance(part, _OF_LENGTH) for part in made_of):
        raise NotChecked("a part of the reward depends on length")
    rng = panel.rng("long")
    of_form = any(part.judges_form for part in made_of)  # such as the language of all text
    line = reasoning(300, rng) if of_form else "Let me think."
    texts = {size: reasoning(size, rng) for size in _REASONED}
    pairs = []
    for task, winner in panel.won[:_FEW]:
        around = (
            (("<think>", "\n"),) if "<think>" in winner else (("<think>", "</think>"), ("", ""))
        )
        for head, tail in around:
            rest = f"{tail}\n\n{winner.removeprefix('<think>')}"
            easy = Trial(task, head + line + rest, "a line of reasoning")
            harder = [
                Trial(task, head + text + rest, f"the known answer after {size:,} characters")
                for size, text in texts.items()
            ]
            pairs.append((easy, harder))
    return _still_paid(panel, pairs)


def repeated(panel: Panel) -> Tried:
    """A known answer that is given twice earns what it earns once."""
    if any(part.judges_form for part in parts(panel.subject.rubric)):
        raise NotChecked("a part judges the form of a reply, which two answers may break")
    pairs = []
    for task, winner in panel.won:
        answer = panel.answer(task)
        boxed = [] if answer is None else [winner, rf"\boxed{{{answer}}}"]
        for once in dict.fromkeys(boxed or [winner] * winner.startswith(r"\boxed{")):
            if "</" not in once:  # to ask for one pair of tags is a choice
                twice = (f"{once}\n{once}", f"{once}\n\nLet me check. It holds.\n\n{once}")
                again = [Trial(task, reply, "the known answer twice") for reply in twice]
                pairs.append((Trial(task, f"Let me think.\n\n{once}", "once"), again))
    if not pairs:
        raise NotChecked("replies are no single values, and no boxes")
    return _still_paid(panel, pairs)


def _still_paid(panel: Panel, pairs: list[tuple[Trial, list[Trial]]]) -> Tried:
    """Hold replies to at least half of what an easier one earns, if that wins."""
    first = panel.bench.judge([easy for easy, _ in pairs])
    trials = [
        trial
        for (_, harder), verdict in zip(pairs, first, strict=True)
        if verdict is not None and verdict.score == panel.full
        for trial in harder
    ]
    if not trials:
        raise NotChecked("no reply wins that has a line of reasoning before the answer")
    low = panel.subject.rubric.score_range[0]
    failures = [
        trial.failure(f"earns {verdict.score:g} ({verdict.status}: {verdict.reason})")
        for trial, verdict in zip(trials, panel.bench.judge(trials), strict=True)
        if verdict is not None and verdict.score is not None
        if verdict.score <= panel.limit or 2 * (verdict.score - low) < panel.full - low
    ]
    return Tried(len(trials), failures)
