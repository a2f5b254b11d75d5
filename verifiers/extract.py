"""The former place of :mod:`assay.verifiers.text`; it goes with the next version."""

from __future__ import annotations

import warnings

from .text.answer import MAX_ANSWER, Answer
from .text.boxes import boxed_or_bare, boxes, unboxed
from .text.extract import DEFAULT_RULES, RULES, check_rules, final_answer
from .text.thought import after_thinking, without_end_tokens

__all__ = [
    "DEFAULT_RULES", "MAX_ANSWER", "RULES", "Answer", "after_thinking", "boxed_or_bare", "boxes",
    "check_rules", "final_answer", "unboxed", "without_end_tokens",
]  # fmt: skip

warnings.warn(
    "assay.verifiers.extract is now assay.verifiers.text: import final_answer from "
    "assay.verifiers.text.extract",
    DeprecationWarning,
    stacklevel=2,
)
