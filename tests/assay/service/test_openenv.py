"""The real OpenEnv client plays our environments.

``ASSAY_OPENENV_PYTHON`` names an interpreter that has ``pip install openenv``.
"""

import json
import os
import subprocess
from pathlib import Path

import pytest

PEER = os.environ.get("ASSAY_OPENENV_PYTHON")
TOKEN = "a-token-of-the-tests-0123456789"


@pytest.mark.skipif(PEER is None, reason="ASSAY_OPENENV_PYTHON names no interpreter with openenv")
def test_the_real_client_plays(sums_server, served) -> None:
    script = Path(__file__).with_name("openenv_client.py")
    done = subprocess.run(
        [PEER, str(script), f"{sums_server}/openenv", TOKEN],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    printed = json.loads(done.stdout.splitlines()[-1])
    for task, (text, id_, reward, over, state) in enumerate(printed["episodes"]):
        assert (text, id_) == (f"{task} and 17?", f"sum{task}")
        assert (reward, over) == (float(task % 2 == 0), True)
        assert state == {"episode_id": f"episode-{task}", "step_count": 1}
    assert printed["seeded"] == served.Sums().reset(seed=11)[1]["task"]
    assert "VALIDATION_ERROR" in printed["refused"]


def test_a_game_by_its_messages(served, local) -> None:
    with local(served.Guess()) as client, client.websocket_connect("/openenv/ws") as socket:

        def ask(kind, **data):
            socket.send_json({"type": kind, **({"data": data} if data else {})})
            return socket.receive_json()

        assert ask("step", reply="1")["data"]["code"] == "EXECUTION_ERROR"
        first = ask("reset", task=40)["data"]
        assert (first["observation"]["text"], first["done"]) == ("Which number?", False)
        second = ask("step", reply="50")["data"]
        assert (second["observation"]["text"], second["reward"]) == ("less", 0.1)
        assert second["done"] is False
        last = ask("step", reply="40", metadata={"by": "hand"})["data"]
        assert (last["reward"], last["done"]) == (1.5, True)  # the turn's own and the end's
        assert ask("step", reply="40")["data"]["code"] == "EXECUTION_ERROR"
        assert ask("dance")["data"]["code"] == "UNKNOWN_TYPE"
        assert {"action", "observation", "state"} == set(client.get("/openenv/schema").json())
        assert client.get("/openenv/health").json() == {"status": "healthy"}


def test_a_fault_of_ours_has_no_reward(served, local) -> None:
    with local(served.Guess()) as client, client.websocket_connect("/openenv/ws") as socket:
        socket.send_json({"type": "reset", "data": {"task": 4}})
        socket.receive_json()
        socket.send_json({"type": "step", "data": {"reply": "boom"}})
        printed = socket.receive_json()["data"]
    assert (printed["reward"], printed["done"]) == (None, True)
    assert printed["observation"]["status"] == "verifier_error"
