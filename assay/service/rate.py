"""Token buckets: how often somebody may ask."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable


class Rates:
    """A bucket for each name; each holds ``burst`` and is filled at ``rate`` a second.

    The fullest buckets, those of the names that were quiet longest, are forgotten first.

    Args:
        rate: requests a second; 0 for no limit.
        burst: what a bucket holds.
        names: buckets at most.
        clock: in seconds.
    """

    def __init__(
        self,
        rate: float,
        burst: int,
        *,
        names: int = 10_000,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.rate, self.burst, self.names, self._clock = rate, burst, names, clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait_s(self, name: str) -> float:
        """Take one request out of a bucket; how long it is until there is one, if there is none.

        Nothing is taken where the wait is above 0.
        """
        if not self.rate:
            return 0.0
        now = self._clock()
        level, last = self._buckets.get(name, (float(self.burst), now))
        level = min(float(self.burst), level + (now - last) * self.rate)
        wait = 0.0 if level >= 1 else (1 - level) / self.rate
        self._buckets[name] = (level - (not wait), now)
        self._buckets.move_to_end(name)
        if len(self._buckets) > self.names:
            self._buckets.popitem(last=False)
        return wait
