"""The learner on a shell in containers, as the example has it, which CI runs to its end."""

import importlib.util
from pathlib import Path

import pytest

from assay.envs import play
from assay.envs.harbor import HarborEnv
from assay.grpo import GRPOConfig, choose_forward
from assay.grpo.batch import row_of
from assay.grpo.update import accumulate_gradient
from assay.sandbox import Sandbox

SCRIPT = Path(__file__).parents[2] / "examples" / "train_on_a_shell_task.py"


@pytest.fixture(scope="module")
def example():
    """The example as a module."""
    spec = importlib.util.spec_from_file_location("train_on_a_shell_task", SCRIPT)
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


@pytest.fixture
def env(example, tmp_path, shell_image):
    """The task, in containers."""
    with Sandbox(backend="docker") as box:
        yield HarborEnv(example.write_task(tmp_path / "task"), 2, tell="template", sandbox=box)


def test_what_a_command_prints_has_no_gradient(example, env, tmp_path) -> None:
    model, tokenizer = example.make_model(tmp_path / "model")
    (group,) = play(env, example.Demonstrator(tokenizer), [env.task(0)], 1)
    row = row_of(group.episodes[0], advantage=1.0)
    printed = [i for i, mine in zip(row.reply, row.written, strict=True) if not mine]
    assert "[exit code 0]" in tokenizer.decode(printed)
    _, forward = choose_forward(model)
    seen = []

    def watched(*given):
        logprobs, entropy = forward(*given)
        logprobs.retain_grad()
        seen.append((logprobs, given[1].mask.reshape(logprobs.shape)))
        return logprobs, entropy

    accumulate_gradient(model, watched, [row], GRPOConfig())
    ((logprobs, mask),) = seen
    assert (~mask).sum() == len(printed)
    assert (logprobs.grad[~mask] == 0).all()
    assert (logprobs.grad[mask] != 0).all()
