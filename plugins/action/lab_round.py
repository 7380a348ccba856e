"""Say which steps of a round are still to be measured. Runs on the controller."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase

from tunnel_lab import enough
from tunnel_lab.plan import Plan


class ActionModule(ActionBase):
    """`lab_round: {run_dir, plan, repeat}`; returns `steps`."""

    TRANSFERS_FILES = False
    _requires_connection = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """All steps of the round, but with `lab_repeats: auto` only those of cells that need another repeat."""
        args = self._task.args
        try:
            plan = Plan.model_validate(args["plan"])
            steps = enough.to_measure(plan, int(args["repeat"]), Path(args["run_dir"]))
        except (OSError, ValueError) as error:
            raise AnsibleActionFail(f"the round could not be laid out: {error}") from None
        return {"changed": False, "steps": [step.model_dump(mode="json") for step in steps]}
