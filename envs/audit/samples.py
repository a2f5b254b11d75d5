"""Known answers for the verifiers that come with Assay, so each can be audited by its name."""

from __future__ import annotations

from ...verifiers import Format, Verifier
from ...verifiers.catalogue import examples_of
from .subject import Sample, parts


def samples_for(verifier: Verifier) -> list[Sample]:
    """Known answers that suit a verifier; none where it is none of ours, nor made of ours."""
    made_of = parts(verifier)
    form = [part for part in made_of if isinstance(part, Format)]
    answers = [part for part in made_of if part not in form]
    found = [example for part in answers or form for example in examples_of(part)]
    tagged = "<think>I try.</think><answer>%s</answer>" if form and answers else "%s"
    return [Sample(e.reference, tagged.replace("%s", e.wins[0])) for e in found]
