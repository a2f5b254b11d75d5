"""How long a click takes in `assay view`: a run of 1,000 groups in headless Chromium.

    python benchmarks/view.py

Milliseconds from the click to the painted page, the median and the worst of several; and the
median CPU time of the page's thread, which the machine's load does not change.
"""

import argparse
import importlib.util
import json
import random
import statistics
import tempfile
import threading
from pathlib import Path
from typing import Any

from assay.envs import Episode, EpisodeGroup, Task, write_json
from assay.evaluation import Plan, RunWriter, Tally
from assay.evaluation.run_files import SUMMARY
from assay.evaluation.view import ViewServer, open_pages
from assay.verifiers import Status, Verdict

HARNESS = Path(__file__).parent.parent / "tests" / "assay" / "evaluation" / "headless.py"
GROUPS = 1000
TOPICS = ("algebra", "geometry", "counting", "number theory")
STEPS = (
    "First we expand both sides and collect the terms in x.",
    "Let us set u = x + 1, so that the square is complete.",
    "Since the sum of the digits is divisible by 3, so is the number.",
    "Dividing by 2, we get an integer, which is what was asked for.",
    "We check the answer by putting it back into the equation.",
    "This cannot be right, because the left side is odd. Let me try again.",
)


def made_group(place: int, replies: int = 8) -> EpisodeGroup:
    """A group of long replies, some right, some wrong, some that cannot be read."""
    rng = random.Random(place)  # noqa: S311  # replies, and no secrets
    a, b, hard = rng.randrange(10, 99), rng.randrange(10, 99), rng.random()
    task = Task(
        f"A shop sells {a} boxes of {b} pencils each. How many pencils is that in all? Think step "
        "by step, and put the answer into \\boxed{}.",
        str(a * b),
        id=f"shop-{place:04d}",
        metadata={"level": 1 + int(5 * hard), "topic": rng.choice(TOPICS)},
    )
    return EpisodeGroup(task, [_episode(task, rng, hard, a * b) for _ in range(replies)])


def _episode(task: Task, rng: random.Random, hard: float, answer: int) -> Episode:
    roll = rng.random()
    lines = [rng.choice(STEPS) for _ in range(rng.randrange(6, 60))]
    if roll < 0.06:
        verdict = Verdict(Status.UNPARSEABLE, 0.0, "no answer found by boxed", None, _parts(0, rng))
        said = "I would say that it is about a thousand."
    elif roll < 0.07:
        verdict = Verdict(Status.VERIFIER_ERROR, None, "no answer from the judge in 60 s")
        said = f"So the answer is \\boxed{{{answer}}}."
    else:
        given = answer if rng.random() > hard else answer + rng.choice((-1, 1, 10))
        right = given == answer
        verdict = Verdict(
            Status.CORRECT if right else Status.INCORRECT,
            float(right),
            "equal" if right else f"not {answer}",
            str(given),
            _parts(float(right), rng),
        )
        said = f"So the answer is \\boxed{{{given}}}."
    turns = ({"role": "assistant", "content": "\n".join([*lines, said])},)
    return Episode(task.id, turns, verdict, truncated=rng.random() < 0.03)


def _parts(accuracy: float, rng: random.Random) -> dict[str, float]:
    return {"accuracy": accuracy, "format": rng.choice((0.0, 1.0)), "brevity": rng.random()}


def write_run(directory: Path, groups: int) -> Path:
    """A run as `assay eval` leaves it."""
    plan = Plan(
        environment={"id": "demo/Shop-v0", "kwargs": {"split": "test"}, "spec": None},
        verifier={"rubric": {"name": "Math"}, "sha256": "0123456789abcdef"},
        data={"tasks": groups, "sha256": "fedcba9876543210"},
        policy={"kind": "function", "name": "demo:clerk"},
        n=8,
        seed=0,
        batch=50,
        versions={"python": "3.11", "assay": "0.1.0"},
    )
    tally = Tally()
    with RunWriter(directory, plan, resume=False) as writer:
        for at in range(0, groups, plan.batch):
            made = [made_group(i) for i in range(at, min(groups, at + plan.batch))]
            for group in made:
                tally.add(group)
            writer.add(made, [_cost(group) for group in made])
    write_json(directory / SUMMARY, tally.summary())
    return directory


def _cost(group: EpisodeGroup) -> dict[str, object]:
    written = [len(e.completion) // 4 for e in group.episodes]
    return {"task": group.task.id, "seconds": 0.5, "judging_seconds": 0.01,
            "prompt_tokens": [40] * len(written), "reply_tokens": written}  # fmt: skip


FIRST = {
    "compare two": "for (const made of document.querySelectorAll('.pick[aria-pressed=true]')) "
    "made.click(); document.querySelector('.pick').click()"
}
"""What is done before a click, and not timed."""
CLICKS = {
    "open a group": (
        "document.querySelectorAll('.item')[{i}].click()",
        "document.body.dataset.shows === 'group' && "
        "document.querySelector('.item[aria-selected=true]') && "
        "document.querySelector('h2').textContent === "
        "document.querySelector('.item[aria-selected=true] b').textContent",
    ),
    "next group": (
        "window.before = document.querySelector('h2').textContent; "
        "document.body.dispatchEvent(new KeyboardEvent('keydown', {{key: 'j', bubbles: true}}))",
        "document.querySelector('h2').textContent !== window.before",
    ),
    "compare two": (
        "document.querySelectorAll('.card')[4 + {i} % 4].querySelector('.pick').click()",
        "document.querySelector('.compare')",
    ),
    "filter to unparseable, and back": (
        "window.before = document.getElementById('count').textContent; "
        "document.querySelector('[data-status=unparseable]').click()",
        "document.getElementById('count').textContent !== window.before",
    ),
    "order by spread, and back": (
        "const o = document.getElementById('order'); o.value = o.value === 'spread' ? 'place' : "
        "'spread'; o.dispatchEvent(new Event('change'))",
        "document.querySelector('.item')",
    ),
    "search": (
        "const s = document.getElementById('search'); s.value = 'shop-0{i}'; "
        "s.dispatchEvent(new Event('input'))",
        "document.querySelector('.item b').textContent.startsWith('shop-0{i}')",
    ),
    "overview": (
        "location.hash = '#3'; location.hash = ''",
        "document.body.dataset.shows === 'overview'",
    ),
}


def main() -> None:
    """Browse, and print how long it took."""
    argparse.ArgumentParser(description=__doc__.split("\n")[0]).parse_args()
    spec = importlib.util.spec_from_file_location("headless", HARNESS)
    headless = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(headless)
    with tempfile.TemporaryDirectory() as folder:
        run = write_run(Path(folder) / "demo-run", GROUPS)
        size = (run / "groups.jsonl").stat().st_size
        print(f"{GROUPS:,} groups of 8, {size / 1e6:.1f} MB")
        server = ViewServer(open_pages(run))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        page = headless.Headless()
        try:
            page.go(server.url, "document.querySelector('.plots')")
            figures = {name: _timed(page, name, *steps) for name, steps in CLICKS.items()}
        finally:
            page.close()
            server.shutdown()
            server.server_close()
    for name, times in figures.items():
        wall, cpu = zip(*times, strict=True)
        print(
            f"{name:32} median {statistics.median(wall):6.1f} ms   worst {max(wall):6.1f} ms   "
            f"CPU {statistics.median(cpu):6.1f} ms"
        )
    own = (server.url, "data:", "about:")
    elsewhere = [url for url in page.asked if not url.startswith(own)]
    print(json.dumps({"complaints": page.complaints, "asked elsewhere": elsewhere}))


def _timed(
    page: Any, name: str, action: str, ready: str, times: int = 9
) -> list[tuple[float, float]]:
    found = []
    for i in range(1, times + 1):
        if name in FIRST:
            page.act(FIRST[name], "true")
        before = page.cpu_ms()
        wall = page.act(action.format(i=i), ready.format(i=i) if "{i}" in ready else ready)
        found.append((wall, page.cpu_ms() - before))
    return found


if __name__ == "__main__":
    main()
