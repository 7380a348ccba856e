"""Ask for a playbook to be run when this ansible-playbook ends, with the same inventory and variables.

The request is carried out by the callback of the same name, which lives in the main process.
"""

from __future__ import annotations

import sys
from typing import Any

from ansible import context
from ansible.plugins.action import ActionBase


class ActionModule(ActionBase):
    """`lab_at_end: {playbook: PATH}`; returns `lab_at_end`, the command."""

    TRANSFERS_FILES = False
    _requires_connection = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the command as it would be typed."""
        argv = [sys.executable, sys.argv[0], self._task.args["playbook"]]
        for option, name in (("-i", "inventory"), ("-e", "extra_vars")):
            for value in context.CLIARGS.get(name) or ():
                argv += [option, str(value)]
        return {"changed": False, "lab_at_end": argv}
