"""The package through which verifiers read: numbers, boxes, labels, fences and markup."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.verifiers import Json, Math, MultipleChoice, ShortAnswer, XmlStructure
from assay.verifiers.text.beside import beside
from assay.verifiers.text.extract import final_answer
from assay.verifiers.text.fences import fenced_blocks, unfenced
from assay.verifiers.text.labels import unlabelled
from assay.verifiers.text.markup import TEXT_COMMANDS, strip_markup, unwrap_text
from assay.verifiers.text.thought import after_thinking

NUMBER = ("last_number",)


@given(st.text("0123456789 -−–.,/^_{}()[]\\$*%eExfrac!?of", max_size=40))
def test_any_mix_of_signs_is_read_or_refused(text: str) -> None:
    found = final_answer(text, NUMBER)
    assert (found.text is None) == bool(found.reason)


@given(
    st.text("-+*/^_=$\\{}()[]|<>!% 1xab.\n", max_size=20),
    st.text("-+*/^_=$\\{}()!% 1xa\n", max_size=20),
)
def test_what_stands_beside_a_box_is_always_read(before: str, after: str) -> None:
    found = beside(f"{before}\\boxed{{5}}{after}", len(before), len(before) + 9)
    assert found is None or all(isinstance(part, str) for part in found)


def test_a_label_goes_from_the_beginning_of_a_text() -> None:
    assert unlabelled("The solution is: A, B") == "A, B"
    assert unlabelled("答案是 A") == "A"


@pytest.mark.parametrize("command", TEXT_COMMANDS)
def test_every_text_command_is_read_by_every_verifier(command: str) -> None:
    choice = {"answer": "B", "options": ["Oslo", "Bergen"]}
    assert MultipleChoice().verify(rf"\boxed{{\{command}{{B}}}}", choice).score == 1.0
    assert ShortAnswer().verify(rf"\boxed{{\{command}{{Bergen}}}}", "Bergen").score == 1.0
    assert unwrap_text(rf"\{command}{{a}}") == "a"


def test_colours_sizes_bold_and_dollars_are_no_part_of_an_answer() -> None:
    for text in (r"$\textcolor{red}{B}$", r"\Large B", "**B**", "__B__", "`B`", r"\(B\)"):
        assert strip_markup(text) == "B", text


MARKS = ("```", "````", "~~~", "~~~~~")


@pytest.mark.parametrize("mark", MARKS)
def test_a_fence_of_any_length_is_read_by_every_verifier(mark: str) -> None:
    def fenced(text: str, language: str = "") -> str:
        return f"{mark}{language}\n{text}\n{mark}"

    assert Math(extract=("fence",)).verify(fenced("8"), "8").score == 1.0
    assert Math().verify("Answer:\n" + fenced("8"), "8").score == 1.0
    assert ShortAnswer().verify(fenced("Oslo"), "Oslo").score == 1.0
    assert Json().verify(fenced('{"a": 1}', "json"), None).score == 1.0
    assert XmlStructure().verify(fenced("<a>8</a>", "xml"), ["a"]).score == 1.0


def test_a_fence_in_a_docstring_closes_nothing() -> None:
    blocks, unclosed = fenced_blocks('```python\ns = """\n```\n"""\nprint(s)\n```\n')
    assert unclosed is None
    assert [block.text for block in blocks] == ['s = """\n```\n"""\nprint(s)\n']


@given(st.sampled_from(MARKS), st.text("abc\n {}", max_size=20).filter(lambda t: t.strip() == t))
def test_a_fence_around_a_text_comes_off(mark: str, text: str) -> None:
    assert unfenced(f"{mark}\n{text}\n{mark}") == text


def test_end_tokens_are_no_part_of_what_follows_a_thought() -> None:
    assert after_thinking("<think>8</think>9<|im_end|>\n<|endoftext|>") == "9"
