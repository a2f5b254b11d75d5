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


@pytest.mark.parametrize("prompt", [[], [{"role": "user"}], [{"content": "x"}]])
def test_a_prompt_needs_messages_with_role_and_content(prompt) -> None:
    with pytest.raises(ValueError, match="message"):
        Task(prompt, 1)


def test_a_group_holds_the_episodes_of_its_own_task() -> None:
    stray = Episode("other", (), Verdict.correct())
    with pytest.raises(ValueError, match="'t', got an episode of 'other'"):
        EpisodeGroup(Task("?", 1, id="t"), (stray,))


def test_a_models_tokens_come_with_their_log_probabilities() -> None:
    with pytest.raises(ValueError, match="2 ids and 1 logprobs"):
        Span("model", (1, 2), (-0.5,))


def test_what_json_would_change_is_made_plain_or_refused() -> None:
    task = Task("?", {"pair": (1, (2, 3))}, id="t", metadata={"levels": (1,)})
    group = EpisodeGroup(task, [Episode("t", [{"role": "assistant", "content": "x"}], verdict())])
    assert task.reference == {"pair": [1, [2, 3]]}
    assert EpisodeGroup.from_json(json.loads(json.dumps(group.to_json()))) == group
    with pytest.raises(ValueError, match="keys must be strings, as in JSON, got 1"):
        Task("?", {1: 2})


def verdict():
    return Verdict("correct", np.float32(1.0), parts={"a": True})


def test_scores_are_plain_numbers_and_statuses_are_known() -> None:
    assert json.dumps(verdict().to_json()["parts"]) == '{"a": 1.0}'
    assert verdict().status is Status.CORRECT
    for status, score in (("right", 1.0), ("correct", "1"), ("correct", float("nan"))):
        with pytest.raises(ValueError, match=r"right|score must be"):
            Verdict(status, score)


def test_records_keep_copies() -> None:
    parts, metadata, reference = {"a": 1.0}, {"level": 1}, {"tests": ["x"]}
    found, task = Verdict(Status.CORRECT, 1.0, parts=parts), Task("?", reference, "t", metadata)
    parts["a"], metadata["level"] = 0.0, 2
    reference["tests"].append("y")
    assert (found.parts, task.metadata, task.reference) == (
        {"a": 1.0}, {"level": 1}, {"tests": ["x"]},
    )  # fmt: skip


@pytest.mark.parametrize("content", [None, 3, [{"type": "image"}]])
def test_messages_and_replies_are_text(content) -> None:
    with pytest.raises(ValueError, match="content must be text"):
        Task([{"role": "user", "content": content}], 1)
    with pytest.raises(TypeError, match="a reply must be text"):
        Completion(content)
