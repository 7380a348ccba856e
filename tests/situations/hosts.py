"""The lab on which situations are constructed: its playbooks, and a quota for one of its hosts."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from playbooks import run

LAB = "situations"
Playbook = Callable[..., str]


def play(*playbooks: str, **choices: Any) -> str:
    """Run playbooks on the lab with these `lab_*` variables; return what they print, or fail with it."""
    done = run(*playbooks, timeout=7200, name=LAB, **choices)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout


def run_dir(printed: str) -> Path:
    """Return the directory of the run that `measure.yml` says it writes to."""
    found = re.search(r"measurements of \d+ cells, into (\S+)", printed)
    assert found, printed[-2000:]
    return Path(found[1])


def set_quota(host: str, share: float | None) -> None:
    """Let a host of the lab have this share of one core; None: all of them. Both kinds of cgroups, read back."""
    inspect = ["podman", "inspect", "--format", "{{.State.CgroupPath}}", f"tunnellab-{LAB}-{host}"]
    path = subprocess.run(inspect, capture_output=True, text=True, check=True, timeout=60).stdout.strip().lstrip("/")
    period_us = 100_000
    quota_us = -1 if share is None else round(share * period_us)
    old, new = (Path("/sys/fs/cgroup") / part for part in (f"cpu/{path}/cpu.cfs_quota_us", f"{path}/cpu.max"))
    if old.exists():
        old.write_text(str(quota_us))
        assert int(old.read_text()) == quota_us
    else:
        new.write_text(f"{'max' if share is None else quota_us} {period_us}")
        assert new.read_text().split()[0] == ("max" if share is None else str(quota_us))
