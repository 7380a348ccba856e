"""Run collect.py with the terminal's own output; fail when it says that a planned repeat has no good record."""

from __future__ import annotations

import os
import subprocess
from typing import Any

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase
from ansible.utils.display import Display


class ActionModule(ActionBase):
    """`lab_collect: {command: [...]}`"""

    TRANSFERS_FILES = False
    _requires_connection = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Show what collect.py prints."""
        environment = {**os.environ, "COLUMNS": str(Display().columns)}
        done = subprocess.run(
            self._task.args["command"], capture_output=True, text=True, check=False, timeout=600, env=environment
        )
        Display().display(done.stdout.rstrip())
        if done.returncode != 0:
            incomplete = "not every planned repeat has a good record; the lines above say which and why"
            raise AnsibleActionFail(done.stderr.strip() or incomplete)
        return {"changed": False}
