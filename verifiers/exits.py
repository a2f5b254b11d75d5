"""Tell a user's ``sys.exit`` from the end of the process."""

from __future__ import annotations

import signal
import traceback


def reraise_termination(error: BaseException) -> None:
    """Raise a SystemExit again if the process is to end; return if user code called ``sys.exit``.

    A subclass ends the process, as SIGTERM's in training, and so does what a signal's handler
    raises: it interrupts whatever runs.
    """
    if not isinstance(error, SystemExit):
        return
    handlers = (signal.getsignal(number) for number in signal.valid_signals())
    codes = {getattr(handler, "__code__", None) for handler in handlers}
    by_signal = any(f.f_code in codes for f, _ in traceback.walk_tb(error.__traceback__))
    if type(error) is not SystemExit or by_signal:
        raise error
