r"""Format an answer so that an extraction rule finds it: ``\boxed{42}``, ``#### 42``, ..."""

from __future__ import annotations

from collections.abc import Sequence

_FORMS = {
    "boxed": r"\boxed{%s}",
    "answer": "<answer>%s</answer>",
    "hash": "#### %s",
    "phrase": "The answer is %s.",
    "last_math": "$%s$",
}


def given_as(answer: str, rules: Sequence[str] | None) -> str:
    r"""Format an answer as the first of some extraction rules reads it.

    Args:
        answer: bare.
        rules: names, as for :func:`~assay.verifiers.text.extract.final_answer`; ``None`` for none.

    Example:
        >>> given_as("42", ("boxed", "hash"))
        '\\boxed{42}'
    """
    # replace, not %: an answer may hold percent signs
    return _FORMS.get(rules[0] if rules else "", "%s").replace("%s", answer)
