"""Leaving the relay running in the background, with a start that is known to have worked or failed."""

from __future__ import annotations

import os
import select
import signal
import traceback
from collections.abc import Callable
from pathlib import Path

from tunnel_lab.relay.errors import RelayError

_START_LIMIT_S = 20.0
_READY = "ready"


def detached(serve: Callable[[Callable[[], None]], int], log_file: Path | None) -> None:
    """Run `serve` in a new session, cut off from the caller's terminal, directory and open files.

    Returns in the caller once `serve` has called its argument; never returns in the new process, whose stderr
    goes to log_file. RelayError with the new process's own reason when it fails before that.
    """
    receiver, sender = os.pipe()
    child = os.fork()
    if child == 0:
        os._exit(_background(serve, log_file, sender))
    os.close(sender)
    with os.fdopen(receiver, encoding="utf-8", errors="replace") as pipe:
        answered, _, _ = select.select([pipe], (), (), _START_LIMIT_S)
        answer = pipe.read() if answered else f"the relay did not start within {_START_LIMIT_S:g} s"
    if answer == _READY:
        return
    if not answered:
        os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    raise RelayError(answer or "the relay ended without a reason while it started")


def _background(serve: Callable[[Callable[[], None]], int], log_file: Path | None, sender: int) -> int:
    """The new process's whole life. The first message closes the pipe, as the caller waits for its end."""
    told = False

    def tell(message: str) -> None:
        nonlocal told
        if not told:
            told = True
            os.write(sender, message.encode())
            os.close(sender)

    try:
        os.setsid()
        os.chdir("/")
        os.closerange(3, sender)
        os.closerange(sender + 1, os.sysconf("SC_OPEN_MAX"))
        _redirect(log_file)
        return serve(lambda: tell(_READY))
    except RelayError as error:
        tell(str(error))
    except BaseException as error:  # noqa: BLE001 - whatever it is, the caller is waiting to be told
        traceback.print_exc()
        tell(f"unexpected failure: {error!r}")
    return 1


def _redirect(log_file: Path | None) -> None:
    """Let go of the caller's stdio, or a caller that reads our output to its end would wait for ever."""
    nothing = os.open(os.devnull, os.O_RDWR)
    try:
        log = os.open(log_file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644) if log_file else nothing
    except OSError as error:
        raise RelayError(f"log file {log_file}: {error.strerror}") from error
    for fd, target in enumerate((nothing, log, log)):
        os.dup2(target, fd)
    for fd in {nothing, log} - {0, 1, 2}:
        os.close(fd)
