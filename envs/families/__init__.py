"""Task families: procedural tasks, each with levels, judged by the verifier of the same name."""

from __future__ import annotations

FAMILIES = {
    "Countdown": ("countdown", "reach a target with + - * /"),
    "GuessNumber": ("guess_number", "find a number by higher and lower, in several turns"),
    "Integral": ("integral", "find an antiderivative"),
}
"""By class: its module here, and what it asks. Each is registered as ``assay/<class>-v0``."""
