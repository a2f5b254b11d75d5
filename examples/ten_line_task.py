"""Register a task in ten lines; it is then an environment for every trainer."""

# --8<-- README
import gymnasium

from assay import Math, Rubric, Task, environment


@environment("me/Halves-v0", rubric=Rubric({"accuracy": Math()}))
def halves(rng):
    """Halve a number."""
    n = int(rng.integers(1, 1000))
    return Task(f"What is half of {n}? Box the answer.", reference=str(n / 2))


env = gymnasium.make("me/Halves-v0")  # also make_vec, TRL and the built-in learner
for answer in ("295.5", "295"):
    question, info = env.reset(seed=0)
    observation, reward, terminated, truncated, info = env.step(rf"\boxed{{{answer}}}")
    print(question, answer, reward, info["reason"])
# --8<--
env.reset(options={"task": 3})
assert env.step(f"\\boxed{{{env.unwrapped.task(3).reference}}}")[1] == 1.0
