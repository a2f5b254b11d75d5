"""Verifiers over Ray, on a cluster of processes on this machine."""

import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest

from assay.verifiers import Math, RayVerifier, Status, Verdict, Verifier

ray = pytest.importorskip("ray")
pytestmark = [
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.slow,
]  # Ray's own, at its start and end

REPLIES = [rf"so \boxed{{{k}}}" for k in range(60)] + [
    r"\boxed{\frac{1}{2}}",
    r"\boxed{(x+1)^2}",
    "no",
]
GOLDS: list[Any] = [str(k - k % 2) for k in range(60)] + ["0.5", "x^2+2x+1", ""]


class DiesOnce(Verifier):
    """Kills the actor that judges it, unless a file says that it did so before."""

    def __init__(self, marker: str) -> None:
        self.marker = marker

    def judge(self, reply: str, reference: Any) -> Verdict:
        if reply == "die" and not os.path.exists(self.marker):
            open(self.marker, "w").close()
            os.kill(os.getpid(), signal.SIGKILL)
        if reply == "always":
            os.kill(os.getpid(), signal.SIGKILL)
        return Verdict.correct()


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    ray.init(
        address="local",
        num_cpus=2,
        log_to_driver=False,
        include_dashboard=False,
        configure_logging=False,
    )
    yield
    ray.shutdown()


def test_verdicts_are_those_given_here() -> None:
    verifier = RayVerifier(Math(), piece=7)
    try:
        found = verifier.verify_many(REPLIES, GOLDS)
        assert found == Math().verify_many(REPLIES, GOLDS)
        assert found == verifier.verify_many(REPLIES, GOLDS)
        assert verifier.verify_many([], []) == []
        assert verifier.check_reference("") is not None
        assert Verifier.from_json(verifier.to_json()) == verifier
    finally:
        verifier.close()
        verifier.close()


def test_a_piece_that_is_lost_is_judged_by_another(tmp_path) -> None:
    verifier = RayVerifier(DiesOnce(str(tmp_path / "died")), piece=2, per_node=2)
    try:
        found = verifier.verify_many(["a", "b", "die", "c", "d"], [None] * 5)
        assert [v.status for v in found] == [Status.CORRECT] * 5
        lost = verifier.verify_many(["a", "always", "b"], [None] * 3)
        assert [v.score for v in lost] == [1.0, None, 1.0]  # no neighbour is lost with it
        assert "lost 3 times" in lost[1].reason
    finally:
        verifier.close()
