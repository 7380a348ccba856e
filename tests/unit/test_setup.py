"""setup.sh before it touches anything: a copy that reads another os-release and finds only a few programs."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from builders import swap
from conftest import ROOT

DEBIAN = 'PRETTY_NAME="Debian GNU/Linux 13 (trixie)"\nID=debian\n'
MINT = 'PRETTY_NAME="Linux Mint 22"\nID=linuxmint\nID_LIKE="ubuntu debian"\n'
FEDORA = 'PRETTY_NAME="Fedora Linux 42"\nID=fedora\n'
PYTHON = """#!/bin/sh
[ "$1" = --version ] && {{ echo 'Python {0}.{1}.2'; exit 0; }}
exec {2} -c 'import sys; sys.version_info = ({0}, {1}, 2); exec(sys.argv[1])' "$2"
"""
OLD, NEW = (PYTHON.format(3, minor, sys.executable) for minor in (10, 11))
Setup = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def setup(tmp_path: Path) -> Setup:
    """Run setup.sh where there are no programs but `dirname` and the given ones: it cannot install anything."""
    here, bin_ = tmp_path / "checkout", tmp_path / "bin"
    here.mkdir()
    bin_.mkdir()
    release = tmp_path / "os-release"
    script = swap((ROOT / "setup.sh").read_text(), "/etc/os-release", str(release))
    (here / "setup.sh").write_text(script)
    (bin_ / "dirname").symlink_to(shutil.which("dirname") or "")

    def run(os_release: str, **programs: str) -> subprocess.CompletedProcess[str]:
        release.write_text(os_release)
        for name, text in programs.items():
            program = bin_ / name.replace("_", ".")
            program.write_text(text)
            program.chmod(0o755)
        return subprocess.run(
            ["/bin/sh", here / "setup.sh"],
            env={"PATH": str(bin_)},
            capture_output=True,
            text=True,
            check=False,
            timeout=30,
        )

    return run


def refused(result: subprocess.CompletedProcess[str], *said: str) -> None:
    """Check that `result` is one line that says all of `said`."""
    assert result.returncode == 1
    assert result.stdout == ""
    assert len(result.stderr.splitlines()) == 1, result.stderr
    assert result.stderr.startswith("setup: ")
    assert all(part in result.stderr for part in said), result.stderr


@pytest.mark.parametrize("release", [FEDORA, 'PRETTY_NAME="Fedora Linux 42"\nID=notdebian\nID_LIKE=xubuntu\n'])
def test_other_systems_are_refused(setup: Setup, release: str) -> None:
    refused(setup(release, python3=NEW), "Fedora Linux 42 is not supported", "Debian 12/13 or Ubuntu")


def test_system_without_a_name_is_refused(setup: Setup) -> None:
    refused(setup("", python3=NEW), "this system is not supported")


@pytest.mark.parametrize("release", [DEBIAN, MINT])
def test_old_python_is_refused(setup: Setup, release: str) -> None:
    refused(setup(release, python3=OLD), "Python 3.11 or newer is needed; Python 3.10.2 was found")


def test_newer_python_beside_an_old_one_is_taken(setup: Setup) -> None:
    """The next step is reached, which has no means here to install what is missing."""
    result = setup(DEBIAN, python3=OLD, python3_12=NEW)
    assert "Python 3.11" not in result.stderr
    assert "packages are missing and neither root nor sudo is there to install them" in result.stderr
    assert result.returncode == 1
