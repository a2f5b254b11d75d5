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

READ_WHOLE = [
    ("x = - 9", "-9"),
    ("so $x=-\\;9$", "-9"),
    ("so x=⁻9", "-9"),
    ("We find −9", "-9"),
    ("It is negative 9", "-9"),
    ("The change is minus 9", "-9"),
    ("- 9", "-9"),
    ("$x={-9}$", "-9"),
    ("x = +9", "9"),
    (r"so $4\frac{1}{7}$", r"4\frac{1}{7}"),
    (r"so $-4\frac{1}{7}$", r"-4\frac{1}{7}"),
    ("it is 4 1/7", "4 1/7"),
    (r"it is $\frac37$", r"\frac37"),
    ("x = 9e4", "9e4"),
    ("so 2.5E-3", "2.5E-3"),
    ("9 percent", "9%"),
    ("it is __9__", "9"),
    ("_9_", "9"),
    (r"$\boldsymbol{9}$", "9"),
    ("it costs \\$9", "9"),
    ("一共有9个", "9"),
    ("that adds up to 9", "9"),
    ("the 9th", "9"),
    ("<b>9</b>", "9"),
    ("f(4) = 9", "9"),
    ("10 - 1 = 9", "9"),
    ("x ≈ 9", "9"),
    ("The sum of all is 9 km/h", "9"),
]


@pytest.mark.parametrize(("reply", "number"), READ_WHOLE)
def test_a_last_number_is_read_with_its_sign_and_all_its_parts(reply: str, number: str) -> None:
    assert final_answer(reply, NUMBER).text == number


PARTS = """
We get – 9|8 of 9|8 out of 9|one in 9|3 groups of 9|twice 9|half of 9|the cube of 9|sqrt 9|arcsin 9
9 factorial|9!|9 squared|9 thirds|9 twelfths|9k|9bn|9 mn|9 dozen|9 lakh|9 point two|9-fold|9万|9‰
9 choose three|9 modulo x|x mod 9|in base 9|9 in base two
9th power of x|2 to the 9|two to the power 9
{2, 9}|[2, 9)|(9, ∞)|(-∞, 9]|gcd(x, 9)|2–9|2 – 9|9:2|9½|9²|9·x|∛9|± 9|9+|9'
Theorem 9|by Lemma 9.|Corollary 9|Fig. 9|p. 9|version 9|No. 9|#9|see [9]|Chapter 9|Table 9
such as 9|e.g. 9|starting with 9|my guess is 9|close to 9|I tried 9|let x = 9|between x and 9
9 less than y|9 plus y|9 times x|9 times two|9 minus x|9 over four|9 and a half|9 out of ten
five and 2/9x|x^9|x^{9}|\\log_2 9|\\pmod 9|A9|C_9|0x9|9e|1,000 9
"""


@pytest.mark.parametrize("reply", [part for line in PARTS.split("\n") for part in line.split("|")])
def test_a_number_that_is_part_of_something_else_is_no_answer(reply: str) -> None:
    found = final_answer("So it is " + reply if reply else "", NUMBER)
    assert found.text is None, found


@given(st.text("0123456789 -−–.,/^_{}()[]\\$*%eExfrac!?of", max_size=40))
def test_any_mix_of_signs_is_read_or_refused(text: str) -> None:
    found = final_answer(text, NUMBER)
    assert (found.text is None) == bool(found.reason)


BESIDE = [
    (r"$a=-\boxed{8}$", "-8"),
    (r"x = -\boxed{8}", "-8"),
    (r"$-\;\boxed{8}$", "-8"),
    (r"$x = −\boxed{8}$", "-8"),
    (r"$-\mathbf{\boxed{8}}$", "-8"),
    (r"$-\boxed{x+8}$", "-(x+8)"),
    (r"$\pm\boxed{8}$", r"\pm8"),
    (r"$\boxed{8}\%$", r"8\%"),
    (r"\boxed{8} million", r"8\text{ million}"),
    (r"$x = \boxed{8}$ cm", "8"),
    (r"$x = \boxed{8}\,\mathrm{cm}$.", "8"),
    (r"So the length - \boxed{8}", "8"),
    (r"- \boxed{8}", "8"),
    (r"**\boxed{8}**", "8"),
    (r"$\begin{aligned} x &= 9 - 1 \\ &= \boxed{8} \end{aligned}$", "8"),
    (r"$\angle B = \boxed{8}^\circ$", "8"),
    (r"$9-1=\boxed{8}$", "8"),
    (r"$f(2)$ is \boxed{8}", "8"),
    (r"\boxed 8", "8"),
    (r"$\boxed B$", "B"),
]


@pytest.mark.parametrize(("reply", "answer"), BESIDE)
def test_a_sign_or_unit_beside_a_box_counts(reply: str, answer: str) -> None:
    assert final_answer(reply).text == answer


@pytest.mark.parametrize(
    "reply",
    [r"$3\boxed{8}$", r"3\boxed{8}", r"$x\boxed{8}$", r"$1+\boxed{8}$", r"$9-\boxed{8}$",
     r"$3\cdot\boxed{8}$", r"$\frac{1}{\boxed{8}}$", r"$\sqrt{\boxed{8}}$", r"$2^{\boxed{8}}$",
     r"$\boxed{8}^2$", r"$\boxed{8}_9$", r"$\boxed{8}x$", r"$\boxed{8}\pi$", r"$\boxed{8}!$",
     r"$\boxed{8}+1$", r"$\boxed{8}0$", r"$\boxed{8}\sqrt{3}$", r"$1.\boxed{8}$",
     r"$x \ne \boxed{8}$", r"$\log\boxed{8}$", r"\boxed{7} / \boxed{8}"],
)  # fmt: skip
def test_a_box_inside_a_larger_formula_is_no_answer(reply: str) -> None:
    found = final_answer(reply)
    assert (found.text, found.reason) == (None, "the box is a part of a larger formula")


@given(
    st.text("-+*/^_=$\\{}()[]|<>!% 1xab.\n", max_size=20),
    st.text("-+*/^_=$\\{}()!% 1xa\n", max_size=20),
)
def test_what_stands_beside_a_box_is_always_read(before: str, after: str) -> None:
    found = beside(f"{before}\\boxed{{5}}{after}", len(before), len(before) + 9)
    assert found is None or all(isinstance(part, str) for part in found)


@pytest.mark.parametrize(
    ("reply", "answer"),
    [("\\boxed{3}\n\nFinal answer: 8", "8"), ("\\boxed{3}\n#### 8", "8"),
     ("\\boxed{3}\n<answer>8</answer>", "8"), ("\\boxed{3}\n**Answer:** $8$", "8"),
     ("\\boxed{8}\n\nThe answer is correct.", "8"), ("\\boxed{8}\nAnswer: see above", "8"),
     ("The answer is 3.\n\\boxed{8}", "8"), (r"\boxed{8} #### 3", "8")],
)  # fmt: skip
def test_an_answer_line_after_the_box_decides(reply: str, answer: str) -> None:
    assert final_answer(reply).text == answer
    assert final_answer(reply, ("boxed",)).text in ("3", "8")


@pytest.mark.parametrize(
    ("reply", "answer"),
    [("The solution is 8.", "8"), ("The solutions are 8 and 9.", "8 and 9"),
     ("答案是**8**。", "8"), ("答案：8", "8"), ("最终答案为 8。", "8"),
     ("Final Answer: The smallest $k$ is 8.", "8"), ("Final answer: There are 8 ways.", "8 ways"),
     ("**Final Answer**\n\n$x^2+8$", "x^2+8"), ("## Answer\n8", "8"), ("ANSWER: 8", "8"),
     ("Answer:\n````\n8\n````", "8"), ("Answer: x^2+8, where x is real.", "x^2+8"),
     ("The solution is to add 3 and 5, which gives 8.", "8")],
)  # fmt: skip
def test_labels_are_one_grammar(reply: str, answer: str) -> None:
    assert final_answer(reply).text == answer


@pytest.mark.parametrize(
    "reply", ["错误答案是8", "The wrong solution is 8.", "The answer isn't 8."]
)
def test_a_denied_label_is_no_answer(reply: str) -> None:
    assert final_answer(reply).text is None


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


@pytest.mark.parametrize(
    "reply",
    ["30 km is wrong", "30 pears, which is incorrect.", "30 kg, not", "30 km?",
     "4 hours 30 minutes", "30% y", "30% + k"],
)  # fmt: skip
def test_a_unit_or_percent_sign_hides_no_denial(reply: str) -> None:
    assert final_answer(reply, ("last_number",)).text is None


@pytest.mark.parametrize("reply", ["It is 30 km long.", "It fell by 30%.", "30 pears are left"])
def test_a_quantity_by_itself_is_read(reply: str) -> None:
    assert final_answer(reply, ("last_number",)).text in {"30", "30%"}
