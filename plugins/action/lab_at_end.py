"""Ask for a playbook to be run when this ansible-playbook ends, with the same inventory and variables.

The request is carried out by the callback of the same name, which lives in the main process.
"""

from __future__ import annotations

import sys
from typing import Any

from ansible import context
from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase

OPTIONS = {
    "-i": "inventory",
    "-e": "extra_vars",
    "--vault-id": "vault_ids",
    "--vault-password-file": "vault_password_files",
}
"""What is handed on, as Ansible keeps it."""


class ActionModule(ActionBase):
    """`lab_at_end: {playbook: PATH}`; returns `lab_at_end`, the command."""

    TRANSFERS_FILES = False
    _requires_connection = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the command as it would be typed."""
        if self._task.check_mode:
            return {"changed": False, "skipped": True}
        if context.CLIARGS.get("ask_vault_pass"):
            raise AnsibleActionFail(
                "--ask-vault-pass: the playbook at the end removes what costs money, and nobody may be there to be "
                "asked. Use --vault-password-file."
            )
        argv = [sys.executable, sys.argv[0], self._task.args["playbook"]]
        for option, name in OPTIONS.items():
            for value in context.CLIARGS.get(name) or ():
                argv += [option, str(value)]
        return {"changed": False, "lab_at_end": argv}
