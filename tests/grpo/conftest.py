"""What tests of the learner share."""

import pytest
import torch

torch.set_num_threads(1)


@pytest.fixture(params=["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"])
def device(request: pytest.FixtureRequest) -> str:
    """Each device of the machine that runs the tests."""
    name: str = request.param
    return name
