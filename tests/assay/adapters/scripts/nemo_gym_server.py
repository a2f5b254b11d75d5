"""Ask a NeMo Gym server over HTTP, as its agents do; print what it answers. Needs nemo-gym."""

import json
import sys
import tempfile
from pathlib import Path

from fastapi.testclient import TestClient
from nemo_gym.base_resources_server import BaseResourcesServerConfig
from nemo_gym.server_utils import BaseServerConfig, ServerClient
from omegaconf import DictConfig

from assay import Exact, Task, Verifier
from assay.adapters import nemo_gym_server, to_nemo_gym
from assay.envs import Rows, TextEnv


class Broken(Verifier):
    """A verifier whose sandbox is down."""

    def judge(self, reply, reference):
        """Raise."""
        raise OSError("no sandbox")


def response(*texts: str) -> dict:
    """Return a response of the policy, a message for each text."""
    message = {"id": "m", "role": "assistant", "status": "completed", "type": "message"}
    part = {"annotations": [], "type": "output_text"}
    output = [{**message, "content": [{**part, "text": text}]} for text in texts]
    about = {"id": "r", "created_at": 0.0, "model": "m", "object": "response", "tools": []}
    return {**about, "output": output, "parallel_tool_calls": True, "tool_choice": "auto"}


env = TextEnv(Rows([Task("Capital of France?", "Paris", id="a")], "train"), Exact(), name="me/C-v0")
with tempfile.TemporaryDirectory() as folder:
    written = to_nemo_gym(env, Path(folder) / "rows.jsonl")
    (row,) = map(json.loads, (Path(folder) / "rows.jsonl").read_text().splitlines())
Server = nemo_gym_server({"me/C-v0": env, "me/Broken-v0": Broken()})
config = BaseResourcesServerConfig(host="127.0.0.1", port=1, entrypoint="", name="assay")
others = ServerClient(
    head_server_config=BaseServerConfig(host="127.0.0.1", port=1), global_config_dict=DictConfig({})
)
server = Server(config=config, server_client=others)
client = TestClient(server.setup_webserver())
found = []
for source, texts in (
    ("me/C-v0", ["Paris"]),
    ("me/C-v0", ["Paris", "Rome"]),
    ("me/C-v0", []),
    ("me/Broken-v0", ["Paris"]),
):
    asked = {**row, "data_source": source, "response": response(*texts)}
    answer = client.post("/verify", json=asked)
    if answer.status_code != 200:
        sys.exit(answer.text)
    fields = answer.json()
    found.append([fields["reward"], fields["mask_sample"], fields["status"]])
sys.stdout.write(
    json.dumps({"rows": written, "prompt": row["responses_create_params"], "found": found}) + "\n"
)
