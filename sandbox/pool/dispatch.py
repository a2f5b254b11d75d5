"""Sends requests to slots, again where one broke, and decides who is to blame."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace

from ..backends.slot import Origin, Reply, Request, SlotBroken
from ..errors import SandboxUnavailable
from ..limits import Limits
from ..result import Result, RunStatus
from .pool import Pool

BREAKS = 2
"""Slots that a program may break before that is held against it."""

ATTEMPTS = 6
"""Slots that a program gets where they end through no doing of its own."""

_OUT_OF_MEMORY = Reply("memory", (None, None), "", 0.0, 0.0, 0.0, True, 0, True, (b"", b"", b""))
"""Of a program that is too large to be run."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of a request.

    Attributes:
        reply: what the last slot said; ``None`` if the program broke every slot it got.
        origin: that slot.
        attempts: slots it took; 0 if it was too large for any.
        cause: how the last slot broke, where there is no reply.
    """

    reply: Reply | None
    origin: Origin
    attempts: int
    cause: str = ""

    def result(self, found: Result | None) -> Result:
        """Return a run's result with where it ran, or that the program broke its sandboxes."""
        found = found or Result(RunStatus.BROKE_SANDBOX, reason=self.cause)
        return replace(found, attempts=self.attempts, **asdict(self.origin))


def send(pool: Pool, request: Request) -> Answer:
    """Run a request, again on a fresh slot where one broke.

    A program and its input lie in the memory that the program has. One that takes more than half
    of it is not sent: a program's size is its own doing, its input's is the caller's.

    Raises:
        SandboxUnavailable: no slot can be had, or none lasts; nothing was judged.
        ValueError: the input is too large.
    """
    fault = input_fault(len(request.data), request.limits)
    if fault:
        raise ValueError(fault)
    if len(request.code) > _most(request.limits):
        return Answer(_OUT_OF_MEMORY, Origin(pool.backend.name, pool.backend.image), 0)
    less = request.limits.memory_mib < pool.backend.limits.memory_mib
    request = replace(request, less_memory=less)
    origin, cause = Origin(), ""
    breaks = 0
    for attempt in range(1, ATTEMPTS + 1):
        failure = ""
        try:
            with pool.lend(fresh=attempt > 1) as slot:
                origin = slot.origin
                try:
                    reply = slot.run(request)
                except SlotBroken:
                    failure = slot.infrastructure_failure()  # asked before the slot is closed
                    raise
                if not reply.clean:
                    pool.discard(slot)
                return Answer(reply, origin, attempt)
        except SlotBroken as error:
            cause = f"{failure} ({error})" if failure else str(error)
        breaks += not failure
        if breaks == BREAKS:
            _must_work(pool, request.limits, cause)
            blame = f"the program broke {BREAKS} sandboxes: {cause}"
            return Answer(None, origin, attempt, blame)
    raise SandboxUnavailable(
        f"{ATTEMPTS} sandboxes in a row were lost under a program: {cause} (It was not judged.)"
    )


def _most(limits: Limits) -> int:
    """Return the bytes that a program, and its input, may have."""
    return limits.memory_mib << 19


def input_fault(size: int, limits: Limits) -> str:
    """Say that an input of so many bytes is too large; empty if it is not."""
    if size <= _most(limits):
        return ""
    return (
        f"the input (stdin, calls or tests) has {size / (1 << 20):.1f} MiB, more than half of "
        f"memory_mib={limits.memory_mib}, which holds it beside the program: give less, or "
        f"Limits(memory_mib={-(-size >> 19)}) or more"
    )


def _must_work(pool: Pool, limits: Limits, cause: str) -> None:
    """Hold breaks against a program only where a sandbox works without it.

    A daemon that stops ends all slots at once, and two of them may have been one program's.
    """
    try:
        with pool.lend(fresh=True) as slot:
            slot.run(Request("program", b"", b"", limits))
    except SlotBroken as error:
        raise SandboxUnavailable(
            f"sandboxes break under an empty program too: {error}; before that: {cause} "
            "(No program was judged.)"
        ) from error
