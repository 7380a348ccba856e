"""Run one more playbook when this ansible-playbook ends: done, failed, by Ctrl-C, SIGTERM or a lost terminal.

Only `kill -9` and a lost machine are stronger; against them hosts that cost money have a time of their own to end.
"""

from __future__ import annotations

import atexit
import os
import shlex
import signal
import subprocess
import sys

HELD_BY = "TUNNEL_LAB_HELD_BY"
"""Environment of that playbook: the pid of the ansible-playbook whose locks it may take over."""


def arm(argv: list[str]) -> None:
    """Have `argv` run when this process, the main one of ansible-playbook, ends."""
    for ending in (signal.SIGTERM, signal.SIGHUP):
        # Ansible ends in an orderly way on SIGINT alone
        signal.signal(ending, lambda *_: os.kill(os.getpid(), signal.SIGINT))
    atexit.register(_run, argv, os.getpid())


def _run(argv: list[str], pid: int) -> None:
    if os.getpid() != pid:  # a fork of the process that was armed
        return
    print(f"\nAt the end: {argv[2]}", flush=True)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # A session of its own: what interrupted this process does not interrupt that one. Ansible has taken care that no
    # child inherits its stdin, stdout and stderr; without them the playbook would not even start.
    process = subprocess.Popen(
        argv, env={**os.environ, HELD_BY: str(pid)}, start_new_session=True, stdin=0, stdout=1, stderr=2
    )
    try:
        status = process.wait()
    except KeyboardInterrupt:
        print(f"not waiting for it: it goes on as process {process.pid}", file=sys.stderr, flush=True)
        status = 99
    if status:
        again = shlex.join(argv[1:])
        print(f"{argv[2]} did not end well (status {status}). Run it again: {again}", file=sys.stderr, flush=True)
        os._exit(status)
