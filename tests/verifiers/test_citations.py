import time

from hypothesis import given, settings
from hypothesis import strategies as st

from assay.verifiers import Citations
from assay.verifiers.form.citations import holds, plain, quotations, shielded

SOURCES = {
    "sources": [
        "Water boils at 100 °C at sea level. It is heated until the vapour escapes.",
        "Ice floats on\n water, because it's lighter.",
        "Steam burns.",
    ]
}


def test_quotations_are_read_whole() -> None:
    text = shielded('He said: “It is so. Is it?” And «that!» Then "a b" of a 3" bar.')
    assert quotations(text) == ["It is so. Is it?", "that!", "a b"]
    assert quotations(shielded('"a" and "b"')) == ["a", "b"]


@settings(deadline=None, derandomize=True, max_examples=150)
@given(st.text("abc \n", min_size=1, max_size=40), st.data())
def test_whatever_is_copied_is_held(source: str, data: st.DataObject) -> None:
    left, right = sorted(data.draw(st.tuples(*[st.integers(0, len(source))] * 2)))
    assert holds(plain(source), source[left:right])
    assert not holds(plain(source), source + "d")


@settings(deadline=None, derandomize=True, max_examples=150)
@given(
    st.lists(st.sampled_from(["[1]", "[2", "]", '"', "“", "”", ".", " ", "word", "\n", "-", "9"]))
)
def test_no_text_raises(pieces: list[str]) -> None:
    verdict = Citations(graded=True).verify("".join(pieces), SOURCES)
    assert verdict.score is not None


def test_long_texts_of_any_shape_are_read_in_a_moment() -> None:
    big = {"sources": ["ab " * 30_000 + "x", *["a" * 30_000] * 9]}
    quote = '"' + "ab " * 600 + 'y" '
    started = time.process_time()
    for piece in ("[1]", "[", "[1", '"', "“", '"a b c" [1] ', ". [1] ", ".", "a. [1] ", "[1,"):
        assert Citations().verify(piece * (100_000 // len(piece)), big).score is not None
    assert Citations(most=9).verify(f"{quote} [1-9]. " * 40, big).score == 0.0
    assert Citations().verify('"a a b b" [1]. ' * 200, big).reason == "more than 50 quotations"
    assert time.process_time() - started < 40
