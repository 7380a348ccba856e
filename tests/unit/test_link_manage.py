"""The link's state file, and what goes by it; no link is made here."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tunnel_lab.errors import LabError
from tunnel_lab.link import manage, netem
from tunnel_lab.link.manage import State
from tunnel_lab.link.spec import Emulator, End, LinkSpec

HERE = End(pid=os.getpid(), address="10.99.0.1/24")
SLEEP = "import time; time.sleep(60)"
BROKEN = [b"", b"{", b"[]", b'{"spec": {}, "emulator": "relay"}', b'{"emulator": "pigeon"}', b"\xff\xfe"]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The lab's directory, named after the lab."""
    path = tmp_path / "no-such-lab"
    path.mkdir()
    return path


def made(**settings: Any) -> LinkSpec:
    here = {"server": HERE, "client": HERE}
    defaults = {"name": "no-such-lab", "interface": "link0", "rtt_ms": 80, "rate_mbit": 100, "queue_bytes": 1_000_000}
    return LinkSpec.model_validate({**here, **defaults, "emulator": "relay", **settings})


def store(home: Path, emulator: Emulator = "relay", **settings: Any) -> State:
    state = State(spec=made(**settings), emulator=emulator, host_namespaces=[1, 2])
    (home / "link.json").write_text(state.model_dump_json())
    return state


@contextlib.contextmanager
def relay(home: Path, *argv: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process that looks like this lab's relay, and does nothing."""
    given = argv or (f"--pid-file={home / 'relay.pid'}",)
    with subprocess.Popen([sys.executable, "-c", SLEEP, *given]) as process:
        (home / "relay.pid").write_text(f"{process.pid}\n")
        while given[0].encode() not in Path(f"/proc/{process.pid}/cmdline").read_bytes():
            time.sleep(0.001)  # it has been started, but is not itself yet
        try:
            yield process
        finally:
            process.kill()


def test_without_a_state_there_is_no_link(home: Path) -> None:
    assert manage.read(home) is None
    assert manage.down(home) is False
    assert manage.statistics(home) == {}
    assert manage.down(home / "gone") is False


def test_state_comes_back_as_it_was(home: Path) -> None:
    state = store(home)
    assert manage.read(home) == state


@pytest.mark.parametrize("content", BROKEN)
def test_state_that_cannot_be_read_says_what_to_do(home: Path, content: bytes) -> None:
    (home / "link.json").write_bytes(content)
    for ask in (manage.read, manage.statistics, lambda path: manage.up(made(), path)):
        with pytest.raises(LabError, match=r"link\.json: cannot be read: (.|\n)*Run playbooks/teardown\.yml"):
            ask(home)
    assert (home / "link.json").read_bytes() == content


@pytest.mark.parametrize("content", BROKEN)
def test_teardown_removes_a_link_whose_state_cannot_be_read(
    home: Path, content: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    removed: list[str] = []
    monkeypatch.setattr(netem, "down", removed.append)
    (home / "link.json").write_bytes(content)
    with relay(home) as process:
        assert manage.down(home) is True
        assert process.wait(5) == -15
    assert removed == ["no-such-lab"]
    assert manage.down(home) is False


def test_down_ends_the_relay_and_forgets_it(home: Path) -> None:
    state = store(home)
    with relay(home) as process:
        assert manage.running(state, home) is True
        assert manage.down(home) is True
        assert process.wait(5) == -15
    assert not (home / "link.json").exists()
    assert manage.running(state, home) is False
    assert manage.down(home) is False, "safe to repeat"


def test_down_without_a_living_relay_is_fine(home: Path) -> None:
    store(home)
    (home / "relay.pid").write_text("no pid")
    assert manage.down(home) is True


def test_another_process_of_that_pid_is_left_alone(home: Path) -> None:
    """The relay died and its pid was given to somebody else, such as another lab's relay."""
    state = store(home)
    with relay(home, f"--pid-file={home.parent / 'other' / 'relay.pid'}") as process:
        assert manage.running(state, home) is False
        assert manage.down(home) is True
        assert process.poll() is None


def test_what_is_there_already_is_not_changed(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manage, "_start_relay", lambda *_: pytest.fail("it was started again"))
    spec = made()
    namespace = Path("/proc/self/ns/net").stat().st_ino
    wanted = State(spec=spec, emulator="relay", host_namespaces=[namespace, namespace])
    (home / "link.json").write_text(wanted.model_dump_json())
    with relay(home) as process:
        assert manage.up(spec, home) == (False, wanted)
        assert process.poll() is None


@pytest.mark.parametrize("different", ["another round trip", "another host", "no relay"])
def test_what_differs_is_made_anew(home: Path, monkeypatch: pytest.MonkeyPatch, different: str) -> None:
    started: list[float] = []
    monkeypatch.setattr(manage, "_start_relay", lambda spec, _: started.append(spec.rtt_ms))
    monkeypatch.setattr(manage, "_join", lambda *_: None)
    spec = made()
    namespace = Path("/proc/self/ns/net").stat().st_ino
    old = State(
        spec=spec.model_copy(update={"rtt_ms": 10}) if different == "another round trip" else spec,
        emulator="relay",
        host_namespaces=[namespace, 1 if different == "another host" else namespace],
    )
    (home / "link.json").write_text(old.model_dump_json())
    with relay(home) as process:
        if different == "no relay":
            (home / "relay.pid").unlink()
        changed, state = manage.up(spec, home)
        assert (changed, state.spec, state.host_namespaces) == (True, spec, [namespace, namespace])
        assert started == [80]
        assert (process.poll() is None) is (different == "no relay")
    assert manage.read(home) == state


def test_link_without_addresses_is_removed_again(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    removed: list[str] = []

    def fail(*_: object) -> None:
        raise LabError("ip: no")

    monkeypatch.setattr(manage, "_emulator", lambda _: "netem")
    monkeypatch.setattr(netem, "up", lambda _: None)
    monkeypatch.setattr(netem, "down", removed.append)
    monkeypatch.setattr(manage, "_join", fail)
    with pytest.raises(LabError, match="ip: no"):
        manage.up(made(), home)
    assert removed == ["no-such-lab"]
    assert not (home / "link.json").exists()


def test_host_that_is_not_running_is_named(home: Path) -> None:
    gone = End(pid=2**22 + 1, address="10.99.0.2/24")
    with pytest.raises(LabError, match=rf"/proc/{gone.pid}/ns/net: the host is not running"):
        manage.up(made(server=gone), home)


@pytest.mark.parametrize(
    ("emulator", "available", "chosen"),
    [("auto", True, "netem"), ("auto", False, "relay"), ("relay", True, "relay"), ("netem", True, "netem")],
)
def test_choice_of_the_emulator(emulator: str, available: bool, chosen: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(netem, "available", lambda: available)
    assert manage._emulator(made(emulator=emulator)) == chosen


def test_kernel_without_netem_is_told(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(netem, "available", lambda: False)
    with pytest.raises(LabError, match=r"lab_link\.emulator: this kernel has no netem"):
        manage.up(made(emulator="netem"), home)


@pytest.mark.parametrize("content", [None, "", "{}", "[1]", json.dumps({"schema_version": 9})])
def test_relay_that_does_not_tell_its_state_is_an_error_of_the_lab(
    home: Path, content: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(manage, "running", lambda *_: True)
    store(home)
    if content is not None:
        (home / "relay.json").write_text(content)
    with pytest.raises(LabError, match=r"the relay does not tell its state: .*relay\.json"):
        manage.statistics(home)


@pytest.mark.parametrize("emulator", ["relay", "netem"])
def test_link_that_has_ended_is_told(home: Path, emulator: Emulator) -> None:
    store(home, emulator)
    with pytest.raises(LabError, match=rf"the link is gone, its {emulator} has ended. Run lab.yml again"):
        manage.statistics(home)


def test_statistics_of_netem_are_the_words_of_tc(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manage, "running", lambda *_: True)
    monkeypatch.setattr(netem, "statistics", lambda _: {"tc": "qdisc netem 1: Sent 5 bytes"})
    store(home, "netem")
    assert manage.statistics(home) == {"emulator": "netem", "tc": "qdisc netem 1: Sent 5 bytes"}
