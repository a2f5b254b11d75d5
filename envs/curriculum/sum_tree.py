"""Draw in proportion to weights that change: each in time that grows with the tree's height."""

from __future__ import annotations

from array import array

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class SumTree:
    """Weights in the leaves of a binary tree, sums in its nodes.

    A sum is always made of its two parts, never by adding a difference, so the tree depends on
    its weights alone and not on how they came to be.

    Args:
        weights: [N], finite and at least 0.
    """

    def __init__(self, weights: Floats) -> None:
        self.count = len(weights)
        self._leaves = 1 << max(0, self.count - 1).bit_length()
        sums = np.zeros(2 * self._leaves)  # the root is 1, the children of i 2i and 2i+1
        sums[self._leaves : self._leaves + self.count] = weights
        first = self._leaves
        while first > 1:
            half = first // 2
            sums[half:first] = sums[first : 2 * first : 2] + sums[first + 1 : 2 * first : 2]
            first = half
        self._sums = array("d", sums.tobytes())  # single numbers are read faster than of numpy's

    @property
    def total(self) -> float:
        """The sum of all weights."""
        return self._sums[1]

    def __getitem__(self, place: int) -> float:
        return self._sums[self._leaves + place]

    def __setitem__(self, place: int, weight: float) -> None:
        node = self._leaves + place
        self._sums[node] = weight
        while node > 1:
            node //= 2
            self._sums[node] = self._sums[2 * node] + self._sums[2 * node + 1]

    def find(self, share: float) -> int:
        """Return the index at which the running sum of weights passes a share of the total.

        Args:
            share: in [0, 1).
        """
        mass, node = share * self.total, 1
        while node < self._leaves:
            node *= 2
            left = self._sums[node]
            if mass >= left and self._sums[node + 1] > 0:  # rounding must not find a weight of 0
                mass -= left
                node += 1
        return node - self._leaves

    def draw(self, shares: Floats, *, again: bool = False) -> list[int]:
        """Draw one index for each share, in proportion to the weights.

        Args:
            shares: in [0, 1).
            again: a place may be drawn more than once. Else it is only once all others are
                drawn, or have no weight.
        """
        taken: dict[int, float] = {}
        found = []
        for share in shares:
            if self.total <= 0:
                self._put_back(taken)
            place = self.find(float(share))
            found.append(place)
            if not again:
                taken[place] = self[place]
                self[place] = 0.0
        self._put_back(taken)
        return found

    def _put_back(self, taken: dict[int, float]) -> None:
        for place, weight in taken.items():
            self[place] = weight
        taken.clear()
