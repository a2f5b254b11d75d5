"""What all tests share."""

import signal

# A shell without job control starts background jobs with SIGINT ignored, and children inherit it:
# then no test of Ctrl-C could work, whatever the code does.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
