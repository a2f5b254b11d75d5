"""Learners train on a server as they train at home: to the bit."""

import pytest

from assay.service import RemoteEnv

torch = pytest.importorskip("torch")
torch.set_num_threads(1)
pytestmark = pytest.mark.slow
TOKEN = "a-token-of-the-tests-0123456789"


def trained(env, pocket, folder):
    """Weights and mean rewards after three steps."""
    from assay.grpo import GRPOConfig, Learner, read_metrics, training_tasks

    model, tokenizer = pocket("0123456789.? abcdef")
    config = GRPOConfig(
        steps=3, prompts_per_step=4, group_size=4, max_new_tokens=2, learning_rate=3e-3
    )
    Learner(model, tokenizer, training_tasks(env, config), config, folder).train()
    rewards = [row["reward"] for row in read_metrics(folder / "metrics.jsonl")[1:]]
    return torch.cat([p.detach().flatten() for p in model.parameters()]), rewards


def test_a_learner_learns_the_same_from_a_server(start, served, pocket, tmp_path) -> None:
    with start("served/Digit-v0", "--no-access-log") as (url, _):
        env = RemoteEnv(url, TOKEN)
        from_afar = trained(env, pocket, tmp_path / "afar")
        env.close()
    at_home = trained(served.Digit(), pocket, tmp_path / "home")
    assert from_afar[1] == at_home[1]
    assert len(from_afar[1]) == 3
    assert torch.equal(from_afar[0], at_home[0])
