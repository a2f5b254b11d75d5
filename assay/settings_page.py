"""Render docs/settings.md: all settings and presets, from the docstrings."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib.resources import files
from string import Template

from .docstring import cell, table
from .grpo.presets import PRESETS
from .train_settings import defaults, descriptions, groups


def page() -> str:
    """Return the whole page."""
    text = (files(__package__) / "settings.md").read_text(encoding="utf-8")
    return Template(text).substitute(settings="\n".join(_settings()), presets="\n".join(_rows()))


def _settings() -> Iterator[str]:
    for i, (heading, names) in enumerate(groups().items()):
        usual = {n: json.dumps(defaults()[n]) for n in names if n in defaults()}
        options = [(n, usual.get(n, ""), descriptions()[n]) for n in names]
        yield from (*([""] if i else []), f"## {heading}", "", *table(options))


def _rows() -> Iterator[str]:
    for preset in PRESETS.values():
        link = f"[{preset.paper}](https://arxiv.org/abs/{preset.paper})"
        where = f" {preset.where}" if preset.where else ""
        said = ", ".join(f"`{k}: {json.dumps(v)}`" for k, v in preset.overrides.items())
        row = (f"`{preset.name}`", link + where, cell(preset.what), said, cell(preset.missing))
        yield f"| {' | '.join(row)} |"
