"""Run by an interpreter that has the real package: plays episodes through its own client."""

import json
import sys

from openenv.core.generic_client import GenericEnvClient

url, token = sys.argv[1:]
headers = {"Authorization": f"Bearer {token}"}
found = []
with GenericEnvClient(base_url=url, headers=headers).sync() as env:
    for task in range(10):
        result = env.reset(task=task, episode_id=f"episode-{task}")
        first = result.observation
        a = int(first["text"].split()[0])
        result = env.step({"reply": str(a + 17 if task % 2 == 0 else a)})
        found.append([first["text"], first["task"], result.reward, result.done, env.state()])
    seeded = env.reset(seed=11).observation["task"]
    try:
        env.step({"answer": "20"})
        refused = None
    except RuntimeError as error:
        refused = str(error)
sys.stdout.write(json.dumps({"episodes": found, "seeded": seeded, "refused": refused}))
