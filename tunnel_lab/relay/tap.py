"""TAP devices inside other network namespaces."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tunnel_lab.relay.errors import RelayError

_TUN_DEVICE = "/dev/net/tun"
_OWN_NETNS = Path("/proc/thread-self/ns/net")
_CLONE_NEWNET = 0x40000000
_TUNSETIFF = 0x400454CA
_IFF_TAP = 0x0002
_IFF_NO_PI = 0x1000
_IFF_TUN_EXCL = 0x8000  # refuse a device that exists, instead of taking it over
_SIOCSIFMTU = 0x8922
_DROPPED_COLUMN = 11  # "drop" of the transmit half in /proc/net/dev
_REFUSED = (errno.EACCES, errno.EPERM)
_ROOT_HINT = "run as root (CAP_SYS_ADMIN and CAP_NET_ADMIN)"

_libc = ctypes.CDLL(None, use_errno=True)


@contextmanager
def inside(netns: Path) -> Iterator[None]:
    """Run the body with this thread in the namespace; files and sockets opened there stay bound to it."""
    with _opened(netns) as target, _opened(_OWN_NETNS) as home:
        _setns(target, netns)
        try:
            yield
        finally:
            _setns(home, _OWN_NETNS)


class Tap:
    """One non-persistent TAP device: it vanishes when this is closed or the process ends, however it ends.

    The open device keeps its namespace alive, so the namespace's removal shows only in its path:
    `namespace_gone` compares that. Errors are RelayError.
    """

    def __init__(self, netns: Path, name: str, mtu: int) -> None:
        self.netns = netns
        self.name = name
        self._unread = 0
        with inside(netns):
            self.inode = _OWN_NETNS.stat().st_ino
            self.fd = _create(netns, name)
            try:
                _set_mtu(name, mtu)
                self._statistics = os.open("/proc/thread-self/net/dev", os.O_RDONLY)
            except OSError as error:
                os.close(self.fd)
                raise RelayError(f"interface {name} in {netns}, MTU {mtu}: {error.strerror}") from error

    def namespace_gone(self) -> bool:
        """Whether the path leads there no more: after `ip netns del`, or when the process of /proc/PID ended."""
        try:
            return self.netns.stat().st_ino != self.inode
        except OSError:
            return True

    def unread_drops(self) -> int:
        """Frames the kernel dropped since the start because this device's read backlog was full."""
        for line in os.pread(self._statistics, 1 << 16, 0).decode().splitlines():
            name, _, numbers = line.partition(":")
            if name.strip() == self.name:
                self._unread = int(numbers.split()[_DROPPED_COLUMN])
        return self._unread

    def close(self) -> None:
        os.close(self.fd)
        os.close(self._statistics)


def _create(netns: Path, name: str) -> int:
    try:
        fd = os.open(_TUN_DEVICE, os.O_RDWR | os.O_NONBLOCK)
    except OSError as error:
        hint = _ROOT_HINT if error.errno in _REFUSED else "load the kernel module: modprobe tun"
        raise RelayError(f"{_TUN_DEVICE}: {error.strerror}; {hint}") from error
    request = struct.pack("16sH22x", name.encode(), _IFF_TAP | _IFF_NO_PI | _IFF_TUN_EXCL)
    try:
        fcntl.ioctl(fd, _TUNSETIFF, request)
    except OSError as error:
        os.close(fd)
        if error.errno == errno.EBUSY:
            hint = "already exists; remove it or choose another --interface"
        elif error.errno in _REFUSED:
            hint = f"{error.strerror}; {_ROOT_HINT}"
        else:
            hint = f"cannot create a TAP device: {error.strerror}"
        raise RelayError(f"interface {name} in {netns}: {hint}") from error
    return fd


def _set_mtu(name: str, mtu: int) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        fcntl.ioctl(control, _SIOCSIFMTU, struct.pack("16si20x", name.encode(), mtu))


@contextmanager
def _opened(netns: Path) -> Iterator[int]:
    try:
        fd = os.open(netns, os.O_RDONLY)
    except OSError as error:
        hint = _ROOT_HINT if error.errno in _REFUSED else "create it first"
        raise RelayError(f"network namespace {netns}: {error.strerror}; {hint}") from error
    try:
        yield fd
    finally:
        os.close(fd)


def _setns(fd: int, netns: Path) -> None:
    """os.setns exists only from Python 3.12 on."""
    if _libc.setns(fd, _CLONE_NEWNET) == 0:
        return
    number = ctypes.get_errno()
    hint = _ROOT_HINT if number == errno.EPERM else "give a path such as /run/netns/NAME or /proc/PID/ns/net"
    raise RelayError(f"cannot enter network namespace {netns}: {os.strerror(number)}; {hint}")
