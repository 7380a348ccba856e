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
from pathlib import Path
from typing import TextIO

HELD_BY = "TUNNEL_LAB_HELD_BY"
"""Environment of that playbook: the pid of the ansible-playbook whose locks it may take over."""
LOG = Path(__file__).resolve().parent.parent / ".lab" / "at-the-end.log"
"""What it prints when the terminal is lost."""


def arm(argv: list[str]) -> None:
    """Have `argv` run when this process, the main one of ansible-playbook, ends."""
    for ending in (signal.SIGTERM, signal.SIGHUP):
        # Ansible ends in an orderly way on SIGINT alone
        signal.signal(ending, lambda *_: os.kill(os.getpid(), signal.SIGINT))
    atexit.register(_run, argv, os.getpid())


def _run(argv: list[str], pid: int) -> None:
    if os.getpid() != pid:  # a fork of the process that was armed
        return
    # Who interrupts twice means what went on before. Not SIG_IGN, which the playbook would inherit.
    signal.signal(signal.SIGINT, lambda *_: None)
    streams = (0, 1, 2) if _say(f"\nAt the end: {argv[2]}") else _without_terminal()
    # A session of its own: what interrupts this process does not interrupt that one. Ansible has taken care that no
    # child inherits its stdin, stdout and stderr; without them the playbook would not even start.
    environment = {**os.environ, HELD_BY: str(pid)}
    process = subprocess.Popen(
        argv, env=environment, start_new_session=True, stdin=streams[0], stdout=streams[1], stderr=streams[2]
    )
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        status = process.wait()
    except KeyboardInterrupt:
        _say(f"not waiting for it: it goes on as process {process.pid}", sys.stderr)
        status = 99
    if status:
        again = shlex.join(argv[1:])
        _say(f"{argv[2]} did not end well (status {status}). Run it again: {again}", sys.stderr)
        os._exit(status)


def _say(text: str, stream: TextIO | None = None) -> bool:
    """Print; return whether anybody can have heard it: a terminal that was lost refuses."""
    try:
        print(text, file=stream or sys.stdout, flush=True)
    except OSError:
        return False
    return True


def _without_terminal() -> tuple[int, int, int]:
    """Return what takes the place of stdin, stdout and stderr: the playbook would die of those that are lost."""
    LOG.parent.mkdir(exist_ok=True)
    log = os.open(LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    return subprocess.DEVNULL, log, log
