"""Real-time priority that cannot take the machine with it."""

from __future__ import annotations

import os
import resource
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_RLIMIT_RTTIME = 15  # not named in Python's resource module
_LIMITS_US = (1_000_000, 3_000_000)


@contextmanager
def realtime(priority: int) -> Iterator[None]:
    """SCHED_FIFO for the body, or normal scheduling when the system refuses it; the status says which.

    The kernel guards against a loop that never sleeps: after 1 s of real-time work without a pause it sends
    SIGXCPU, which puts the relay back to normal scheduling; after 3 s it kills it.
    """
    if priority:
        normal = os.sched_param(0)
        signal.signal(signal.SIGXCPU, lambda *_: os.sched_setscheduler(0, os.SCHED_OTHER, normal))
        try:
            resource.setrlimit(_RLIMIT_RTTIME, _LIMITS_US)
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(priority))
        except (OSError, ValueError) as error:
            print(f"no real-time priority: {error}", file=sys.stderr, flush=True)
    try:
        yield
    finally:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
