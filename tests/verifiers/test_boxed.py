import time

from hypothesis import given, settings
from hypothesis import strategies as st

from assay.verifiers import Boxed


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
