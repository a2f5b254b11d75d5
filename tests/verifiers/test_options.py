"""Options that cannot be used: each is refused when the verifier is made, and named."""

import math
import subprocess
import sys
from typing import Any

import pytest

from assay import verifiers
from assay.verifiers import Math

URL = {"base_url": "http://host/v1"}
REFUSED: list[tuple[str, str, list[dict[str, Any]]]] = [
    ("Boxed", "must be", [{"where": "top"}, {"count": 0}, {"count": 21}, {"count": True}]),
    ("Citations", "source", [{"sources": s} for s in ([], [""], [1], "text", ("a", " "))]),
    ("Citations", "got",
     [{"coverage": 0}, {"coverage": 1.5}, {"least": 0}, {"most": 0}, {"quotes": 51}]),
    ("Commits", "(content|extract) must be", [{"content": 0}, {"extract": ("box",)}]),
    ("Compression", "least must be", [{"least": 0}, {"least": 0.6}, {"least": -1}]),
    ("Compression", "content must be", [{"content": 0}, {"content": -1}]),
    ("CosineLength", "got", [{"verifier": Math(), "most": 9, "free": 3} | o for o in
     ({"free": 9}, {"long": 0.0}, {"long": 0.3, "wrong_long": 0.3}, {"long": 1.1})]),
    ("CosineLength", "verifier must be a Verifier", [{"verifier": "Math", "most": 9}]),
    ("Format", "tags must be one to 20",
     [{"tags": t} for t in ((), "think", ("think", "Think"), ("<a>",), ("",), (1,), None)]),
    ("Instructions", "mode must be 'strict' or 'loose', got 'lenient'", [{"mode": "lenient"}]),
    ("Instructions", "least_words must be a whole number from 1, got 0", [{"least_words": 0}]),
    ("Json", "must", [{"kinds": "object"}, {"kinds": []}, {"kinds": ["string"]},
     {"required": "a"}, {"kinds": ["array"], "required": ["a"]}]),
    ("Judge", "base_url must be an address", [{"base_url": "localhost:8000"}]),
    ("Judge", "must hold no key",
     [{"base_url": "http://me:secret@host/v1"}, {"base_url": "http://host/v1?key=secret"}]),
    ("Judge", "votes must be an odd number from 1, got 2", [URL | {"votes": 2}]),
    ("Judge", "votes at temperature 0 are all the same", [URL | {"votes": 3}]),
    ("Judge", "scale must be", [URL | {"scale": 1}]),
    ("Judge", "form must be one of", [URL | {"form": "xml"}]),
    ("Judge", r"template must hold {reply}", [URL | {"template": "judge!"}]),
    ("Judge", "sampling must hold plain JSON", [URL | {"sampling": {"stop": {"a"}}}]),
    ("Judge", "sampling may not set 'stream'", [URL | {"sampling": {"stream": True}}]),
    ("Judge", "(longest|attempts|concurrency) must be",
     [URL | {"longest": 0}, URL | {"attempts": 0}, URL | {"concurrency": 1.5}]),
    ("Judge", "timeout_s must be more than 0", [URL | {"timeout_s": 0}]),
    ("Language", "language must be a code from",
     [{"language": code} for code in ("xx", "zh-Hans", "")]),
    ("Language", "part must be one of", [{"language": "de", "part": "end"}]),
    ("Language", "share must be", [{"language": "de", "share": 0}]),
    ("Length", "least", [{}, {"least": -1}, {"least": 5, "most": 4}, {"most": 0}]),
    ("Length", "unit must be one of", [{"most": 5, "unit": "tokens"}]),
    ("Length", "content must be", [{"most": 5, "content": 0}]),
    ("MarkdownStructure", r"bullets must be a whole number .* got 0", [{"bullets": 0}]),
    ("Math", "percent must be one of", [{"percent": "sometimes"}, {"percent": "maybe"}]),
    ("Math", "must be", [{"extract": ("boxes",)}, {"rounded_digits": 0}, {"members": "all"}]),
    ("Pattern", "must|goes with", [{"pattern": "a"} | o for o in (
     {"mode": "search"}, {"times": 2}, {"mode": "contains", "times": 0},
     {"mode": "contains", "times": 101}, {"mode": "absent", "min_words": 0},
     {"mode": "contains", "times": "3"}, {"mode": "contains", "times": 1.5}, {"min_words": -1},
     {"min_words": "2"}, {"min_words": 1.5}, {"extract": ["nowhere"]})]),
    ("RayVerifier", "piece must be at least 1", [{"verifier": Math(), "piece": 0}]),
    ("Repetition", "got", [{"n": 0}, {"run": 0}, {"free": 0.6}, {"most": 1.1}, {"free": -0.1}]),
    ("RewardModel", r"threshold must be a score in \(0, 1\], got 0.0", [{"threshold": 0.0}]),
    ("RewardModel", "batch must be a whole number from 1", [{"batch": 0}]),
    ("RewardModel", "longest must be", [{"longest": 0}]),
    ("RewardModel", "between must be two logits",
     [{"between": 3}, {"between": (1.0, 1.0)}, {"between": (0.0, math.inf)}]),
    ("RewardModel", "between is for a model of one output",
     [{"between": (0.0, 1.0), "label": "good"}]),
    ("SoftOverlong", "cache must be",
     [{"most": most, "cache": cache} for most, cache in ((10, 0), (10, 11), (0, 0))]),
    ("SQL", "(tolerance|steps) must be from", [{"tolerance": -1}, {"tolerance": 1}, {"steps": 10}]),
    ("XmlStructure", "element|name", [{"elements": ["a b"]}]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "message", "options"), REFUSED)
def test_options_that_cannot_be_used_are_refused(name, message, options) -> None:
    model = {"model": "m"} if name in {"Judge", "RewardModel"} else {}
    for given in options:
        with pytest.raises(ValueError, match=message):
            getattr(verifiers, name)(**model, **given)


@pytest.mark.parametrize(
    ("name", "needs"), [("Judge", "model and base_url, as in"), ("RewardModel", "model")]
)
def test_the_command_line_says_what_is_needed(name, needs) -> None:
    command = [sys.executable, "-m", "assay", "audit", name]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert f"error: {name} needs {needs}" in " ".join(done.stderr.split())
