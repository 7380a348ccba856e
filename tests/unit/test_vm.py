"""What a virtual machine shall be, and the command line that makes it so."""

from __future__ import annotations

import json
import socket
import threading
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from tunnel_lab.errors import LabError
from tunnel_lab.vm import manage, monitor, qemu, watch
from tunnel_lab.vm.spec import VmSpec, VmState


def spec(**more: Any) -> VmSpec:
    given = {
        "host": "server",
        "image": "/i",
        "keys": "/k",
        "link_address": "10.99.0.1/24",
        "cpus": 1,
        "memory_mb": 512,
        **more,
    }
    return VmSpec.model_validate(given)


def after(option: str, **more: Any) -> str:
    """The word after an option of the command line under TCG."""
    words = qemu.argv(spec(**more), "tcg", Path("/d"))
    return words[words.index(option) + 1]


@pytest.mark.parametrize(
    ("cpu", "model", "accel"),
    [
        ({}, "max", "tcg"),
        ({"aes": False}, "max,-aes", "tcg"),
        ({"model": "Nehalem"}, "Nehalem", "tcg"),
        ({"mips": 62.5, "aes": False}, "qemu64", "tcg,thread=single"),
        ({"mips": 62.5}, "qemu64,+ssse3,+sse4.1,+pclmulqdq,+aes", "tcg,thread=single"),
    ],
)
def test_cpu(cpu: dict[str, Any], model: str, accel: str) -> None:
    assert (after("-cpu", cpu=cpu), after("-accel", cpu=cpu)) == (model, accel)


@pytest.mark.parametrize(("mips", "shift"), [(1000, 0), (125, 3), (62.5, 4), (7.8125, 7)])
def test_instructions_are_counted_in_powers_of_two_of_nanoseconds(mips: float, shift: int) -> None:
    """62.5 million instructions in a second are 16 = 2^4 ns each."""
    assert after("-icount", cpu={"mips": mips}) == f"shift={shift},align=on"
    assert 1e9 / 2**shift == mips * 1e6


def test_without_a_speed_nothing_is_counted() -> None:
    assert "-icount" not in qemu.argv(spec(), "kvm", Path("/d"))


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"cpu": {"mips": 60}}, "must be 0 or one of 1000, 500, 250, 125, 62.5"),
        ({"cpu": {"mips": 62.5}, "cpus": 2}, "set vm_cpus to 1, it is 2"),
        ({"cpu": {"mips": 62.5}, "accelerator": "kvm"}, "set vm_accelerator to auto or tcg"),
        ({"cpu": {"mhz": 266}}, "mhz"),
        ({"cpus": 0}, "cpus"),
        ({"link_address": "10.99.0.300"}, "link_address"),
    ],
)
def test_wrong_settings_are_refused(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        spec(**wrong)


def test_no_secret_is_on_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "credential.host_key").write_text("SECRET")
    words = qemu.argv(spec(), "tcg", tmp_path)
    assert f"type=11,path={tmp_path / 'credential.host_key'}" in words
    assert not any("SECRET" in word for word in words)


@pytest.mark.parametrize(
    ("accelerator", "cpu", "emulation"),
    [("kvm", {}, None), ("tcg", {}, "free-running"), ("tcg", {"mips": 62.5}, "counted 62.5 MIPS")],
)
def test_environment_says_how_the_cpu_is_emulated(accelerator: str, cpu: dict[str, Any], emulation: str | None) -> None:
    state = VmState.model_validate({"spec": spec(cpu=cpu), "accelerator": accelerator, "qemu": "7.2.0"})
    assert state.environment.get("cpu_emulation") == emulation


def test_what_has_no_directory_is_down_already(tmp_path: Path) -> None:
    assert manage.down("server", tmp_path) is False


@pytest.mark.parametrize("pid", ["", "1", "999999999", "x"])
def test_process_that_is_not_the_machine_is_let_alone(tmp_path: Path, pid: str) -> None:
    """After a crash the number may be another process's by now: 1 is certainly not ours."""
    directory = tmp_path / "vm" / "server"
    directory.mkdir(parents=True)
    (directory / "pid").write_text(pid)
    assert manage.down("server", tmp_path) is True
    assert not directory.exists()


def serve(path: Path, jit: str) -> threading.Thread:
    """Answer one client as QEMU's QMP does, with an event between."""
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(path))
    listening.listen(1)

    def answer() -> None:
        with listening, listening.accept()[0] as connection, connection.makefile("rw") as stream:
            messages: list[dict[str, Any]] = [{"QMP": {}}, {"event": "RTC_CHANGE"}, {"return": {}}, {"return": jit}]
            for said in messages:
                stream.write(json.dumps(said) + "\n")
                stream.flush()
                if "return" in said or "QMP" in said:
                    stream.readline()

    thread = threading.Thread(target=answer, daemon=True)
    thread.start()
    return thread


def test_lateness_is_what_qemu_says(tmp_path: Path) -> None:
    serve(
        tmp_path / "qmp", "Translation buffer state:\r\n\r\nHost - Guest clock  -37 ms\r\nMax guest delay     2 ms\r\n"
    )
    assert monitor.lateness_ms(tmp_path / "qmp") == -37


def test_qemu_that_does_not_count_is_told(tmp_path: Path) -> None:
    serve(tmp_path / "qmp", "Translation buffer state:\r\n")
    with pytest.raises(LabError, match="QEMU says nothing of its clock"):
        monitor.lateness_ms(tmp_path / "qmp")


def test_machine_that_has_ended_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="QEMU does not answer"):
        monitor.lateness_ms(tmp_path / "qmp")


def test_watching_keeps_the_most_and_ends_with_the_machine(tmp_path: Path) -> None:
    """Three looks at one machine, then it is gone."""
    (tmp_path / "vm").mkdir()
    seen = iter([20.0, 700.0, 3.0])

    def look(path: Path) -> float:
        found = next(seen, None)
        if found is None:
            raise LabError("the machine has ended")
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(monitor, "lateness_ms", look)
        patch.setattr(watch, "PERIOD_S", 0)
        with pytest.raises(LabError):
            watch.watch(tmp_path, {"server": tmp_path / "qmp"})
    assert watch.stop(tmp_path) == {"server": 700.0}
    assert watch.stop(tmp_path) == {}, "told once"


def test_machine_that_cannot_be_watched_is_told(tmp_path: Path) -> None:
    (tmp_path / "vm").mkdir()
    with pytest.raises(LabError, match="cannot be watched"):
        watch.start(tmp_path, {"server": tmp_path / "qmp"})
