"""The page of the docs on settings: all of them and all presets, from what the code says."""

from __future__ import annotations

from collections.abc import Iterator

from .docstring import cell, table
from .grpo.presets import PRESETS
from .setting_files import as_yaml
from .train_settings import defaults, groups, told

_HEAD = """\
# Settings of a training run

Made by `assay presets --markdown` from the docstrings of `Objective`, `GRPOConfig`, `TrainConfig`.

    assay train assay/Arithmetic-v1 --model DIR --preset dapo --learning-rate 3e-6
    assay train --config run.yaml --steps 500
    assay train --print-config --preset dapo > run.yaml
    assay train --resume --out runs/mine

Each setting is a flag (`--group-size 16`, `--mask-truncated` and `--no-mask-truncated`,
`--clip-high none`, `--reward-weights '{"accuracy": 1.0}'`; arguments of the environment:
`--set digits=3`) and a line of a YAML or TOML file (`group_size: 16`, `env_args: {digits: 3}`). Of
what is given twice, flags count before the file and the file before the preset, which the file may
name too (`preset: dapo`).

Files are held to the types. YAML is read as its version 1.2 says, so `1e-6` is a number (in 1.1,
which most readers follow, it is text), `no` is text and not False, `010` is ten. Refused are a
number in quotes where a number is wanted, true for a number, names that there are not, and a name
that is there twice. TOML has no null: what a preset sets, only YAML or a flag sets back to none.

All settings of a run are in `config.json` beside its checkpoints. `--resume` reads them there, and
so needs nothing but `--out`; what is given with it counts before them, and is refused where the run
would not be the same. `--out`, `--model` and `--device` may change: a run can be moved.

Secrets are in none of these files, which only their owner may read, nor in what is printed: values
of names such as `token`, `api_key`, `password`, `secret`, `headers` and `authorization`, and the
user info of URLs, are `<redacted>`. `--resume` and `assay rescore` ask for them again. A command
line is seen by others of the machine, and kept by some trackers: put secrets into the file of
`--config`, or into an environment variable that the environment reads.
"""

_PRESETS = """\
## Presets

A preset changes what its paper says, and nothing else; those that name numbers of prompts and
tokens are of large machines. In Python: `PRESETS["dapo"].config(steps=100)`. Where a rollout is one
update (the default) every ratio is 1: no clip ever binds, and `clip`, `gmpo`, `cispo`, `sapo` and
GSPO's ratio have the same gradient. They differ with `minibatches` or `num_iterations` above 1, so
their presets set it: to what the paper says, and where none is known to GSPO's 4.

| preset | paper | what | settings | beside these |
|---|---|---|---|---|
"""


def page() -> str:
    """The page, whole."""
    return "\n".join([_HEAD, *_settings(), "", _PRESETS + "\n".join(_rows()), ""])


def _settings() -> Iterator[str]:
    for i, (heading, names) in enumerate(groups().items()):
        options = [(n, _default(n), told()[n]) for n in names]
        yield from (*([""] if i else []), f"## {heading}", "", *table(options))


def _default(name: str) -> str:
    return as_yaml(defaults()[name]) if name in defaults() else ""


def _rows() -> Iterator[str]:
    for preset in PRESETS.values():
        link = f"[{preset.paper}](https://arxiv.org/abs/{preset.paper})"
        where = f" {preset.where}" if preset.where else ""
        said = ", ".join(f"`{k}: {as_yaml(v)}`" for k, v in preset.overrides.items())
        row = (f"`{preset.name}`", link + where, cell(preset.what), said, cell(preset.missing))
        yield f"| {' | '.join(row)} |"
