"""Tell who makes the hosts of this lab, and with which settings; runs on the controller, touches nothing.

Returns `provider` (its manifest), `hosts` ({host: settings}), `home` (the lab's private directory) and `holder`
(who runs it, and where).
"""

from __future__ import annotations

from typing import Any

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase

from tunnel_lab.errors import LabError
from tunnel_lab.place import place


class ActionModule(ActionBase):
    """`lab_provider:` without arguments; the inventory is the argument."""

    TRANSFERS_FILES = False
    _requires_connection = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the answer as plain data, or fail with the one message that says what to mend."""
        variables = task_vars or {}
        name, made_by = (str(self._templar.template(variables.get(key))) for key in ("lab_name", "lab_provider"))
        try:
            found = place(name, made_by, variables["hostvars"], variables["groups"].get("lab", []))
        except LabError as error:
            raise AnsibleActionFail(str(error)) from None
        return {"changed": False, **found.told()}
