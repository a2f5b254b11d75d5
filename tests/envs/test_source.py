"""Tasks by index, disjoint splits, and schedules that leave nothing out."""

import pytest

from assay.envs import Generated, Rows, Task


def sums(rng):
    a, b = (int(n) for n in rng.integers(30, size=2))
    return Task(f"{a}+{b}=", reference=str(a + b))


def test_train_and_test_share_no_prompt_and_cover_all() -> None:
    train = Generated(sums, name="sums", split="train")
    test = Generated(sums, name="sums", split="test", seed=5)
    seen = [{s.task(i).text for i in range(n)} for s, n in ((train, 4000), (test, 1000))]
    assert not seen[0] & seen[1]
    assert len(seen[0] | seen[1]) > 880  # of 900
    assert 50 < len(seen[1]) < 130  # about a tenth


def test_a_generator_of_one_prompt_cannot_fill_both_splits() -> None:
    only = [Generated(lambda rng: Task("?", 1), name="one", split=s) for s in ("train", "test")]
    outcomes = []
    for source in only:
        try:
            outcomes.append(source.task(0).text)
        except RuntimeError as error:
            outcomes.append(str(error))
    assert sum("made no" in o for o in outcomes) == 1


def test_every_epoch_takes_every_row_once_in_another_order() -> None:
    rows = Rows([Task(str(i), reference=i) for i in range(50)])
    epochs = [[rows.schedule(e * 50 + i, seed=3) for i in range(50)] for e in range(2)]
    assert sorted(epochs[0]) == sorted(epochs[1]) == list(range(50))
    assert epochs[0] != epochs[1]


@pytest.mark.parametrize(
    ("tasks", "words"),
    [([], "at least one task"), ([Task("a", 1, id="x"), Task("b", 1, id="x")], "'x' twice")],
)
def test_rows_refuse_what_cannot_be_addressed(tasks, words) -> None:
    with pytest.raises(ValueError, match=words):
        Rows(tasks)


def test_indices_outside_the_rows_name_the_range() -> None:
    with pytest.raises(IndexError, match="from 0 to 1, got 2"):
        Rows([Task("a", 1), Task("b", 2)]).task(2)
    with pytest.raises(IndexError, match="from 0 to 1, got -1"):
        Rows([Task("a", 1), Task("b", 2)]).task(-1)


class Rated(Task):
    """A user's own kind of task, with room for more."""


def test_a_task_that_makes_no_id_gets_one_and_stays_what_it_is() -> None:
    shared = Rated("2+2=", "4", metadata={"digits": 1}, solution="4")
    found = Rows([shared]).task(0)
    assert (type(found), found.id, shared.id) == (Rated, "0", "")
    plain = Task("2+2=", "4", metadata={"digits": 1}, solution="4")
    named = plain.named("x")
    assert named == Task("2+2=", "4", "x", {"digits": 1}, "4")
    assert (type(named), named.text) == (Task, "2+2=")
    with pytest.raises(AttributeError):
        named.id = "y"
