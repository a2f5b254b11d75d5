"""Every registered id is held to all that an audit checks, not those alone that a test names.

What a reply costs, and whether it gets one verdict, depends on what judges it alone. So these
checks are made where ``tests/verifiers/test_audits.py`` does not make them, once for each judge.
"""

from importlib import import_module

import pytest

from assay.envs import PuzzleEnv, audit, specs
from assay.envs.audit import CHECKS
from assay.envs.audit.subject import parts
from assay.envs.datasets.library import LIBRARY
from assay.envs.puzzles import PUZZLES
from assay.naming import resolve
from assay.verifiers import Rubric
from assay.verifiers.catalogue import examples
from assay.verifiers.puzzles.puzzle import PuzzleVerifier

pytestmark = pytest.mark.slow

NO_SAMPLE = {"assay/Harbor-v0"}
IDS = [s.id for s in specs() if s.id.startswith("assay/") and s.id not in NO_SAMPLE]
SAMPLED = {f"assay/{name}-v1" for name in LIBRARY}
RUN = {f"assay/{n}-v1" for n in ("APPS", "HumanEval", "LiveCodeBench", "MBPP", "CodeRepair")}

WHOLE = {
    f"assay/{name}-v1"
    for name, (module, _) in PUZZLES.items()
    for kind in [getattr(import_module(f"assay.envs.puzzles.{module}"), name)]
    if issubclass(kind, PuzzleEnv) and isinstance(kind.verifier(), PuzzleVerifier)
} - {"assay/Integral-v1"} | {"assay/Countdown-v1", "assay/IFEval-v1", "assay/ShortAnswer-v1"}
"""Those whose answers are no single values, so nothing is known to be close to one."""

UNCHECKED = {
    "near": WHOLE | {"assay/Integral-v1"},
    "repeated": WHOLE | RUN,
    "long": {"assay/IFEval-v1"},
    "final": {"assay/IFEval-v1"},
    "canary": set(IDS) - RUN,  # no reply is run as a program
    "hedge": RUN | {"assay/IFEval-v1"},  # a program says one thing; and form is all there is
    "spam": {"assay/IFEval-v1"},
    "neighbour": {"assay/IFEval-v1"},
    "leakage": {"assay/ShortAnswer-v1"},  # its answers stand in the passage
    "splits": SAMPLED,  # a sample has one split
}
"""What cannot be checked, and where; all else must be."""

OF_JUDGES = ("determinism", "time", "memory")
HERE = {"Math": "assay/SVAMP-v1", "Code": "assay/APPS-v1", "Submission": "assay/CodeRepair-v1"}
"""By judge: with which id those checks are made here."""
THERE = {example.name for example in examples()} - set(HERE)


@pytest.mark.filterwarnings("ignore::UserWarning")  # a sandbox of namespaces says what it is
@pytest.mark.parametrize("id_", IDS)
def test_the_audit_passes(id_, monkeypatch) -> None:
    monkeypatch.setenv("ASSAY_SANDBOX", "bwrap")
    found = resolve(id_, {"data": "sample"} if id_ in SAMPLED else {})
    judges = {type(p).__name__ for p in parts(found.thing.rubric) if not isinstance(p, Rubric)}
    assert judges <= THERE | set(HERE)
    here = any(HERE.get(judge) == id_ for judge in judges)
    report = audit(
        found.thing,
        tasks=2 if id_ in RUN else 4,
        prompts=20,  # tests/envs/test_generated_puzzles.py compares more
        sibling=found.sibling,
        longest=1 << 18,  # as for the other judges
        skip=() if here else OF_JUDGES,
    )
    found.close()
    report.raise_for_failures()
    assert set(report.unchecked) == {name for name, ids in UNCHECKED.items() if id_ in ids}
    assert len(report.findings) == len(CHECKS) - (0 if here else len(OF_JUDGES))


def test_each_judge_is_held_to_its_own_checks_by_an_id() -> None:
    assert set(HERE.values()) <= set(IDS)
    for judge, id_ in HERE.items():
        found = resolve(id_, {"data": "sample"} if id_ in SAMPLED else {})
        assert judge in {type(part).__name__ for part in parts(found.thing.rubric)}
        found.close()
