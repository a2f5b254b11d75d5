"""Groups of episodes: several replies to each task, from any policy, judged in one batch."""

import asyncio
import json

from assay import EpisodeGroup, make, make_group, rollout
from assay.envs import (
    Completion,
    FunctionPolicy,
    GroupRubric,
    ShortReplies,
    arollout,
    drop_flat,
    scheduled,
)


def guess(messages):
    """Add the two numbers, and be wrong where the first is odd."""
    a, b = messages[0]["content"].rstrip("=").split("+")
    return str(int(a) + int(b) + int(a) % 2)


env = make("assay/Arithmetic-v1", split="test")
groups = rollout(env, FunctionPolicy(guess), groups=3, group_size=2)
for group in groups:
    print(group.task.text, group.rewards, group.episodes[0].status)

# A group is a plain record: it goes to JSON and back.
assert EpisodeGroup.from_json(json.loads(json.dumps(groups[0].to_json()))) == groups[0]

# Where all replies to a task are right, or all are wrong, there is nothing to learn.
kept, counts = drop_flat(groups)
print(counts)
assert kept == []


# A policy may be awaited, as a server is; each group comes when it is judged.
async def ask(messages):
    """Wait for a reply."""
    await asyncio.sleep(0)
    return Completion(guess(messages))


async def main():
    """Play three tasks, at most four episodes at a time."""
    tasks = scheduled(env, 3)
    return [group async for group in arollout(env, ask, tasks, 2, at_once=4, ordered=True)]


assert asyncio.run(main()) == groups

# The same in Gymnasium's shape: two tasks, three copies each. Among the right replies to a task,
# the shorter ones earn more.
vector = make_group("assay/Arithmetic-v1", prompts=2, group_size=3)
vector.env.group_rubric = GroupRubric({"length": ShortReplies()}, weights={"length": 0.25})
vector.reset(options={"tasks": [0, 1]})
first, second = vector.env.task(0).reference, vector.env.task(1).reference
_, rewards, *_ = vector.step([first, "0", f"It is {first}", "none", second, "?"])
print(rewards)
assert list(rewards) == [1.0, 0.0, 0.8, 0.0, 0.9, 0.0]
