"""What the page's server tells, to whom, and with which limits."""

import http.client
import json

import pytest

from assay.envs import DataError
from assay.evaluation import read_plan
from assay.evaluation.view import ViewServer, open_pages
from assay.verifiers import Verdict


@pytest.fixture
def server(running, demo, tmp_path):
    with running(ViewServer(open_pages(demo.write_run(tmp_path / "run", 3)))) as made:
        yield made


def ask(server, path: str, host: str | None = None):
    line = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=20)
    line.request("GET", path, headers={} if host is None else {"Host": host})
    answer = line.getresponse()
    body = answer.read()
    line.close()
    return answer, body


def test_it_serves_the_run_its_groups_and_one_of_them(server) -> None:
    home = server.home
    sent = json.loads(ask(server, f"{home}data/run")[1])
    assert (sent["name"], sent["done"], sent["summary"]["replies"]) == ("run", 3, 24)
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


def test_a_run_that_was_cut_back_is_read_anew(demo, tmp_path) -> None:
    run = demo.write_run(tmp_path / "run", 3)
    lines = (run / "groups.jsonl").read_bytes().splitlines(keepends=True)
    pages = open_pages(run)
    assert len(pages.index()["groups"]) == 3
    (run / "groups.jsonl").write_bytes(lines[2])
    assert [g["id"] for g in pages.index()["groups"]] == ["shop-0002"]
    assert pages.group(0)["id"] == "shop-0002"


def test_a_damaged_line_is_named(demo, tmp_path) -> None:
    run = demo.write_run(tmp_path / "run", 2)
    lines = (run / "groups.jsonl").read_bytes().splitlines(keepends=True)
    (run / "groups.jsonl").write_bytes(lines[0] + b'{"task": 1}\n')
    with pytest.raises(DataError, match=r"groups.jsonl, line 2 is no group"):
        open_pages(run)


def test_files_that_are_gone_are_reported(running, demo, tmp_path) -> None:
    run = demo.write_run(tmp_path / "run", 2)
    with running(ViewServer(open_pages(run))) as server:
        (run / "groups.jsonl").unlink()
        answer, body = ask(server, server.home + "data/group/0")
    assert answer.status == 500
    assert b"No such file" in body


def test_a_port_that_is_taken_or_none_is_refused_with_a_remedy(server) -> None:
    for port in (server.server_port, 70000):
        with pytest.raises(OSError, match="give another --port"):
            ViewServer(server.pages, port)


def test_where_many_answers_are_right_an_unfinished_run_votes_by_text(tmp_path, demo) -> None:
    """Two right answers to Countdown are two answers, also before there is a summary."""
    run = demo.write_run(tmp_path / "run", 2)
    record = json.loads((run / "run.json").read_text())
    record["verifier"]["rubric"] = {"name": "Countdown"}
    record["data"]["tasks"] = 3
    (run / "run.json").write_text(json.dumps(record))
    group = json.loads((run / "groups.jsonl").read_text().splitlines()[0])
    right = {**group["episodes"][0], "verdict": Verdict.correct(extracted="1 + 2").to_json()}
    other = {**right, "verdict": Verdict.correct(extracted="2 + 1").to_json()}
    wrong = {**right, "verdict": Verdict.wrong("no", extracted="7").to_json()}
    group["episodes"] = [right, other, wrong, wrong]
    (run / "groups.jsonl").write_text(json.dumps(group) + "\n")
    assert open_pages(run).run()["summary"]["maj_at"]["4"]["value"] == 0.0


def test_samples_of_a_training_run_are_browsed(tmp_path) -> None:
    reply = {"text": "4", "reward": 1.0, "rewards": {"accuracy": 1.0}, "status": "correct",
             "reason": "equal", "advantage": 0.5, "tokens": 2, "truncated": False}  # fmt: skip
    group = {"kept_as": "best", "task": "t1", "prompt": "2+2=", "size": 8, "replies": [reply]}
    (tmp_path / "samples.jsonl").write_text(json.dumps({"step": 7, "groups": [group]}) + "\n")
    pages = open_pages(tmp_path)
    about = "1 groups, with 1 of their 8 replies, of step 7. Kept of each step: best."
    assert about in pages.run()["about"]
    assert pages.index()["groups"][0]["id"] == "step 7, best: t1"
    assert pages.group(0)["replies"][0]["parts"] == {"accuracy": 1.0, "advantage": 0.5}
    (tmp_path / "empty").mkdir()
    for run, other, words in (
        (tmp_path / "no", None, "there is no directory"),
        (tmp_path, tmp_path / "no", "there is no directory"),
        (tmp_path / "empty", None, "holds no replies"),
        (tmp_path, tmp_path, "only two evaluations are shown side by side"),
    ):
        with pytest.raises(DataError, match=words):
            open_pages(run, other)
    (tmp_path / "metrics.jsonl").touch()
    with pytest.raises(DataError, match="is a training run, and no evaluation"):
        read_plan(tmp_path)
