"""Sends requests to slots, again where one broke, and decides who is to blame."""

from __future__ import annotations

from dataclasses import dataclass

from .errors import SandboxUnavailable
from .limits import Limits
from .pool import Pool
from .slot import Origin, Reply, Request, SlotBroken

BREAKS = 2
"""Slots that a program may break before that is held against it."""

ATTEMPTS = 6
"""Slots that a program gets where they end through no doing of its own."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of a request.

    Attributes:
        reply: what the last slot said; ``None`` where the program broke every slot it got.
        origin: that slot.
        attempts: slots it took.
        cause: how the last slot broke, where there is no reply.
    """

    reply: Reply | None
    origin: Origin
    attempts: int
    cause: str = ""


def send(pool: Pool, request: Request) -> Answer:
    """Run a request, again on a fresh slot where one broke.

    Raises:
        SandboxUnavailable: no slot can be had, or none lasts; nothing was judged.
    """
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


def _must_work(pool: Pool, limits: Limits, cause: str) -> None:
    """Hold breaks against a program only where a sandbox works without it.

    A daemon that stops ends all slots at once, and two of them may have been one program's.
    """
    try:
        with pool.lend(fresh=True) as slot:
            slot.run(Request("program", b"", b"", limits, False))
    except SlotBroken as error:
        raise SandboxUnavailable(
            f"sandboxes break under an empty program too: {error}; before that: {cause} "
            "(No program was judged.)"
        ) from error
