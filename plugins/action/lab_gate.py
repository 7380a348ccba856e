"""Refuse to measure through a tunnel that is not what its variant says. Runs on the controller."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase

from tunnel_lab import gate, manifests
from tunnel_lab.errors import LabError
from tunnel_lab.link import manage


class ActionModule(ActionBase):
    """`lab_gate: {home, cell, server, client}`, the hosts' observations; returns `negotiated`, `link` (counters)."""

    TRANSFERS_FILES = False
    _requires_connection = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Compare the logs of the tunnel's units with its settings."""
        cell = self._task.args["cell"]
        tunnel = manifests.load().tunnels[cell["tunnel"]]
        logs = {}
        for host in ("server", "client"):
            if not self._task.args[host]:
                raise AnsibleActionFail(f"the {host} did not get this far")
            logs[host] = self._task.args[host]["logs"].get(cell["tunnel_units"].get(host, ""), "")
        try:
            state = manage.statistics(Path(self._task.args["home"]))
            negotiated, problems = gate.check(tunnel, cell["tunnel_settings"], logs)
        except LabError as error:
            raise AnsibleActionFail(str(error)) from None
        if problems:
            raise AnsibleActionFail("the tunnel is not what its variant says: " + "; ".join(problems))
        return {"changed": False, "negotiated": negotiated, "link": state}
