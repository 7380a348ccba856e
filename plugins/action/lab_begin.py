"""Begin a run of the lab: its directory, its run.json, results/latest. Runs on the controller."""

from __future__ import annotations

from typing import Any

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

from tunnel_lab import progress
from tunnel_lab.errors import LabError


class ActionModule(ActionBase):
    """`lab_begin: {lab, provider, choices, plan, link, environment}`; returns `run_dir`."""

    TRANSFERS_FILES = False
    _requires_connection = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Write run.json."""
        try:
            sources = (task_vars or {}).get("ansible_inventory_sources") or []
            directory = progress.begin(dict(self._task.args), inventories=[str(source) for source in sources])
        except LabError as error:
            raise AnsibleActionFail(str(error)) from None
        plan = self._task.args["plan"]
        Display().display(f"{len(plan['steps'])} measurements of {len(plan['cells'])} cells, into {directory}")
        return {"changed": False, "run_dir": str(directory)}
