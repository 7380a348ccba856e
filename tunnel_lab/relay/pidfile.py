"""A pid file that tells a live relay from a stale file without guessing."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tunnel_lab.relay.errors import RelayError


@contextmanager
def pid_file(path: Path) -> Iterator[None]:
    """Hold the file for the body, with this process's id as its only text; remove it afterwards.

    Whoever lives holds a lock on the file, and the kernel drops the lock when that process ends, however it
    ends. So a locked file is a running relay and an unlocked one is stale, even if its pid was reused.
    RelayError when another relay holds the file or it cannot be written.
    """
    try:
        fd = _lock(path)
    except BlockingIOError as error:
        holder = _recorded(path)
        raise RelayError(f"a relay is already running: pid {holder} holds {path}; stop it first") from error
    except OSError as error:
        raise RelayError(f"pid file {path}: {error.strerror}; give one in an existing directory") from error
    try:
        os.ftruncate(fd, 0)
        os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        path.unlink(missing_ok=True)
        os.close(fd)


def _lock(path: Path) -> int:
    """Open and lock; again when its former holder removed the file meanwhile, as that lock guards nothing."""
    while True:
        fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if path.exists() and os.path.samestat(os.fstat(fd), path.stat()):
                return fd
        except BaseException:
            os.close(fd)
            raise
        os.close(fd)


def _recorded(path: Path) -> str:
    try:
        return path.read_text().strip() or "unknown"
    except OSError:
        return "unknown"
