"""A rollout that is being trained on: its rows, and how far the training has come.

Shapes: B rows, N values of all rows together.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor

from ..model.batch import Row


@dataclass(slots=True)
class Buffer:
    """A rollout in use.

    Attributes:
        step: whose rollout it is.
        rows: what is trained on, with all that was read of it before the first update.
        found: metrics of the rollout.
        done: parts of the rollout (passes x minibatches) that are trained on.
        sums: of the parts that are done, see :func:`assay.grpo.update.accumulate_gradient`.
        norms: lengths of the gradients of the optimizer steps so far.
        first: sums of the first optimizer step alone, which the sampler's weights took.
        seconds: spent on updates.
        samples: groups of the rollout that are kept to be read, as JSON values.
    """

    step: int
    rows: list[Row]
    found: dict[str, float]
    done: int = 0
    sums: dict[str, float] = field(default_factory=dict)
    norms: list[float] = field(default_factory=list)
    first: dict[str, float] = field(default_factory=dict)
    seconds: float = 0.0
    samples: list[dict[str, Any]] = field(default_factory=list)

    def save(self, path: Path) -> None:
        """Write it as safetensors. Every number comes back as it was, to the bit."""
        tensors: dict[str, Tensor] = {}
        for name in (f.name for f in fields(Row)):
            values = [getattr(row, name) for row in self.rows]
            tensors[name] = _flat(values)
            tensors[f"{name}/lengths"] = torch.tensor([len(v) for v in values], dtype=torch.int64)
        rest = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "rows"}
        save_file(tensors, path, metadata={"buffer": json.dumps(rest)})

    @classmethod
    def load(cls, path: Path) -> Buffer:
        """Read what :meth:`save` wrote.

        Raises:
            SafetensorError: the file is damaged.
            KeyError: it was written by another version, whose rows had other parts.
        """
        with safe_open(path, framework="pt") as file:
            rest = json.loads(file.metadata()["buffer"])
            names = [f.name for f in fields(Row)]
            missing = {n for n in names if n not in file.keys()}  # noqa: SIM118  # it is no dict
            if missing:
                raise KeyError(f"{path.name} lacks {sorted(missing)}")
            columns = [_cut(file.get_tensor(n), file.get_tensor(f"{n}/lengths")) for n in names]
        rows = [
            Row(**dict(zip(names, of_row, strict=True))) for of_row in zip(*columns, strict=True)
        ]
        return cls(rows=rows, **rest)


def _flat(values: Sequence[Sequence[Any]]) -> Tensor:
    """[N]: floats in float64, which is what a Python float is, else integers or booleans."""
    every = [v for of_row in values for v in of_row]
    kinds = {type(v) for v in every}
    if kinds <= {bool}:
        return torch.tensor(every, dtype=torch.bool)
    return torch.tensor(every, dtype=torch.float64 if float in kinds else torch.int64)


def _cut(values: Tensor, lengths: Tensor) -> list[tuple[Any, ...]]:
    every = values.tolist()
    edges = accumulate(lengths.tolist(), initial=0)
    return [tuple(every[start:end]) for start, end in pairwise(edges)]
