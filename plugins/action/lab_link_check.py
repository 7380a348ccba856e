"""Compare the link as measured with the link as set, where it was set; runs on the controller."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

from tunnel_lab.choices import Link
from tunnel_lab.errors import LabError
from tunnel_lab.link import check, manage
from tunnel_lab.records import Command, LinkState


class ActionModule(ActionBase):
    """`lab_link_check: {home, setting, commands}`; returns `link` for run.json."""

    TRANSFERS_FILES = False
    _requires_connection = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Say what was measured, or fail with it."""
        args = self._task.args
        setting = Link.model_validate(args["setting"]) if args["setting"] else None
        try:
            found = check.measured([Command.model_validate(each) for each in args["commands"]])
            state = manage.statistics(Path(args["home"]))
        except LabError as error:
            raise AnsibleActionFail(str(error)) from None
        wrong = check.problems(found, setting, state)
        if wrong:
            raise AnsibleActionFail("The link is not what it was set to: " + "; ".join(wrong) + ".")
        link = LinkState(
            emulator=str(state.get("emulator", "none")),
            setting=setting,
            measured_rtt_ms=found.rtt_ms,
            measured_goodput_bit_s=found.goodput_bit_s,
        )
        of = (f" of {setting.rtt_ms:g} set", f" of {setting.rate_mbit:g} set") if setting else ("", "")
        Display().display(
            f"link ({link.emulator}): round trip {found.rtt_ms:.2f} ms{of[0]}, "
            f"bare TCP {found.goodput_bit_s / 1e6:.1f} Mbit/s{of[1]}"
        )
        return {"changed": False, "link": link.model_dump(mode="json")}
