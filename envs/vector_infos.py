"""What a vector environment tells of its copies: the infos of all, as arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import NoneType
from typing import Any

import numpy as np
from numpy.typing import NDArray


def batched(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The infos of copies in Gymnasium's form: arrays by key, each with a mask ``_key``.

    It is what ``VectorEnv._add_info`` makes of them one by one, made in one go. Where the copies'
    values are of different kinds it neither fails nor goes by the first one's: numbers become
    floats, a missing one NaN, and anything else stays as it is in an array of objects.

    Args:
        rows: one for each copy; empty where there is nothing to tell.
    """
    places: dict[str, list[int]] = {}
    columns: dict[str, list[Any]] = {}
    for place, row in enumerate(rows):
        for key, value in row.items():
            places.setdefault(key, []).append(place)
            columns.setdefault(key, []).append(value)
    infos: dict[str, Any] = {}
    for key, values in columns.items():
        if all(isinstance(value, dict) for value in values):
            inner: list[Mapping[str, Any]] = [{}] * len(rows)
            for place, value in zip(places[key], values, strict=True):
                inner[place] = value
            infos[key] = batched(inner)
        else:
            infos[key] = _array(values, places[key], len(rows))
        mask = np.zeros(len(rows), dtype=np.bool_)
        mask[places[key]] = True
        infos[f"_{key}"] = mask
    return infos


def _array(values: list[Any], places: list[int], size: int) -> NDArray[Any]:
    kind = _kind(values)
    if kind is not None:
        array = np.zeros((size, *np.shape(values[0])), dtype=kind)
        array[places] = values
        return array
    array = np.full(size, None, dtype=object)
    for place, value in zip(places, values, strict=True):
        array[place] = value
    return array


def _kind(values: list[Any]) -> Any:
    """The dtype that holds all values; ``None`` where only objects do."""
    kinds = set(map(type, values))
    if kinds == {float, NoneType} or kinds == {int, float}:
        return float
    if len(kinds) > 1:
        return None
    (kind,) = kinds
    if kind is np.ndarray:
        alike = {(value.shape, value.dtype) for value in values}
        return values[0].dtype if len(alike) == 1 else None
    if kind is int and any(abs(value) >= 2**63 for value in values):
        return None
    return kind if kind in (int, float, bool) or issubclass(kind, np.number) else None
