"""What the page's server tells, to whom, and with which limits."""

import http.client
import json
import threading

import pytest

from assay.envs import DataError
from assay.evaluation.view import ViewServer, open_pages


@pytest.fixture
def server(demo, tmp_path):
    made = ViewServer(open_pages(demo.write_run(tmp_path / "run", 3)))
    thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield made
    made.shutdown()
    thread.join()
    made.server_close()


def ask(server, path: str, host: str | None = None):
    line = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=20)
    line.request("GET", path, headers={} if host is None else {"Host": host})
    answer = line.getresponse()
    body = answer.read()
    line.close()
    return answer, body


def test_it_tells_the_run_its_groups_and_one_of_them(server) -> None:
    home = server.home
    told = json.loads(ask(server, f"{home}data/run")[1])
    assert (told["name"], told["done"], told["summary"]["replies"]) == ("run", 3, 24)
    rows = json.loads(ask(server, f"{home}data/index")[1])["groups"]
    assert [row["id"] for row in rows] == ["shop-0000", "shop-0001", "shop-0002"]
    group = json.loads(ask(server, f"{home}data/group/2")[1])
    assert group["id"] == "shop-0002"
    assert [r["status"] for r in group["replies"]] == rows[2]["statuses"]


@pytest.mark.parametrize(
    "name",
    ["data/group/3", "data/group/-1", "data/group/x", "data/other", "..%2fpages.py", "pages.py"],
)
def test_what_is_not_there_is_not_found(server, name) -> None:
    assert ask(server, server.home + name)[0].status == 404


def test_other_paths_and_other_names_for_this_machine_are_refused(server) -> None:
    assert ask(server, "/")[0].status == 404
    assert ask(server, "/data/run")[0].status == 404
    assert ask(server, server.home, host=f"evil.example:{server.server_port}")[0].status == 404
    assert server.server_address[0] == "127.0.0.1"
    answer, body = ask(server, server.home)
    assert answer.status == 200
    assert b"Assay" in body
    assert answer.headers["Content-Security-Policy"].startswith(
        "default-src 'none'; script-src 'self'"
    )


def test_a_run_that_goes_on_shows_its_new_groups(demo, tmp_path) -> None:
    run = demo.write_run(tmp_path / "run", 3)
    whole = (run / "groups.jsonl").read_bytes()
    lines = whole.splitlines(keepends=True)
    (run / "groups.jsonl").write_bytes(lines[0] + lines[1][:40])
    pages = open_pages(run)
    assert len(pages.index()["groups"]) == 1
    assert pages.run()["summary"]["tasks"] == 1  # not that of the summary's file
    (run / "groups.jsonl").write_bytes(whole)
    assert len(pages.index()["groups"]) == 3
    assert pages.group(1)["id"] == "shop-0001"


def test_samples_of_a_training_run_are_browsed(tmp_path) -> None:
    reply = {"text": "4", "reward": 1.0, "rewards": {"accuracy": 1.0}, "status": "correct",
             "reason": "equal", "advantage": 0.5, "tokens": 2, "truncated": False}  # fmt: skip
    group = {"kept_as": "best", "task": "t1", "prompt": "2+2=", "size": 8, "replies": [reply]}
    (tmp_path / "samples.jsonl").write_text(json.dumps({"step": 7, "groups": [group]}) + "\n")
    pages = open_pages(tmp_path)
    assert pages.index()["groups"][0]["id"] == "step 7, best: t1"
    assert pages.group(0)["replies"][0]["parts"] == {"accuracy": 1.0, "advantage": 0.5}
    with pytest.raises(DataError, match="nothing to look at"):
        open_pages(tmp_path / "no")
