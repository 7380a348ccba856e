"""Hold what one run of the lab measures on: two at a time would measure each other.

That is this machine where the provider makes its hosts here, else the lab alone, so that labs on other machines run
side by side. The lock names the ansible-playbook process that took it. It is good for as long as that process lives,
so a run that was killed leaves nothing to clean up. Taking it twice in one process is fine, and so is taking it in
the playbook that a run starts at its end.
"""

from __future__ import annotations

import fcntl
import json
import os
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase

from tunnel_lab.at_end import HELD_BY
from tunnel_lab.errors import LabError
from tunnel_lab.manifests import provider
from tunnel_lab.place import Place


def started(pid: int) -> str | None:
    """Return when process `pid` began, in clock ticks since boot, or None when there is no such process any more."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    fields = stat.rsplit(")", 1)[1].split()
    return None if fields[0] in "ZX" else fields[19]  # a zombie has ended, and may stay one for ever


def living_holder(text: str) -> dict[str, Any] | None:
    """Return whom the lock's `text` names, or None when that is nobody or a process that has ended."""
    try:
        holder: dict[str, Any] = json.loads(text)
        now = started(holder["pid"])
        return holder if now is not None and now == holder["started"] else None
    except (ValueError, TypeError, KeyError):
        return None


class ActionModule(ActionBase):
    """`lab_lock:`, or with `state: absent` to remove the lock of one's own."""

    TRANSFERS_FILES = False
    _requires_connection = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Take the lock or fail with the name of its holder."""
        variables = task_vars or {}
        lab, made_by = (str(self._templar.template(variables.get(name))) for name in ("lab_name", "lab_provider"))
        try:
            path = Place(lab, provider(made_by), {}).lock
        except LabError as error:
            raise AnsibleActionFail(str(error)) from None
        hold(path, lab)
        if self._task.args.get("state") == "absent":
            path.unlink(missing_ok=True)
        return {"changed": False}


def hold(path: Path, lab: str) -> None:
    """Write this ansible-playbook into the lock at `path`; AnsibleActionFail when another that lives holds it."""
    pid = os.getppid()  # this is a worker, its parent is ansible-playbook
    allowed = (pid, int(os.environ.get(HELD_BY, "0")))
    mine = {"pid": pid, "started": started(pid), "lab": lab}
    try:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        # without O_CREAT where it exists: root may not create over a user's file in a sticky directory
        handle = os.open(path, os.O_RDWR | (0 if path.exists() else os.O_CREAT), 0o666)
    except OSError as error:
        raise AnsibleActionFail(f"{path}: {error.strerror}. Run as root, as `make lab` does.") from None
    with os.fdopen(handle, "r+", errors="replace") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        holder = living_holder(lock.read())
        if holder and holder["pid"] not in allowed:
            raise AnsibleActionFail(
                f"the lab '{holder.get('lab')}' runs (ansible-playbook, pid {holder['pid']}); "
                "two at a time would measure each other. Wait for it, or stop it."
            )
        lock.seek(0)
        lock.truncate()
        lock.write(json.dumps(mine))
