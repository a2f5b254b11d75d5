import sys

import pytest

sys.path.insert(0, "/app")
import durations


@pytest.mark.parametrize(
    ("text", "wanted"),
    [("45s", 45), ("1h30m", 5400), ("2d 4h", 187200), (" 1d1h1m1s ", 90061), ("0s", 0)],
)
def test_reads(text, wanted):
    assert durations.seconds(text) == wanted


@pytest.mark.parametrize("text", ["", "  ", "5", "m5", "1m1h", "1h1h", "1.5h", "-3s", "3x"])
def test_refuses(text):
    with pytest.raises(durations.BadDuration):
        durations.seconds(text)
