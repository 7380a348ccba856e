"""Say one thing to the user; everything else that goes well stays silent."""

from __future__ import annotations

from typing import Any

from ansible.plugins.action import ActionBase
from ansible.utils.display import Display


class ActionModule(ActionBase):
    """`lab_say: {msg: ...}`"""

    TRANSFERS_FILES = False
    _requires_connection = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Print `msg`."""
        Display().display(str(self._task.args["msg"]))
        return {"changed": False}
