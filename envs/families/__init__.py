"""Task families: procedural tasks, each with levels, judged by the verifier of the same name."""

from __future__ import annotations

FAMILIES = {
    "Colouring": ("colouring", "colour a graph"),
    "Countdown": ("countdown", "reach a target with + - * /"),
    "GraphPath": ("graph_path", "find a path in a graph"),
    "Hanoi": ("hanoi", "bring disks from peg to peg"),
    "Maze": ("maze", "find a way through a maze"),
    "Sorting": ("sorting", "put numbers or words in order"),
}
"""By class: its module here, and what it asks. Each is registered as ``assay/<class>-v0``."""
