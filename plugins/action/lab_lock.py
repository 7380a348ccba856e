"""Hold this machine for one run of the lab: two measurements at a time would measure each other.

The lock names the ansible-playbook process that took it. It is good for as long as that process lives, so
a run that was killed leaves nothing to clean up. Taking it twice in one process is fine.
"""

from __future__ import annotations

import fcntl
import json
import os
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase


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
    """`lab_lock: {path: ...}`"""

    TRANSFERS_FILES = False
    _requires_connection = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Take the lock or fail with the name of its holder."""
        path = Path(self._task.args["path"])
        pid = os.getppid()  # this is a worker, its parent is ansible-playbook
        mine = {"pid": pid, "started": started(pid), "lab": (task_vars or {}).get("lab_name")}
        try:
            # without O_CREAT where it exists: root may not create over a user's file in a sticky directory
            handle = os.open(path, os.O_RDWR | (0 if path.exists() else os.O_CREAT), 0o666)
        except OSError as error:
            raise AnsibleActionFail(f"{path}: {error.strerror}. Run as root, as `make lab` does.") from None
        with os.fdopen(handle, "r+", errors="replace") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            holder = living_holder(lock.read())
            if holder and holder["pid"] != pid:
                raise AnsibleActionFail(
                    f"the lab '{holder.get('lab')}' runs on this machine (ansible-playbook, pid {holder['pid']}); "
                    "two at a time would measure each other. Wait for it, or stop it."
                )
            lock.seek(0)
            lock.truncate()
            lock.write(json.dumps(mine))
        return {"changed": False}
