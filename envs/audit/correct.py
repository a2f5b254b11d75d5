"""Checks of correct replies: they pass, also late in a reply or stated twice."""

from __future__ import annotations

from ...verifiers import CosineLength, Length, SoftOverlong
from .context import Context, NotChecked, Outcome, check, describe, earned
from .harness import Trial
from .replies import reasoning

_FEW = 4
"""Tasks for long replies."""
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
        raise NotChecked("no winning reply is known: give the tasks a solution")
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
    line = reasoning(300, rng) if of_form else "Let me think."
    texts = {size: reasoning(size, rng) for size in _REASONED}
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
