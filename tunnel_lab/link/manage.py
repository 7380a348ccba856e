"""Bring the link up, down, and tell its state. `python -m tunnel_lab.link` is the command line of this."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

from pydantic import Field

from tunnel_lab.errors import LabError
from tunnel_lab.link import netem
from tunnel_lab.link.spec import Emulator, End, LinkSpec
from tunnel_lab.manifests import Strict
from tunnel_lab.processes import attempt, end, living, run
from tunnel_lab.relay.status import Status


class State(Strict):
    """What is up: kept in `link.json` of the lab's directory."""

    spec: LinkSpec
    emulator: Emulator
    host_namespaces: list[int] = Field(default_factory=list)
    """Inode numbers of the hosts' network namespaces; a host that was made anew has another."""


def up(spec: LinkSpec, home: Path) -> tuple[bool, State]:
    """Make the link be as `spec` says; return (whether anything was changed, its state)."""
    old = read(home)
    wanted = State(spec=spec, emulator=_emulator(spec), host_namespaces=_namespaces(spec))
    if old == wanted and running(old, home):
        return False, wanted
    if old:
        down(home)
    if wanted.emulator == "netem":
        netem.up(spec)
    else:
        _start_relay(spec, home)
    try:
        for end in spec.ends:
            _join(spec, end)
    except LabError:
        _remove(wanted, home)
        raise
    (home / "link.json").write_text(wanted.model_dump_json(indent=1) + "\n")
    return True, wanted


def down(home: Path) -> bool:
    """Remove the link, whatever made it; return whether there was one. Safe to repeat."""
    try:
        state = read(home)
    except LabError:
        # which of the two it was is not known; the directory is named after the lab
        _end_relay(home)
        netem.down(home.name)
    else:
        if state is None:
            return False
        _remove(state, home)
    (home / "link.json").unlink()
    return True


def read(home: Path) -> State | None:
    """Return what `link.json` says, None when there is none; a LabError when it cannot be read."""
    try:
        return State.model_validate_json((home / "link.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise LabError(f"{home / 'link.json'}: cannot be read: {error}. Run playbooks/teardown.yml.") from error


def running(state: State, home: Path) -> bool:
    """Return whether what `link.json` says is really there."""
    if state.emulator == "netem":
        return netem.running(state.spec)
    return living(*_relay(home)) is not None


def statistics(home: Path) -> dict[str, object]:
    """Return the emulator's own counters: the relay's status, or tc's text."""
    state = read(home)
    if state is None:
        return {}
    if not running(state, home):
        raise LabError(f"the link is gone, its {state.emulator} has ended. Run lab.yml again, it makes the link anew.")
    if state.emulator == "netem":
        return {"emulator": "netem", **netem.statistics(state.spec)}
    try:
        return {"emulator": "relay", **asdict(Status.read(home / "relay.json"))}
    except (OSError, ValueError) as error:
        raise LabError(f"the relay does not tell its state: {error}") from error


def _emulator(spec: LinkSpec) -> Emulator:
    if spec.emulator == "relay":
        return "relay"
    if netem.available():
        return "netem"
    if spec.emulator == "netem":
        raise LabError("lab_link.emulator: this kernel has no netem. Use `relay` or `auto`.")
    return "relay"


def _namespaces(spec: LinkSpec) -> list[int]:
    try:
        return [end.netns.stat().st_ino for end in spec.ends]
    except OSError as error:
        raise LabError(f"{error.filename}: the host is not running: {error.strerror}") from error


def _join(spec: LinkSpec, end: End) -> None:
    """Give the link's interface to the host: with its address, or as a port of its bridge."""
    # the lab speaks IPv4; IPv6's own chatter would be counted as traffic
    attempt(["sysctl", "-qw", f"net.ipv6.conf.{spec.interface}.disable_ipv6=1"], end.netns)
    if end.bridge:
        run(["ip", "link", "set", spec.interface, "master", end.bridge], end.netns)
    else:
        run(["ip", "address", "replace", end.address, "dev", spec.interface], end.netns)
    run(["ip", "link", "set", spec.interface, "mtu", str(spec.mtu), "up"], end.netns)


def _start_relay(spec: LinkSpec, home: Path) -> None:
    options = {
        "server-netns": spec.server.netns,
        "client-netns": spec.client.netns,
        "interface": spec.interface,
        "rtt-ms": spec.rtt_ms,
        "rate-mbit": spec.rate_mbit,
        "queue-bytes": spec.queue_bytes,
        "loss-pct": spec.loss_pct,
        "seed": spec.seed,
        "mtu": spec.mtu,
        "status-file": home / "relay.json",
        "pid-file": home / "relay.pid",
        "log-file": home / "relay.log",
    }
    argv = [sys.executable, "-m", "tunnel_lab.relay", "--daemonize"]
    argv += [f"--{name}={value}" for name, value in options.items()]
    argv += ["--watch-pid", *(str(end.pid) for end in spec.ends)]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=30)
    except subprocess.TimeoutExpired as error:
        raise LabError("the relay did not start within 30 s") from error
    if done.returncode != 0:
        raise LabError(done.stderr.strip() or "the relay did not start and said nothing")


def _relay(home: Path) -> tuple[Path, str]:
    """Return the file with the relay's pid, and the word of its command line that is no other lab's."""
    path = home / "relay.pid"
    return path, f"--pid-file={path}"


def _remove(state: State, home: Path) -> None:
    if state.emulator == "netem":
        netem.down(state.spec.name)
    else:
        _end_relay(home)


def _end_relay(home: Path) -> None:
    if not end(*_relay(home), wait_s=5):
        pid = living(*_relay(home))
        raise LabError(f"the relay (pid {pid}) does not end; end it with: kill -9 {pid}")
