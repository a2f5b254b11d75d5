import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.verifiers import Boxed, Status


@pytest.mark.parametrize(
    "reply",
    [
        r"\boxed{42}",
        r"So $x = \boxed{\frac{1}{2}}$.",
        r"\boxed{\pi}",
        r"\boxed{\emptyset}",
        r"\boxed{∞}",
        r"\boxed {42}",
        r"\fbox{42}",
        r"\boxed{\text{east}}",
        r"\boxed{x = 1 \text{ or } x = 2}",
        r"\boxed{\{1, 2\}}",
        "\\boxed{\n\\begin{pmatrix} 1 \\\\ 2 \\end{pmatrix}\n}",
        r"<think>\boxed{1}, \boxed{2}, \boxed{</think>\boxed{42}",
        r"no thought was opened: \boxed{1}</think><answer>\boxed{42}</answer>",
        r"\boxed{for}",
        "\\boxed{42}<|im_end|>",
    ],
)
def test_one_box_wins(reply: str) -> None:
    assert Boxed().verify(reply, None).score == 1.0


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("42", "there are 0 boxes"),
        (r"\boxed 42", "there are 0 boxes"),
        (r"\boxed{41} \boxed{42}", "there are 2 boxes"),
        (r"I put it in \boxed{}: \boxed{42}", "there are 2 boxes"),
        (r"\boxed{\boxed{42}}", "a box in the box"),
        (r"\boxed{\text{so }\fbox{42}}", "a box in the box"),
        (r"\boxed{42", "never closed"),
        (r"\boxed{42} \boxed{", "never closed"),
        (r"\boxed{}", "the box is empty"),
        (r"\boxed{ \quad }", "the box is empty"),
        (r"\boxed{\text{}}", "the box is empty"),
        (r"\boxed{\ldots}", "the box is empty"),
        (r"\boxed{\square}", "the box is empty"),
        (r"\boxed{?}", "the box is empty"),
        ("\\boxed{\u200b}", "the box is empty"),
        ("\\boxed{4\ud8002}", "the box is empty"),
        (r"\boxed{41 or 42}", "names candidates"),
        (r"<think>\boxed{42}</think> It is 42.", "there are 0 boxes"),
        (r"<think>\boxed{42}", "<think> is never closed"),
    ],
)
def test_anything_else_loses(reply: str, reason: str) -> None:
    verdict = Boxed().verify(reply, None)
    assert (verdict.status, verdict.score) == (Status.UNPARSEABLE, 0.0)
    assert reason in verdict.reason


@pytest.mark.parametrize(
    ("after", "last_line", "end"),
    [
        ("", True, True),
        (".$$\n\n", True, True),
        ("\n\\]\n**", True, True),
        ("\n\\end{align*}\n</answer>", True, True),
        (" apples.", True, False),
        ("\nDoes that help?", False, False),
    ],
)
def test_where_the_box_stands(after: str, last_line: bool, end: bool) -> None:
    reply = f"First\n<answer>\\boxed{{42}}{after}"
    assert Boxed().verify(reply, None).score == 1.0
    assert Boxed(where="last_line").verify(reply, None).score == float(last_line)
    assert Boxed(where="end").verify(reply, None).score == float(end)


@pytest.mark.parametrize(
    "options", [{"where": "top"}, {"count": 0}, {"count": 21}, {"count": True}]
)
def test_options_that_cannot_be_used_are_refused(options) -> None:
    with pytest.raises(ValueError, match="must be"):
        Boxed(**options)


@settings(deadline=None, derandomize=True, max_examples=200)
@given(
    st.lists(st.sampled_from(["a", "b", "7", " ", "\n", ".", "$"]), max_size=8), st.integers(0, 4)
)
def test_only_the_right_number_of_boxes_wins(words: list[str], number: int) -> None:
    reply = "".join(words) + r"\boxed{4}, ".join([""] * (number + 1))
    for count in (1, 2, 3):
        assert Boxed(count=count).verify(reply, None).score == float(number == count)


def test_a_megabyte_of_boxes_is_read_in_a_moment() -> None:
    started = time.process_time()
    for piece in (r"\boxed{", r"\boxed{4}", "{", "}", "\\", r"\boxed{or ", r"\text{", "or "):
        assert Boxed(where="end").verify(piece * (2**20 // len(piece)), None).score == 0.0
        assert Boxed().verify(rf"\boxed{{{piece * (2**20 // len(piece))}", None).score == 0.0
    assert time.process_time() - started < 60
