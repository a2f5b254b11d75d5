"""The infos of a vector environment, as arrays over its copies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import itemgetter
from types import NoneType
from typing import Any

import numpy as np
from numpy.typing import NDArray


def batched(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the infos of copies in Gymnasium's form: arrays by key, each with a mask ``_key``.

    It is what ``VectorEnv._add_info`` makes of them one by one, made in one go. Where the copies'
    values are of different kinds it neither fails nor goes by the first one's: numbers become
    floats, a missing one NaN, and anything else stays as it is in an array of objects.

    Args:
        rows: one for each copy; possibly empty.
    """
    shapes = dict.fromkeys(map(tuple, rows))  # nearly always one: all copies tell alike
    infos: dict[str, Any] = {}
    for key in dict.fromkeys(key for keys in shapes for key in keys):
        places = None if len(shapes) == 1 else [i for i, row in enumerate(rows) if key in row]
        chosen = rows if places is None else [rows[i] for i in places]
        put(infos, len(rows), places, {key: list(map(itemgetter(key), chosen))})
    return infos


def put(
    infos: dict[str, Any],
    size: int,
    places: Sequence[int] | None,
    columns: Mapping[str, list[Any]],
) -> None:
    """Merge the infos of some copies into those of all, as :func:`batched` does.

    Args:
        infos: to which the arrays and masks are added.
        size: how many copies there are.
        places: the indices of the copies; ``None`` for all.
        columns: by key, one value for each of them.
    """
    mask = np.ones(size, dtype=np.bool_)
    if places is not None:
        mask[:] = False
        mask[places] = True
    for key, values in columns.items():
        kinds = frozenset(map(type, values))
        if kinds == _DICT and not any(values):
            infos[key] = {}
        elif all([issubclass(kind, dict) for kind in kinds]):  # noqa: C419  # half the time of a generator
            rows = values if places is None else [{} for _ in range(size)]
            for place, value in zip(places or (), values, strict=places is not None):
                rows[place] = value
            infos[key] = batched(rows)
        else:
            infos[key] = _array(values, kinds, places, size)
        infos[f"_{key}"] = mask.copy()


def _array(
    values: list[Any], kinds: frozenset[type], places: Sequence[int] | None, size: int
) -> NDArray[Any]:
    kind = _kind(values, kinds)
    found: NDArray[Any] = (
        np.fromiter(values, dtype=object, count=len(values))
        if kind is None
        else np.array(values, dtype=kind)
    )
    if places is None:
        return found
    array = np.full((size, *found.shape[1:]), None if kind is None else 0, dtype=found.dtype)
    array[places] = found
    return array


def _kind(values: list[Any], kinds: frozenset[type]) -> Any:
    """Return the dtype of all values, ``None`` if only ``object`` fits."""
    if kinds in _OBJECTS:
        return None
    if kinds == {float, NoneType} or kinds == {int, float}:
        return float
    if len(kinds) > 1:
        return None
    kind: Any = next(iter(kinds))
    if kind is np.ndarray:
        alike = {(value.shape, value.dtype) for value in values}
        return values[0].dtype if len(alike) == 1 else None
    if kind is int and (max(values) >= 2**63 or min(values) <= -(2**63)):
        return None
    return kind if kind in (int, float, bool) or issubclass(kind, np.number) else None


_DICT = frozenset({dict})
_OBJECTS = frozenset({frozenset({str}), frozenset({list}), frozenset({NoneType})})
"""What most columns are of."""
