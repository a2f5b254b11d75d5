"""Register a task in ten lines; it is then an environment for every trainer."""

import gymnasium

from assay import Math, Rubric, Task, environment, make, rollout
from assay.envs import FunctionPolicy


# --8<-- README
@environment("me/Halves-v0", rubric=Rubric({"accuracy": Math()}))
def halves(rng):
    """Halve a number."""
    n = int(rng.integers(1, 1000))
    return Task(f"What is half of {n}? Box the answer.", reference=str(n / 2))


env = gymnasium.make("me/Halves-v0")  # also make_vec, TRL and the built-in learner
question, info = env.reset(seed=0)
observation, reward, terminated, truncated, info = env.step(r"\boxed{12.5}")
print(question, reward, info["reason"])
# --8<--

# Groups: four replies to each of two tasks, judged in one batch.
halver = FunctionPolicy(lambda messages: f"{int(messages[0]['content'].split()[4][:-1]) / 2}")
for group in rollout(make("me/Halves-v0", split="test"), halver, groups=2, group_size=4):
    print(group.task.text, group.rewards)
    assert group.rewards == (1.0,) * 4
