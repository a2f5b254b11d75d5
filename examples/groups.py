"""Groups of episodes: several replies to each task, from any policy, judged in one batch."""

import json

from assay import EpisodeGroup, make, make_group, rollout
from assay.envs import FunctionPolicy


def guess(messages):
    """Add the two numbers, and be wrong where the first is odd."""
    a, b = messages[0]["content"].rstrip("=").split("+")
    return str(int(a) + int(b) + int(a) % 2)


env = make("assay/Arithmetic-v0", split="test")
groups = rollout(env, FunctionPolicy(guess), groups=3, group_size=2)
for group in groups:
    print(group.task.text, group.rewards, group.episodes[0].status)

# A group is a plain record: it goes to JSON and back.
assert EpisodeGroup.from_json(json.loads(json.dumps(groups[0].to_json()))) == groups[0]

# The same in Gymnasium's shape: two tasks, three copies each.
vector = make_group("assay/Arithmetic-v0", prompts=2, group_size=3)
vector.reset(options={"tasks": [0, 1]})
first, second = vector.env.task(0).reference, vector.env.task(1).reference
_, rewards, *_ = vector.step([first, "0", first, "none", second, "?"])
print(rewards)
assert list(rewards) == [1, 0, 1, 0, 1, 0]
