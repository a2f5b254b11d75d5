"""Settings under the names of the papers that they are from, as ``presets.toml`` lists them."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from types import MappingProxyType
from typing import Any

from .config import GRPOConfig


@dataclass(frozen=True, slots=True)
class Preset:
    """The settings of a paper; all else keeps the default of :class:`GRPOConfig`.

    Attributes:
        name: as the command line takes it.
        paper: its arXiv number.
        what: in one line.
        overrides: the fields of :class:`GRPOConfig` that differ from its defaults.
        where: the sections and equations that the values are from, if they are few.
        missing: what the paper does beside, and these settings cannot express.
    """

    name: str
    paper: str
    what: str
    overrides: Mapping[str, Any]
    where: str = ""
    missing: str = ""

    def config(self, **settings: Any) -> GRPOConfig:
        """Return the settings of a run: the preset's, and over them those given.

        Raises:
            ValueError: they contradict each other, or one is out of its range.
        """
        return GRPOConfig(**{**self.overrides, **settings})


def _read() -> Mapping[str, Preset]:
    tables = tomllib.loads(files("assay.grpo").joinpath("presets.toml").read_text("utf-8"))
    own = ("paper", "what", "where", "missing")
    found = {}
    for name, table in tables.items():
        about = {key: table.pop(key) for key in own if key in table}
        found[name] = Preset(name, overrides=table, **about)
    return MappingProxyType(found)


PRESETS = _read()
