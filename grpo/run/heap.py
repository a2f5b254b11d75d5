"""Keep memory that was freed, which the next batch asks for again.

The tensors of a batch are freed backward. glibc then gives them back to the system, and the next
batch gets pages that must be cleared first, one fault each 4 KiB: a twentieth of an update on a
CPU. Thresholds of its malloc say how much it may hold on to.
"""

from __future__ import annotations

import ctypes
import functools
import os
import sys

_TRIM, _MMAP = -1, -3  # M_TRIM_THRESHOLD and M_MMAP_THRESHOLD of malloc.h
_KEPT = 1 << 29
_LARGEST = 1 << 25  # of a tensor that is kept: more than this glibc does not take
_SET_BY_USER = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "GLIBC_TUNABLES")


@functools.cache
def keep_freed_memory() -> bool:
    """Have this process hold on to 512 MiB of freed memory, in tensors of up to 32 MiB each.

    That does not raise the memory that is needed at the highest. Settings of malloc in the
    environment go before this one.

    Returns:
        Whether it was told so: not where malloc is not glibc's.
    """
    if sys.platform != "linux" or any(name in os.environ for name in _SET_BY_USER):
        return False
    tell = getattr(ctypes.CDLL(None), "mallopt", None)
    return tell is not None and all([tell(_MMAP, _LARGEST), tell(_TRIM, _KEPT)])
