"""Read the clocks of hosts that count instructions. Runs on the controller."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase

from tunnel_lab.errors import LabError
from tunnel_lab.vm import manage, monitor, watch


class ActionModule(ActionBase):
    """`lab_clocks: {home, state}`; returns `clocks` and, after `watched`, `worst` of the time in between.

    `caught_up`: waits until no host is far behind. `watching`: that, and the hosts are watched from then on. `watched`:
    that ends.
    """

    TRANSFERS_FILES = False
    _requires_connection = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Ask QEMU; {} where no host counts instructions."""
        home, state = Path(self._task.args["home"]), self._task.args["state"]
        answer: dict[str, Any] = {"changed": False, "clocks": {}, "worst": {}}
        try:
            paths = manage.counted(home)
            if paths and state == "watched":
                answer |= {"clocks": monitor.lateness(paths), "worst": watch.stop(home)}
            elif paths:
                answer["clocks"] = monitor.caught_up(paths)
            if paths and state == "watching":
                watch.start(home, paths)
        except LabError as error:
            raise AnsibleActionFail(str(error)) from None
        return answer
