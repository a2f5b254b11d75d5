"""Every registered id is held to all that an audit checks, not those alone that a test names.

How long replies fare depends on what judges alone. So ``time`` and ``memory`` are tried where it
is none of the verifiers that ``tests/verifiers/test_audits.py`` holds to them, and once for each.
"""

import json

import pytest

from assay.envs import audit, specs
from assay.envs.audit import CHECKS
from assay.envs.audit_subject import parts
from assay.envs.library import LIBRARY
from assay.naming import named
from assay.verifiers import Rubric
from assay.verifiers.catalogue import examples

IDS = [spec.id for spec in specs() if spec.id.startswith("assay/")]
PROGRAMS = {f"assay/{name}-v0" for name in ("APPS", "HumanEval", "LiveCodeBench", "MBPP")}
REPAIR = {"assay/CodeRepair-v0"}

UNCHECKED = {
    "canary": set(IDS) - PROGRAMS - REPAIR,  # no reply is run as a program
    "hedge": PROGRAMS | REPAIR | {"assay/IFEval-v0"},  # a program, or the form, is all there is
    "spam": {"assay/IFEval-v0"},
    "neighbour": {"assay/IFEval-v0"},
    "leakage": {"assay/ShortAnswer-v0"},  # its answers stand in the passage
    "splits": {f"assay/{name}-v0" for name in LIBRARY},  # a sample has one split
}
"""What cannot be checked, and where; all else must be."""

MEASURED = {e.name: e.verifier for e in reversed(examples()) if e.name not in ("Code", "Math")}


@pytest.fixture(scope="module")
def measured():
    """The judges whose time and memory are known, as JSON."""
    return {json.dumps(verifier.to_json()) for verifier in MEASURED.values()}


@pytest.mark.filterwarnings("ignore::UserWarning")  # a sandbox of namespaces says what it is
@pytest.mark.parametrize("id_", IDS)
def test_the_audit_passes(id_, measured, monkeypatch) -> None:
    monkeypatch.setenv("ASSAY_SANDBOX", "bwrap")
    found = named(id_, {"data": "sample"} if id_.split("/")[1][:-3] in LIBRARY else {})
    judges = [part for part in parts(found.thing.rubric) if not isinstance(part, Rubric)]
    new = {json.dumps(judge.to_json()) for judge in judges} - measured
    measured |= new
    report = audit(
        found.thing,
        tasks=2 if id_ in PROGRAMS else 4,
        prompts=100,
        sibling=found.sibling,
        skip=() if new else ("time", "memory"),
    )
    found.close()
    report.raise_for_failures()
    assert set(report.unchecked) == {name for name, ids in UNCHECKED.items() if id_ in ids}
    assert len(report.findings) == len(CHECKS) - (0 if new else 2)
