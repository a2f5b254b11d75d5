"""Known answers for the verifiers that come with Assay, so each can be audited by its name."""

from __future__ import annotations

from ..verifiers import Verifier
from .audit_subject import Sample, parts

_NUMBERS = ("42", "-7", "3/4", "0.75", "1,024", r"\frac{22}{7}", "18", "365")
_MATHS = (
    *_NUMBERS, r"3\sqrt{13}", "(1, 2)", "x^2+2x+1", r"\text{even}", r"[0, 5)", r"\{1, 2, 3\}",
    r"\begin{pmatrix} 1 & 2 \\ 3 & 4 \end{pmatrix}", "x = 5",
)  # fmt: skip
_COUNTDOWN = (
    ([3, 7, 25], 46, "25+7*3"),
    ([2, 4, 6], 16, "4*(6-2)"),
    ([1, 5, 5, 9], 24, "(9-5)*(1+5)"),
    ([8, 3], 24, "8*3"),
)
_CODE = (
    ({"tests": "assert add(1, 2) == 3\nassert add(-4, 1) == -3", "entry_point": "add"},
     "```python\ndef add(a, b):\n    return a + b\n```"),
    ({"stdio": [["21\n", "42\n"], ["-3\n", "-6\n"]]},
     "```python\nprint(int(input()) * 2)\n```"),
    ({"calls": {"function": "up", "cases": [[["ab"], "AB"], [["xYz"], "XYZ"]]}},
     "```python\ndef up(text):\n    return text.upper()\n```"),
)  # fmt: skip


def samples_for(verifier: Verifier) -> list[Sample]:
    """Known answers that suit a verifier; none where it is none of ours, nor made of ours."""
    kinds = {type(part).__name__ for part in parts(verifier)}
    if "Code" in kinds:
        return [Sample(reference, reply) for reference, reply in _CODE]
    if "Countdown" in kinds:
        tagged = "<think>I try.</think><answer>%s</answer>" if "Format" in kinds else "%s"
        return [Sample({"numbers": n, "target": t}, tagged % reply) for n, t, reply in _COUNTDOWN]
    if "Math" in kinds:
        return [Sample(reference) for reference in _MATHS]
    if "Exact" in kinds:
        return [Sample(text) for text in ("Paris", "a cat", "42", "B", "new york", "x**2")]
    return [Sample(None)] if kinds == {"Format"} or kinds == {"Rubric", "Format"} else []
