import subprocess

import pytest


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("Write to ada.l@mail.example.org.", "Write to a***@mail.example.org."),
        ("<x+y@a-b.io>, q_1@c.de", "<x***@a-b.io>, q***@c.de"),
        ("no address @ all", "no address @ all"),
        ("two\nlines: bob@example.com", "two\nlines: b***@example.com"),
    ],
)
def test_masks(text, masked):
    done = subprocess.run(
        ["/app/mask"], input=text + "\n", capture_output=True, text=True, timeout=20, check=True
    )
    assert done.stdout == masked + "\n"
