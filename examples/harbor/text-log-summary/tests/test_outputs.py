import json
from pathlib import Path

SUMMARY = Path("/app/summary.json")


def test_levels():
    assert json.loads(SUMMARY.read_text())["levels"] == {"INFO": 3, "ERROR": 2, "WARNING": 1}


def test_busiest():
    assert json.loads(SUMMARY.read_text())["busiest"] == "2025-02-03T05"
