"""`assay view` in headless Chromium without a network."""

import pytest

from assay.envs import Episode, EpisodeGroup, Task
from assay.evaluation import Plan, RunWriter
from assay.evaluation.view import ViewServer, open_pages
from assay.verifiers import Status, Verdict

pytestmark = pytest.mark.slow

GUARD_MS = 5000  # against a page that has become unusable; the benchmark says how fast it is


@pytest.fixture(scope="module")
def thousand(running, demo, tmp_path_factory):
    run = demo.write_run(tmp_path_factory.mktemp("view") / "demo-run", 1000)
    with running(ViewServer(open_pages(run))) as server:
        yield server.url


def count(page) -> str:
    return page.run("document.getElementById('count').textContent")


def test_a_thousand_groups_are_filtered_opened_and_compared(page, thousand) -> None:
    page.go(thousand, "document.querySelector('.plots')")
    assert count(page) == "1,000 groups"
    assert page.run("document.querySelectorAll('.plots svg').length") == 4
    assert page.run("document.querySelectorAll('.item').length") < 60  # only those in sight
    took = page.act(
        "document.querySelector('[data-status=unparseable]').click()",
        "document.getElementById('count').textContent !== '1,000 groups'",
    )
    assert took < GUARD_MS
    assert count(page).endswith(" of 1,000 groups")
    assert page.run(
        "[...document.querySelectorAll('.item')].every(i => i.querySelector('.unparseable'))"
    )
    took = page.act(
        "document.querySelectorAll('.item')[3].click()", "document.querySelector('.card')"
    )
    assert took < GUARD_MS
    assert page.run("document.querySelectorAll('.card').length") == 8
    assert page.run("document.querySelectorAll('.card.unparseable').length") >= 1
    took = page.act(
        "for (const i of [0, 5]) document.querySelectorAll('.pick')[i].click()",
        "document.querySelector('.compare')",
    )
    assert took < GUARD_MS
    seen = page.run("document.querySelector('.compare').innerText")
    assert "Reply 1 against reply 6" in seen
    assert page.run("document.querySelectorAll('.compare del, .compare ins').length") > 1
    sides = page.run("[...document.querySelectorAll('.two pre')].map(p => p.textContent)")
    cards = page.run("[0, 5].map(i => document.querySelectorAll('.card pre')[i].textContent)")
    assert sides == cards  # the marks change nothing of what was said
    assert page.complaints == []
    assert [u for u in page.asked if not u.startswith((thousand, "data:", "about:"))] == []


def test_keys_go_through_groups(page, thousand) -> None:
    page.go(thousand + "?again", "document.querySelector('.plots')")
    shown = "document.querySelector('h2').textContent"
    for key, wanted in (("j", "shop-0000"), ("j", "shop-0001"), ("k", "shop-0000")):
        page.key(key)
        page.act("0", f"{shown} === {wanted!r}")
    page.key("2")
    page.key("3")
    page.act("0", "document.querySelector('.compare h3').textContent === 'Reply 2 against reply 3'")
    page.key("Escape")
    page.act("0", "!document.querySelector('.compare')")
    page.key("/")
    for letter in "0042":
        page.key(letter)
    page.act("0", "document.getElementById('count').textContent === '1 of 1,000 groups'")
    page.key("Escape")
    page.key("o")
    page.act("0", "document.body.dataset.shows === 'overview'")


HOSTILE = (
    "<script>window.owned = 1</script><img src=x onerror='window.owned = 2'>"
    "\x1b[31m\u202etxet\u202c </pre><style>body{display:none}</style> \ud800 javascript:alert(1)"
    "</script><svg onload='window.owned = 3'>\u2028\u2029window.owned = 4//\u3164\U000e0041\r\nx\ry"
)


def written(folder, groups, name="x", tasks=None):
    """A run of these groups, of which there are perhaps more to come."""
    plan = Plan(
        {"id": name, "kwargs": {}, "spec": None}, {"rubric": {}, "sha256": "0"},
        {"tasks": tasks or len(groups), "sha256": "0"}, {"kind": name}, 2, 0, 1, {"python": name},
    )  # fmt: skip
    with RunWriter(folder, plan, resume=False) as writer:
        for group in groups:
            none = [None] * len(group.episodes)
            cost = {"task": group.task.id, "seconds": 0.0, "judging_seconds": 0.0,
                    "prompt_tokens": none, "reply_tokens": none}  # fmt: skip
            writer.add([group], [cost])


def replies(task, *texts, verdict=None):
    verdict = verdict or Verdict.wrong("no")
    made = [Episode(task.id, ({"role": "assistant", "content": t},), verdict) for t in texts]
    return EpisodeGroup(task, made)


def test_runs_of_nothing_of_faults_and_of_numbers_that_json_lacks(running, page, tmp_path) -> None:
    """NaN, which Python writes and a browser does not read, left the group unreadable."""
    fault = Verdict.fault(Status.SANDBOX_ERROR, "the sandbox is down")
    odd = Task("?", [float("nan")], id="odd", metadata={"weight": float("inf")})
    written(tmp_path / "run", [replies(odd, "a", "b", verdict=fault)], tasks=3)
    with running(ViewServer(open_pages(tmp_path / "run"))) as server:
        page.go(server.url, "document.querySelector('.plots')")
        assert "of 3 groups so far" in page.run("document.getElementById('tiles').innerText")
        page.act("document.querySelector('.item').click()", "document.querySelector('.card')")
        seen = page.run("document.querySelector('.about').innerText")
        assert seen.split() == ["reference", '["nan"]', "weight", "inf"]
        assert page.run("document.querySelector('.score').textContent") == "none"
        assert page.complaints == []
    written(tmp_path / "empty", [], tasks=3)
    with running(ViewServer(open_pages(tmp_path / "empty"))) as server:
        page.go(server.url, "document.querySelector('.plots')")
        assert count(page) == "0 groups"
        assert "No group is on disk yet" in page.run("document.querySelector('.empty').textContent")
        page.key("j")
        page.key("c")
        assert page.complaints == []


def test_who_speaks_stands_beside_what_is_said(running, page, tmp_path) -> None:
    said = [("assistant", "50\n\n[user]\nthat is right"), ("user", "higher"), ("assistant", "62")]
    turns = tuple({"role": role, "content": text} for role, text in said)
    group = EpisodeGroup(Task("?", "1", id="t"), [Episode("t", turns, Verdict.wrong("no"))])
    written(tmp_path / "run", [group])
    with running(ViewServer(open_pages(tmp_path / "run"))) as server:
        page.go(server.url, "document.querySelector('.plots')")
        page.act("document.querySelector('.item').click()", "document.querySelector('.card')")
        for part, place in (("pre", 1), (".role", 0)):
            shown = f"[...document.querySelectorAll('.talk {part}')].map(p => p.textContent)"
            assert page.run(shown) == [turn[place] for turn in said]


def test_huge_replies_and_big_groups_stay_usable(running, page, tmp_path) -> None:
    huge, nuls = "word \n" * 200_000, "a\x00" * 9_000
    task = Task("?", "1", id="huge")
    written(tmp_path / "run", [replies(task, huge, huge + "!", nuls, *["short"] * 40)])
    with running(ViewServer(open_pages(tmp_path / "run"))) as server:
        page.go(server.url, "document.querySelector('.plots')")
        assert page.run("document.querySelector('.strip i').textContent") == "+27"
        open_it = "document.querySelector('.item').click()"
        assert page.act(open_it, "document.querySelectorAll('.card').length === 43") < GUARD_MS
        pick = "for (const i of [0, 1]) document.querySelectorAll('.pick')[i].click()"
        assert page.act(pick, "document.querySelector('.compare')") < GUARD_MS
        assert "first 20,000 characters" in page.run("document.querySelector('.compare').innerText")
        more = "document.querySelector('.card .link').click()"
        length = "document.querySelector('.card pre').textContent.length"
        assert page.act(more, f"{length} > 200000") < GUARD_MS
        assert page.run("document.querySelector('.card .link').textContent").startswith(" … 980,0")
        assert (
            page.run("document.querySelectorAll('.card')[2].textContent").count("a\\u0000") > 8999
        )
        ends = "[...document.querySelectorAll('.card pre')].map(p => p.scrollTop > 0)"
        page.key("e")
        assert page.run(ends)[:4] == [True, True, True, False]
        page.key("e")
        assert not any(page.run(ends))
        assert page.complaints == []


def test_hostile_replies_are_only_text(running, page, tmp_path) -> None:
    task = Task(HOSTILE, HOSTILE, id=f"id {HOSTILE}", metadata={"topic": HOSTILE})
    verdict = Verdict(Status.INCORRECT, 0.0, HOSTILE, HOSTILE, {HOSTILE[:9]: 0.5})
    replies = [({"role": "assistant", "content": text},) for text in (HOSTILE, HOSTILE[::-1])]
    group = EpisodeGroup(task, [Episode(task.id, turns, verdict) for turns in replies])
    written(tmp_path / "run", [group], HOSTILE)
    with running(ViewServer(open_pages(tmp_path / "run"))) as server:
        page.go(server.url, "document.querySelector('.plots')")
        page.act("document.querySelector('.item').click()", "document.querySelector('.card')")
        page.act(
            "document.body.dispatchEvent(new KeyboardEvent('keydown', {key: 'c', bubbles: true}))",
            "document.querySelector('.compare')",
        )
        assert page.run("window.owned") is None
        assert page.run("document.querySelectorAll('img, style, main script').length") == 0
        said = page.run("document.querySelector('.card pre').textContent")
        assert "<script>window.owned = 1</script>" in said
        assert "\\u001b[31m\\u202etxet\\u202c" in said
        assert "\\ud800" in said
        assert "\\u2028\\u2029window.owned = 4//\\u3164\\u{e0041}\r\nx\\u000dy" in said
        assert page.complaints == []


def test_two_runs_stand_beside_each_other(running, page, demo, tmp_path) -> None:
    first = demo.write_run(tmp_path / "first", 20)
    lines = (first / "groups.jsonl").read_text().replace('"reason": "equal"', '"reason": "same"')
    second = tmp_path / "second"
    second.mkdir()
    for name in ("run.json", "costs.jsonl"):
        (second / name).write_bytes((first / name).read_bytes())
    flipped = lines.replace(
        '"status": "incorrect", "score": 0.0', '"status": "correct", "score": 1.0', 2
    )
    (second / "groups.jsonl").write_text(flipped)
    with running(ViewServer(open_pages(first, second))) as server:
        page.go(server.url, "document.querySelector('.plots')")
        page.act(
            "const k = document.getElementById('kind'); k.value = 'changed'; "
            "k.dispatchEvent(new Event('change'))",
            "document.getElementById('count').textContent.includes(' of 20 groups')",
        )
        page.act("document.querySelector('.item').click()", "document.querySelector('.card')")
        assert (
            page.run("document.querySelector('.flag.changed').textContent") == "correct in second"
        )
