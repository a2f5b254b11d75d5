"""What holds a sandbox or workers gives them back at the end of ``with``."""

import gymnasium
import pytest

from assay import Code, Exact, Rubric, make
from assay.envs import GroupRubric, ShortReplies
from assay.verifiers import Verdict, Verifier


class Lender(Verifier):
    """Count how often it is closed."""

    closed = 0

    def judge(self, reply, reference):
        return Verdict.correct()

    def close(self):
        self.closed += 1


def test_a_rubric_closes_its_parts_at_the_end_also_after_an_error() -> None:
    part = Lender()
    with Rubric({"a": part, "b": Exact()}) as rubric:
        assert rubric.verify("x", "x").score == 1.0
        assert part.closed == 0
    with pytest.raises(KeyError), Rubric({"a": part}):
        raise KeyError
    assert part.closed == 2


def test_an_environment_closes_its_rubric() -> None:
    part = Lender()
    with make("assay/Arithmetic-v1") as env:
        env.rubric = part
    assert part.closed == 1
    with gymnasium.make_vec("assay/Arithmetic-v1", num_envs=4, group_size=2) as vector:
        vector.env.rubric = part
    assert part.closed == 2


def test_a_group_rubric_closes_its_parts() -> None:
    class Held(ShortReplies):
        closed = 0

        def close(self):
            self.closed += 1

    part = Held()
    with GroupRubric({"length": part}):
        assert part.closed == 0
    assert part.closed == 1


@pytest.mark.bwrap
def test_code_ends_its_own_sandbox_and_may_be_used_again(monkeypatch) -> None:
    monkeypatch.setenv("ASSAY_SANDBOX", "bwrap")
    tests = {"tests": "assert add(2, 3) == 5"}
    with Code() as code:
        assert code.verify("```python\ndef add(a, b): return a + b\n```", tests).score == 1.0
        assert code._own is not None
    assert code._own is None
    with code:
        assert code.verify("```python\ndef add(a, b): return a\n```", tests).score == 0.0
