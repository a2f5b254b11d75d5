import json
from pathlib import Path

WANTED = {"count": 8, "mean": 14.5, "median": 6.25, "outliers": [-20, 100]}

try:
    found = json.loads(Path("/app/statistics.json").read_text())
except (OSError, ValueError):
    found = {}
if not isinstance(found, dict):
    found = {}


def right(key):
    value, wanted = found.get(key), WANTED[key]
    if isinstance(wanted, list):
        return value == wanted
    return isinstance(value, int | float) and abs(value - wanted) < 1e-6


scores = {key: float(right(key)) for key in WANTED}
scores["reward"] = sum(scores.values()) / len(WANTED)
Path("/logs/verifier/reward.json").write_text(json.dumps(scores))
