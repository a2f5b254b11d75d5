"""Task families: procedural tasks, each with levels, judged by the verifier of the same name."""

from __future__ import annotations

FAMILIES = {
    "Countdown": ("countdown", "reach a target with + - * /"),
    "Integral": ("integral", "find an antiderivative"),
}
"""By class: its module here, and what it asks. Each is registered as ``assay/<class>-v0``."""
