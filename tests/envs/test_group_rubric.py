"""Rewards with the group in view."""

import pytest

from assay.envs import (
    BestOnly,
    Completion,
    Episode,
    EpisodeGroup,
    GroupRubric,
    GroupVectorEnv,
    Rows,
    ShortReplies,
    Span,
    Task,
    TextEnv,
    Tournament,
    play,
)
from assay.verifiers import FunctionVerifier, PairwiseJudge, Status, Verdict, Verifier

TASK = Task("Why?", "x", id="t")
FAULT = Verdict.fault(Status.SANDBOX_ERROR, "gone")


def said(text, verdict=None) -> Episode:
    right = text.startswith("right")
    verdict = verdict or (Verdict.correct() if right else Verdict.wrong("no"))
    return Episode("t", ({"role": "assistant", "content": text},), verdict)


class LongerWins(Verifier):
    """Prefers the longer reply; remembers what it was asked; fails at ``broken``."""

    def __init__(self) -> None:
        self.asked = []

    def judge(self, reply, reference):
        other = reference["answer"]
        self.asked.append((reply, other))
        assert reference["question"] == TASK.text
        if "broken" in reply + other:
            return Verdict.fault(Status.VERIFIER_ERROR, "no answer")
        if len(reply) == len(other):
            return Verdict.wrong("a tie", score=0.5)
        return Verdict.correct() if len(reply) > len(other) else Verdict.wrong("shorter")


def test_length_is_compared_with_the_groups_correct_replies() -> None:
    episodes = [said("right"), said("right...."), said("right.."), said("wrong" * 9), said("w")]
    assert ShortReplies().rewards(TASK, episodes) == [1.0, 0.0, 0.5, 0.0, 0.0]
    assert ShortReplies().rewards(TASK, episodes[3:]) == [0.0, 0.0]
    assert ShortReplies().rewards(TASK, [said("right"), said("right")]) == [0.5, 0.5]


def test_compared_with_all_it_is_kimis_reward_plus_a_half() -> None:
    """Lengths 5, 9, 1 and 11: lambda is 0.5 - (n - 1) / 10; wrong ones earn at most 0."""
    episodes = [said("right"), said("right...."), said("w"), said("w" * 11)]
    kimi = [0.1, -0.3, min(0.0, 0.5), -0.5]
    found = ShortReplies(among="all").rewards(TASK, episodes)
    assert found == pytest.approx([k + 0.5 for k in kimi])


def test_lengths_are_tokens_where_all_have_tokens() -> None:
    def with_tokens(text, n):
        spans = (Span("environment", (9,) * 50), Span("model", (1,) * n, (-0.1,) * n))
        turns = ({"role": "assistant", "content": text},)
        return Episode("t", turns, Verdict.correct(), spans=spans)

    episodes = [with_tokens("right long text", 2), with_tokens("right", 4)]
    assert ShortReplies().rewards(TASK, episodes) == [1.0, 0.0]
    assert ShortReplies().rewards(TASK, [episodes[0], said("right")]) == [0.0, 1.0]


def test_a_tournament_asks_about_each_pair_once() -> None:
    judge = LongerWins()
    episodes = [said("right"), said("right!!"), said("wrong"), said("right!"), said("right!")]
    found = Tournament(judge).rewards(TASK, episodes)
    assert found == pytest.approx([0.0, 1.0, 0.0, 0.5, 0.5])
    assert len(judge.asked) == 6
    assert not any("wrong" in pair for pair in judge.asked)
    judge.asked.clear()
    Tournament(judge, among="all", opponents=2).rewards(TASK, episodes)
    assert len(judge.asked) == 5
    assert Tournament(judge).rewards(TASK, [said("right"), said("no")]) == [0.5, 0.0]


def test_a_comparison_without_a_score_counts_for_nobody() -> None:
    episodes = [said("right"), said("right!"), said("right broken")]
    assert Tournament(LongerWins()).rewards(TASK, episodes) == [0.0, 1.0, None]


def test_an_empty_reply_loses_and_spares_nobody_a_comparison() -> None:
    class Strict(LongerWins):
        def check_reference(self, reference):
            return None if reference["answer"] else "no reply to compare with"

    found = Tournament(Strict(), among="all").rewards(TASK, [said("a"), said(""), said("ab")])
    assert found == [0.5, 0.0, 1.0]
    ring = [said(text) for text in ("", "", "", "ab", "a")]  # all neighbours of one are empty
    found = Tournament(Strict(), among="all", opponents=2).rewards(TASK, ring)
    assert found == [0.0, 0.0, 0.0, 1.0, 0.5]
    assert Tournament(Strict(), among="all").rewards(TASK, [said(""), said("")]) == [0.0, 0.0]

    class Useless(LongerWins):
        def check_reference(self, reference):
            return "no criteria"

        def verify_many(self, replies, references):
            return [Verdict.fault(Status.BAD_GOLD, "no criteria")] * len(replies)

    found = Tournament(Useless(), among="all").rewards(TASK, [said("a"), said("")])
    assert found == [None, None]


def test_pairs_go_to_a_real_judge() -> None:
    """Its references are understood; nothing answers at its address, so nobody wins."""
    judge = PairwiseJudge("m", base_url="http://127.0.0.1:9/v1", attempts=1, timeout_s=5.0)
    rubric = GroupRubric({"better": Tournament(judge)})
    episodes = [said("right"), said("right!"), said("w")]
    assert [e.reward for e in rubric.judged(TASK, episodes)] == [None, None, 0.0]
    rubric.close()


def test_only_the_best_is_paid() -> None:
    half = Verdict.wrong("half", score=0.5)
    assert BestOnly().rewards(TASK, [said("w"), said("", half), said("", half)]) == [0.0, 1.0, 1.0]
    episodes = [said("right"), said("right!!"), said("w")]
    assert BestOnly(ShortReplies()).rewards(TASK, episodes) == [1.0, 0.0, 0.0]
    assert BestOnly(Tournament(LongerWins())).rewards(TASK, episodes) == [0.0, 1.0, 0.0]


def test_parts_are_weighed_behind_the_outcome_and_shown_by_name() -> None:
    rubric = GroupRubric({"length": ShortReplies(among="all")}, weights={"length": 0.25})
    half = Verdict.wrong("half", score=0.5)
    episodes = [said("right"), said("right...."), said("w", half), said("", FAULT)]
    found = rubric.judged(TASK, episodes)
    assert [e.reward for e in found] == pytest.approx([0.9, 0.8, 0.4, None])
    assert found[0].rewards == {"rubric": 1.0, "length": 0.5}
    assert found[2].rewards == {"rubric": 0.5, "length": 0.5}
    assert found[0].status is Status.CORRECT
    assert found[3] == episodes[3]
    open_to_all = GroupRubric({"length": ShortReplies(among="all")}, gate=False)
    assert open_to_all.judged(TASK, episodes)[2].reward == pytest.approx(0.5)


class Failing:
    """A part that does what its argument says."""

    def __init__(self, found) -> None:
        self.found, self.closed = found, False

    def rewards(self, task, episodes):
        if isinstance(self.found, Exception):
            raise self.found
        return self.found

    def close(self) -> None:
        self.closed = True


def test_a_part_that_fails_leaves_those_it_is_owed_to_without_a_reward() -> None:
    rubric = GroupRubric({"judge": Failing(OSError("server gone"))})
    right, wrong = rubric.judged(TASK, [said("right"), said("w")])
    assert (right.status, right.reward) == (Status.VERIFIER_ERROR, None)
    assert right.verdict.reason == "judge: OSError: server gone"
    assert (wrong.status, wrong.reward) == (Status.INCORRECT, 0.0)
    watched = GroupRubric({"judge": Failing([None])}, weights={"judge": 0.0})
    assert watched.judged(TASK, [said("right")])[0].reward == 1.0


@pytest.mark.parametrize("value", [float("nan"), 1.5, -0.1, float("-inf"), "much", [1.0]])
def test_what_is_no_reward_is_our_fault_and_never_ends_a_run(value) -> None:
    class Odd:
        def rewards(self, task, episodes):
            return [value] * len(episodes)

        def close(self):
            pass

    right, wrong = GroupRubric({"odd": Odd()}).judged(TASK, [said("right"), said("wrong")])
    assert (right.reward, right.status) == (None, Status.VERIFIER_ERROR)
    assert f"a reward must be in [0, 1], got {value!r}" in right.verdict.reason
    assert wrong.reward == 0.0


def test_what_cannot_be_meant_is_refused() -> None:
    for parts, weights, words in (
        ({}, None, "at least one part"),
        ({"rubric": BestOnly()}, None, "is taken"),
        ({"best": BestOnly()}, {"bets": 1}, "no part 'bets'; the parts are best"),
        ({"best": BestOnly()}, {"best": -1}, "weight of 'best' must be 0 or more"),
    ):
        with pytest.raises(ValueError, match=words):
            GroupRubric(parts, weights=weights)
    for part in (ShortReplies, 5, None):
        with pytest.raises(TypeError, match="part 'length' must be an object as ShortReplies"):
            GroupRubric({"length": part})
    for part in ("accuracy", ShortReplies):  # every right reply would have no reward
        with pytest.raises(TypeError, match="part must be an object as ShortReplies"):
            BestOnly(part)
    with pytest.raises(TypeError, match="parts must be a dict"):
        GroupRubric(ShortReplies())
    with pytest.raises(ValueError, match="among must be"):
        ShortReplies(among="right")
    with pytest.raises(ValueError, match="opponents must be at least 1"):
        Tournament(LongerWins(), opponents=0)
    with pytest.raises(ValueError, match="expected 1, got 0"):
        GroupRubric({"odd": Failing([])}).judged(TASK, [said("right")])
    named = Verdict(Status.CORRECT, 1.0, parts={"best": 1.0})
    with pytest.raises(ValueError, match="part named 'best' too"):
        GroupRubric({"best": BestOnly()}).judged(TASK, [said("right", named)])


def test_every_way_to_a_group_applies_it() -> None:
    def equal(reply, gold):
        return reply.startswith(gold)

    env = TextEnv(Rows([Task("Say x.", "x", id="t")]), FunctionVerifier(equal))
    part = Failing([1.0, 0.0, 0.5])
    env.group_rubric = GroupRubric({"odd": part})
    (group,) = play(env, lambda c: [Completion("x"), Completion("no"), Completion("x")],
                    [env.task(0)], 3)  # fmt: skip
    assert group.rewards == (1.0, 0.0, 0.75)
    assert EpisodeGroup.from_json(group.to_json()) == group
    vector = GroupVectorEnv(env, num_envs=3, group_size=3)
    vector.reset()
    _, rewards, *_, infos = vector.step(["x", "no", "x"])
    assert tuple(rewards) == group.rewards
    assert infos["rewards"]["odd"].tolist() == [1.0, 0.0, 0.5]
    env.close()
    assert part.closed
