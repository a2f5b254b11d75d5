"""Groups that teach nothing are dropped or played again, by outcome, and counted."""

import logging

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.envs import (
    Counts,
    Episode,
    EpisodeGroup,
    FunctionPolicy,
    Refill,
    Rows,
    Task,
    TextEnv,
    drop_flat,
    flat,
    rollout,
)
from assay.verifiers import FunctionVerifier, Rubric, Status, Verdict

RIGHT = Verdict(Status.CORRECT, 1.0, parts={"answer": 1.0, "form": 1.0})
BARE = Verdict(Status.CORRECT, 0.8, parts={"answer": 1.0, "form": 0.0})
NEAT = Verdict(Status.INCORRECT, 0.2, parts={"answer": 0.0, "form": 1.0})
WRONG = Verdict(Status.INCORRECT, 0.0, parts={"answer": 0.0, "form": 0.0})
FAULT = Verdict.fault(Status.SANDBOX_ERROR, "gone")


def group(*verdicts) -> EpisodeGroup:
    return EpisodeGroup(Task("?", "!", id="t"), tuple(Episode("t", (), v) for v in verdicts))


@pytest.mark.parametrize(
    ("verdicts", "why"),
    [
        ((RIGHT, WRONG), None),
        ((RIGHT, BARE), "all_correct"),  # only the form differs
        ((NEAT, WRONG), "all_wrong"),
        ((RIGHT, FAULT), "unscored"),
        ((RIGHT, RIGHT, FAULT), "all_correct"),
        ((FAULT, FAULT), "unscored"),
        ((), "unscored"),
    ],
)
def test_the_outcome_decides_and_not_the_total(verdicts, why) -> None:
    assert flat(group(*verdicts)) == why


def test_a_named_part_can_be_the_outcome() -> None:
    assert flat(group(NEAT, WRONG), "form") is None
    assert flat(group(RIGHT, NEAT), "form") == "all_correct"
    with pytest.raises(ValueError, match="no part 'tests'; the parts of 't' are answer, form"):
        flat(group(RIGHT, WRONG), "tests")


VERDICTS = st.sampled_from([RIGHT, BARE, NEAT, WRONG, FAULT])
GROUPS = st.lists(st.lists(VERDICTS, max_size=4).map(lambda v: group(*v)), max_size=6)


@settings(deadline=None, derandomize=True, max_examples=60)
@given(GROUPS)
def test_what_is_dropped_and_kept_is_all_there_was(groups) -> None:
    kept, counts = drop_flat(groups)
    assert counts.generated == len(groups) == counts.kept + counts.dropped
    assert counts.kept == len(kept)
    assert counts.masked == sum(g.masked for g in groups)
    assert counts.masked + counts.scored == sum(len(g.episodes) for g in groups)
    assert counts.correct == sum(e.status is Status.CORRECT for g in groups for e in g.episodes)
    rest = iter(groups)
    assert all(any(g is other for other in rest) for g in kept)  # in their order
    assert drop_flat(kept)[0] == kept


@settings(deadline=None, derandomize=True, max_examples=60)
@given(st.lists(GROUPS, min_size=5, max_size=5), st.integers(1, 6), st.integers(1, 5))
def test_a_refills_counts_add_up_and_its_bound_holds(attempts, wanted, most) -> None:
    asked = []

    def roll(policy, step):
        asked.append(step)
        return attempts[step - 1]

    refill = Refill(roll, wanted, attempts=most, max_none_share=1.0)
    kept = refill(None, 1)
    counts = refill.counts
    assert asked == list(range(1, 1 + counts.attempts))
    assert counts.attempts <= most
    assert counts.generated == counts.kept + counts.dropped + counts.surplus
    assert counts.kept == len(kept) <= wanted
    assert counts.complete == (len(kept) == wanted)
    assert counts.complete or counts.attempts == most
    assert counts.surplus == 0 or counts.complete
    assert all(flat(g) is None for g in kept)


def equal(reply, gold):
    return reply == gold


HARD = TextEnv(
    Rows([Task(str(i), reference="yes", id=str(i)) for i in range(40)]), FunctionVerifier(equal)
)


def learner_of(env, played=None):
    """A policy that is right about every second time, but never for odd tasks."""
    calls = iter(range(10**6))

    def reply(messages):
        if played is not None:
            played.append(messages[0]["content"])
        return "yes" if next(calls) % 2 and int(messages[0]["content"]) % 2 == 0 else "no"

    return FunctionPolicy(reply)


def training(policy, step):
    return rollout(HARD, policy, 4, 2, first=4 * (step - 1), seed=3)


def test_the_tasks_of_a_step_follow_from_the_step_alone() -> None:
    """A run that is resumed at step 3 takes what the unbroken one took."""

    def tasks(steps):
        refill, found = Refill(training, 4, attempts=5), {}
        for step in steps:
            played: list[str] = []
            groups = refill(learner_of(HARD, played), step)
            found[step] = ([g.task.id for g in groups], played)
        return found

    unbroken, resumed = tasks([1, 2, 3]), tasks([3])
    assert unbroken[3] == resumed[3]
    assert all(len(kept) == 4 for kept, _ in unbroken.values())
    assert all(int(i) % 2 == 0 for kept, _ in unbroken.values() for i in kept)
    first_epoch = [p for step in (1, 2) for p in dict.fromkeys(unbroken[step][1])]
    assert len(first_epoch) == len(set(first_epoch))  # 5 attempts of 4 are 20 tasks: no repeats


def test_a_batch_that_stays_short_is_handed_on_with_a_warning(caplog) -> None:
    refill = Refill(training, 4, attempts=2)
    with caplog.at_level(logging.WARNING):
        assert refill(FunctionPolicy(lambda m: "no"), 1) == []
    assert "step 1: 0 of 4 groups after 2 attempts" in caplog.text
    assert refill.counts == Counts(generated=8, all_wrong=8, attempts=2, wanted=4, scored=16)
    refill(learner_of(HARD), 2)
    assert refill.total.generated == 8 + refill.counts.generated
    assert not refill.total.complete


def test_a_broken_verifier_is_not_hidden_by_more_attempts(caplog) -> None:
    def down(policy, step):
        return [group(FAULT, FAULT), group(RIGHT, WRONG), group(FAULT, RIGHT)]

    refill = Refill(down, 3, max_none_share=0.4)
    assert [g.masked for g in refill(None, 1)] == [2, 0, 1]
    assert (refill.counts.attempts, refill.counts.kept, refill.counts.masked) == (1, 3, 3)
    assert "3 of 6 episodes have no reward" in caplog.text


def test_shaped_rewards_do_not_make_a_group_worth_keeping() -> None:
    """The case of verl-recipe#125: all wrong, but some with good form."""
    rubric = Rubric({"answer": equal, "form": lambda reply, _: reply.istitle()}, gate=None)
    env = TextEnv(HARD.source, rubric)
    calls = iter(range(100))
    groups = rollout(env, FunctionPolicy(lambda m: ("No", "no")[next(calls) % 2]), 3, 2)
    assert all(len(set(g.rewards)) == 2 for g in groups)
    assert drop_flat(groups)[0] == []


def test_bad_settings_are_refused() -> None:
    with pytest.raises(ValueError, match="at least 1, got 0 and 4"):
        Refill(training, 0)
    with pytest.raises(ValueError, match=r"max_none_share must be in \[0, 1\], got 2"):
        Refill(training, 1, max_none_share=2)
