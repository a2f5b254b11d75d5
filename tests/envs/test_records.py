"""Task, Episode and EpisodeGroup: equality, JSON, and what they refuse."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.envs import Completion, Episode, EpisodeGroup, Span, Task
from assay.verifiers import Status, Verdict

text = st.text(max_size=20)
scores = st.floats(0, 1)
verdicts = st.one_of(
    st.builds(
        Verdict,
        st.sampled_from([s for s in Status if not s.ours]),
        scores,
        text,
        st.none() | text,
        st.dictionaries(text, st.none() | scores, max_size=3),
        st.floats(0, 10),
    ),
    st.builds(Verdict.fault, st.sampled_from([s for s in Status if s.ours]), text),
)
spans = st.lists(
    st.lists(st.tuples(st.integers(0, 99), st.floats(-9, 0)), max_size=4).map(
        lambda pairs: Span("model", tuple(i for i, _ in pairs), tuple(p for _, p in pairs))
    ),
    max_size=2,
).map(tuple)
episodes = st.builds(
    Episode,
    task_id=st.just("t"),
    turns=st.lists(
        st.fixed_dictionaries({"role": st.sampled_from(["assistant", "user"]), "content": text}),
        max_size=3,
    ).map(tuple),
    verdict=verdicts,
    step_rewards=st.lists(st.none() | scores, max_size=2).map(tuple),
    truncated=st.booleans(),
    spans=spans,
)


@settings(deadline=None, derandomize=True)
@given(st.lists(episodes, max_size=3), text, text)
def test_a_group_survives_json(found, prompt, reference) -> None:
    task = Task(prompt, reference, id="t", metadata={"level": 3}, solution="s")
    group = EpisodeGroup(task, tuple(found))
    assert EpisodeGroup.from_json(json.loads(json.dumps(group.to_json()))) == group


def test_what_json_would_change_is_made_plain_or_refused() -> None:
    task = Task("?", {"pair": (1, (2, 3))}, id="t", metadata={"levels": (1,)})
    group = EpisodeGroup(task, [Episode("t", [{"role": "assistant", "content": "x"}], verdict())])
    assert task.reference == {"pair": [1, [2, 3]]}
    assert EpisodeGroup.from_json(json.loads(json.dumps(group.to_json()))) == group


def verdict():
    return Verdict("correct", np.float32(1.0), parts={"a": True})


def test_scores_are_plain_numbers_and_statuses_are_known() -> None:
    assert json.dumps(verdict().to_json()["parts"]) == '{"a": 1.0}'
    assert verdict().status is Status.CORRECT


def test_records_keep_copies() -> None:
    parts, metadata, reference = {"a": 1.0}, {"level": 1}, {"tests": ["x"]}
    found, task = Verdict(Status.CORRECT, 1.0, parts=parts), Task("?", reference, "t", metadata)
    parts["a"], metadata["level"] = 0.0, 2
    reference["tests"].append("y")
    assert (found.parts, task.metadata, task.reference) == (
        {"a": 1.0}, {"level": 1}, {"tests": ["x"]},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("make", "words"),
    [
        *[
            (lambda prompt=prompt: Task(prompt, 1), "message")
            for prompt in ([], [{"role": "user"}], [{"content": "x"}])
        ],
        *[
            (lambda c=c: Task([{"role": "user", "content": c}], 1), "content must be text")
            for c in (None, 3, [{"type": "image"}])
        ],
        *[(lambda c=c: Completion(c), "a reply must be text") for c in (None, 3, ["x"])],
        (lambda: Span("model", (1, 2), (-0.5,)), "2 ids and 1 logprobs"),
        (
            lambda: EpisodeGroup(Task("?", 1, id="t"), (Episode("o", (), Verdict.correct()),)),
            "'t', got an episode of 'o'",
        ),
        (lambda: Task("?", {1: 2}), "keys must be strings, as in JSON, got 1"),
        (lambda: Verdict("right", 1.0), "right"),
        (lambda: Verdict("correct", "1"), "score must be"),
        (lambda: Verdict("correct", float("nan")), "score must be"),
    ],
)
def test_what_is_no_record_is_refused(make, words) -> None:
    with pytest.raises((ValueError, TypeError), match=words):
        make()
