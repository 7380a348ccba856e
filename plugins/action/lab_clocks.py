"""Read the clocks of hosts that count instructions. Runs on the controller."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase

from tunnel_lab.errors import LabError
from tunnel_lab.vm import manage, monitor


class ActionModule(ActionBase):
    """`lab_clocks: {home, caught_up}`; returns `clocks`, with `caught_up` as soon as no host is far behind."""

    TRANSFERS_FILES = False
    _requires_connection = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Ask QEMU; {} where no host counts instructions."""
        args = self._task.args
        try:
            paths = manage.counted(Path(args["home"]))
            found = monitor.caught_up(paths) if args.get("caught_up") else monitor.lateness(paths)
        except LabError as error:
            raise AnsibleActionFail(str(error)) from None
        return {"changed": False, "clocks": found}
