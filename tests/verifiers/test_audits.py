"""Every verifier of the catalogue passes the audit, with the options of its first example."""

import pytest

from assay.envs import Sample, audit
from assay.verifiers import Verifier
from assay.verifiers.catalogue import examples

pytestmark = pytest.mark.slow

ELSEWHERE = {"Code", "Math"}  # tests/envs/test_audit.py audits them
FIRST = {e.name: e.verifier for e in reversed(examples()) if e.name not in ELSEWHERE}


@pytest.mark.parametrize("name", sorted(FIRST))
def test_the_audit_finds_nothing(name: str) -> None:
    verifier: Verifier = FIRST[name]
    samples = [Sample(e.reference, e.wins[0]) for e in examples() if e.verifier == verifier]
    # A quarter of the default length: all of them at a megabyte would take minutes.
    audit(verifier, samples=samples, longest=1 << 18).raise_for_failures()
