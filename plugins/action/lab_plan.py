"""Check all lab_* variables and turn them into a plan; runs on the controller, touches nothing.

Returns `plan`, `shown` (the plan as text), `choices`, `link` (the emulated link, or None) and `link_port` (where it is
tested); `provider`, `hosts`, `home` and `holder` as lab_provider does; `packages` (what any cell needs on a host) and
`needed` (what the planned ones do); `needs_tun`; `interfaces` and `networks` (what tunnels make on the hosts); `probes`
(commands that tell what else they need); `ports` (what the hosts must reach of each other) and `transfer` (how much
passes between them).
"""

from __future__ import annotations

from typing import Any

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase

from tunnel_lab import choices, manifests, needs, plan, rerun
from tunnel_lab.errors import LabError
from tunnel_lab.link import check
from tunnel_lab.place import place


class ActionModule(ActionBase):
    """`lab_plan:` without arguments; the variables are the argument."""

    TRANSFERS_FILES = False
    _requires_connection = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the plan as plain data, or fail with the one message that says what to mend."""
        variables = task_vars or {}
        given = {k: self._templar.template(v) for k, v in variables.items() if k.startswith("lab_")}
        hosts = variables["hostvars"]
        if not {"server", "client"} <= set(hosts):
            sources = ", ".join(variables.get("ansible_inventory_sources") or []) or "none"
            raise AnsibleActionFail(
                f"the inventory ({sources}) has no hosts `server` and `client`. Choose a lab with -i."
            )
        try:
            stored = rerun.stored(str(given["lab_rerun"])) if given.get("lab_rerun") else None
            chosen = choices.from_variables(rerun.variables(stored, given) if stored else given)
            catalog = manifests.load(extra_variants=chosen.lab_variants)
            where = place(chosen.lab_name, chosen.lab_provider, hosts, variables["groups"].get("lab", []))
            made = plan.build(catalog, chosen, hosts["server"]["link_address"])
            if stored:
                rerun.check(stored, made)
        except LabError as error:
            raise AnsibleActionFail(str(error)) from None
        return {
            "changed": False,
            "shown": plan.describe(made, catalog),
            "plan": made.model_dump(mode="json"),
            "tunnels": made.tunnels,
            "workloads": made.workloads,
            "choices": chosen.model_dump(mode="json"),
            **where.told(),
            "packages": catalog.packages,
            "needed": needs.packages(made, catalog),
            "needs_tun": any(catalog.tunnels[name].interface for name in made.tunnels),
            "interfaces": needs.interfaces(made, catalog),
            "networks": needs.networks(made, catalog),
            "probes": needs.probes(made, catalog),
            "ports": needs.ports(made, catalog),
            "transfer": needs.transfer(made, catalog),
            "link_port": check.PORT,
            "link": chosen.lab_link.resolved() if chosen.lab_link else None,
        }
