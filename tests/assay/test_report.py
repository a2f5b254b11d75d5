"""The page of a run: whole, offline, and deaf to what the model writes."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from assay.grpo import GRPOConfig
from assay.grpo.records import write_about
from assay.run_report.curves import Curve, Panel, draw_svg, panels, smooth
from assay.run_report.history import Series, read_history
from assay.run_report.report import duration, write_report

pytestmark = pytest.mark.slow

HOSTILE = '<script>alert("x")</script><img src=http://evil onerror=x>\ud800\x1b[2J\u202e&amp;'
VOID = {"meta", "br", "img", "link", "input", "hr"}


class Page(HTMLParser):
    """Reads a page, and sees that every element is closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[tuple[str, str | None]] = set()
        self.shown = ""
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert not self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= set(attrs)
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= set(attrs)

    def handle_data(self, data: str) -> None:
        self.shown += data


def reply(text: str, reward: float | None = 1.0, **more: Any) -> dict[str, Any]:
    return {
        "text": text,
        "reward": reward,
        "rewards": {"format": 0.5, text: None},
        "status": "correct",
        "reason": text,
        "advantage": 0.5,
        "tokens": 3,
        "truncated": False,
        **more,
    }


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run of 50 steps as the learner writes it, with a model that attacks its readers."""
    home = tmp_path / "run <b>"
    config = GRPOConfig(steps=60, learning_rate=3e-4).to_json()
    write_about(home, config, {"env": HOSTILE})
    rows: list[dict[str, Any]] = [{"step": 0, "held_out/pass_at_1": 0.25, "held_out/scored": 100}]
    for step in range(1, 51):
        rows.append(
            {
                "step": step,
                "reward": step / 50,
                "reward/accuracy": step / 50,
                "zero_variance": 0.5,
                "status/correct": step / 50,
                "status/incorrect": 1 - step / 50,
                "kl": None,
                "entropy": 1.5,
                "grad_norm": 0.5 + step,
                "lr": 3e-4,
                "tokens/s": 1000.0,
                "seconds/rollout": 1.0,
                "seconds/update": 0.5,
                f"mine/{HOSTILE}$x^2$": 1.0,
            }
        )
    rows[-1] |= {"held_out/pass_at_1": 0.75, "held_out/scored": 100, "alarm": HOSTILE}
    (home / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    group = {
        "kept_as": "best",
        "task": HOSTILE,
        "prompt": HOSTILE,
        "size": 9,
        "replies": [reply(HOSTILE), reply("", None, advantage=None, truncated=True)],
    }
    samples = [{"step": step, "groups": [group]} for step in range(1, 51)]
    (home / "samples.jsonl").write_text("".join(json.dumps(row) + "\n" for row in samples))
    return home


def test_the_heading_names_only_settings_that_differ(run: Path) -> None:
    config = GRPOConfig(steps=60).to_json()
    about = {"env": "mine/Sums-v0", "model": "m", "data": None, "curriculum": "uniform"}
    write_about(run, config, {**about, "lora_rank": 16, "splits": {"overlap": 0}})
    shown = Page(write_report(run).read_text(encoding="utf-8")).shown
    heading = shown[: shown.index("started")]
    assert "env: mine/Sums-v0 · model: m · lora_rank: 16" in heading
    assert "curriculum" not in heading
    assert "curriculum" in shown[shown.index("All settings") :]


def test_the_page_holds_the_run_and_obeys_nothing_in_it(run: Path) -> None:
    path = write_report(run)
    assert path == run / "report.html"
    text = path.read_text(encoding="utf-8")
    page = Page(text)
    assert not page.tags & {"script", "img", "iframe", "object", "b>"}
    assert not [name for name, _ in page.attributes if name.startswith("on")]
    assert "default-src 'none'; style-src 'unsafe-inline'" in {v for _, v in page.attributes}
    # Nothing is fetched: the only addresses are names of XML and of parts of a picture.
    assert {value for name, value in page.attributes if name in ("src", "href")} == set()
    assert all(str(v).startswith("#") for n, v in page.attributes if n == "xlink:href")
    assert not re.search(r"url\((?!#)", text)
    assert "\x1b" not in text
    shown = page.shown
    assert r'<script>alert("x")</script><img src=http://evil onerror=x>\ud800\x1b[2J' in shown
    assert "Run run <b>" in shown
    for part in (
        "held-out pass@1 (95 %: 0.657 to 0.825)",
        "0.750",
        "1 min 15 s",  # 50 steps of 1.5 s
        "Parts of the reward",
        "How replies end",
        "learning_rate",
        "38 further steps are in samples.jsonl",
        "no reward",
        "cut off",
        "2 of 9 replies",
        "$x^2$",
    ):
        assert part in shown, part
    # Names in pictures are unique, so that no picture draws with another's parts.
    names = re.findall(r'\bid="([^"]*)"', text)
    assert len(names) == len(set(names))


def test_the_same_numbers_give_the_same_picture() -> None:
    panel, curves = Panel("\u4e2d\ud800", ("x",)), [Curve("\u4e2d\x1b", Series([1, 2], [0.5, 1.0]))]
    first = draw_svg(panel, [*curves, *curves])
    assert draw_svg(panel, [*curves, *curves]) == first
    assert "\u4e2d\\x1b" in first


def test_a_file_of_metrics_alone_has_a_page(tmp_path: Path) -> None:
    path = tmp_path / "other.jsonl"
    path.write_text(
        '{"step": 1.0, "reward": 0.5}\n{"step": 2, "reward": NaN}\n{"step": 1, "x": 1}\n'
    )
    shown = Page(write_report(path).read_text()).shown
    assert (tmp_path / "other.html").exists()
    assert "The run's settings are not known" in shown
    assert read_history(path).series("x") == Series([1], [1.0])


def test_what_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"is no run: expected a directory with metrics\.jsonl"):
        write_report(tmp_path)
    (tmp_path / "metrics.jsonl").write_text("")
    with pytest.raises(ValueError, match="has no rows yet"):
        write_report(tmp_path)


def test_every_number_has_its_place() -> None:
    names = ["reward", "reward/a", "kl", "held_out/pass_at_1", "held_out/reward", "tokens/s", "odd"]
    found = {panel.title: mine for panel, mine in panels(names)}
    assert found == {
        "Held-out tasks": ["held_out/pass_at_1"],
        "Reward": ["reward"],
        "Parts of the reward": ["reward/a"],
        "KL divergence": ["kl"],
        "Speed, sampled tokens a second": ["tokens/s"],
        "held_out/reward": ["held_out/reward"],
        "odd": ["odd"],
    }


def test_pictures_of_odd_series() -> None:
    """One point, no spread, nothing above zero on a logarithmic axis: each has its picture."""
    for values in ([1.0], [0.0, 0.0], [1e300, -1e300], [0.0] * 5000):
        series = Series(list(range(len(values))), values)
        svg = draw_svg(Panel("x", ("x",), log=True), [Curve("_under", series)])
        assert svg.startswith("<svg")
        assert svg.rstrip().endswith("</svg>")
        assert len(svg) < 100_000  # 5,000 points are thinned


def test_smooth_by_hand() -> None:
    series = Series([1, 2, 3, 4], [4.0, 2.0, 0.0, 1.0])
    assert smooth(series, 2).values == [4.0, 3.0, 1.0, 0.5]
    assert smooth(series, 1).values == series.values


def test_durations() -> None:
    seconds = (0.25, 41.2, 59.7, 725, 12_000)
    assert [duration(s) for s in seconds] == [
        "0.25 s",
        "41 s",
        "1 min 0 s",
        "12 min 5 s",
        "3 h 20 min",
    ]
